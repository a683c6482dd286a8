// What only some pages need: selecting jobs, the form of a job, the output of a run, the tail of events.

import { $, $$, hold, make, regions, swap, tell, tick, touchAll, write } from "DASHBOARD";
import { askFirst, call, tellThere } from "MORE";

// -- selecting rows --

let everything = false;
const boxes = () => $$("[data-id] input[type=checkbox]");
const names = () => boxes().filter((one) => one.checked).map((one) => one.closest("[data-id]").dataset.name);
const bar = () => $("[data-selection]");
const chosen = () => (everything ? JSON.parse(bar().dataset.chosen) : { ids: names() });

async function preview(what = "pause") {
  const number = everything ? Number(bar().dataset.total) : names().length;
  bar().classList.toggle("any", number > 0);
  write($("[data-count]", bar()), number ? `${number.toLocaleString("en")} selected` : "None selected");
  write($("[data-preview]", bar()), "");
  for (const button of $$("[data-bulk]", bar())) button.disabled = !number;
  if (!number) return null;
  const seen = await call("POST", "/api/jobs:preview", { ...chosen(), do: what });
  if (!seen.ok) write($("[data-preview]", bar()), seen.error);
  return seen.ok ? seen.said : null;
}
document.addEventListener("change", async ({ target }) => {
  if (!bar() || !target.matches("input[type=checkbox]")) return;
  if (target.matches("[data-all]")) for (const one of boxes()) one.checked = target.checked;
  everything = false;
  const seen = await preview();
  if (seen) write($("[data-preview]", bar()), `Pausing them: ${[`${seen.count} would stop`, ...seen.says].join(". ").replace(/\.+$/, "")}.`);
});
const DONE = { run: "Started", pause: "Paused", resume: "Resumed" };
document.addEventListener("click", async (event) => {
  if (event.target.closest("[data-everything]")) {
    for (const one of boxes()) one.checked = true;
    everything = true;
    return preview();
  }
  const button = event.target.closest("[data-bulk]");
  if (!button) return;
  const what = button.dataset.bulk;
  const seen = await preview(what);
  if (!seen) return;
  const refused = Object.entries(seen.refused);
  if (!seen.count && !refused.length) return tell(what === "run" ? "There is nothing to start." : `Nothing would change: they are ${what === "pause" ? "paused" : "not paused"}.`);
  const lines = [
    `${seen.count.toLocaleString("en")} will change${seen.unchanged ? `, ${seen.unchanged.toLocaleString("en")} stay as they are` : ""}.`,
    ...(refused.length ? [`${refused.length} cannot: ${refused.slice(0, 3).map(([, why]) => why).join(" ")}`] : []),
    ...seen.says,
  ];
  const yes = button.textContent.trim();
  const typed = await askFirst(`${yes}: ${seen.count.toLocaleString("en")}?`, { note: what === "pause" ? "Why (optional)" : undefined, yes, from: button, lines });
  if (!typed) return;
  const done = await call("POST", `/api/jobs:${what}`, { ...chosen(), ...(typed.note ? { note: typed.note } : {}) });
  const left = done.ok ? Object.keys(done.said.refused).length : 0;
  tell(done.ok ? `${DONE[what]} ${done.said.count.toLocaleString("en")}${left ? `, ${left} refused` : ""}.` : done.error, done.action);
  for (const one of $$("input[type=checkbox]")) one.checked = false;
  everything = false;
  preview();
  touchAll();
});
if (bar()) {
  // Somebody who comes back finds what they had selected.
  const kept = `wakeful-selected ${location.search}`;
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") {
    const before = JSON.parse(sessionStorage.getItem(kept) || "[]");
    for (const one of boxes()) one.checked = before.includes(one.value);
  }
  addEventListener("pagehide", () => sessionStorage.setItem(kept, JSON.stringify(names())));
  preview();
}
for (const one of $$("form.filters select")) one.addEventListener("change", () => one.form.requestSubmit());

// -- the form of a job --

const form = $("[data-edit]");
if (form) {
  const shown = document.getElementById("preview");
  const inline = $("[data-inline]", form);
  const base = shown ? shown.dataset.region : "/ui/new/preview";
  let meant = shown?.dataset.trigger || "";
  let wrong = "";
  let asking = null;
  const look = async () => {
    const words = form.elements.when?.value;
    if (words === undefined) return;
    const text = await fetch(`${base}${base.includes("?") ? "&" : "?"}when=${encodeURIComponent(words)}`).then((one) => one.text());
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("preview");
    if (form.elements.when.value !== words || !fresh) return;
    meant = fresh.dataset.trigger;
    wrong = $("[data-error]", fresh)?.textContent || "";
    if (shown) swap("preview", text);
    if (inline) write(inline, wrong || `Next: ${$$("li .at", fresh).map((one) => one.textContent.trim()).join(", ")}`);
    tick();
  };
  // The command that changes the same, as far as it is an option or the schedule.
  const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
  const twin = $("[data-twin]");
  const begin = twin.textContent;
  const tellTwin = (changed) => {
    const flags = changed.filter((one) => !["payload", "command", "url", "name"].includes(one.name) && one.value);
    write(twin, flags.length ? [begin.split(" --")[0], ...flags.map((one) => `--${one.name.replaceAll("_", "-")} ${shell(one.value)}`)].join(" ") : begin);
  };
  const differ = () => {
    const card = $("[data-diff]");
    const changed = [...form.elements].filter((one) => one.name && one.value !== one.defaultValue);
    if (!card || !form.dataset.job) return changed;
    tellTwin(changed);
    card.hidden = !changed.length;
    $("dl", card).replaceChildren(...changed.flatMap((one) => [make("dt", { textContent: one.name.replace("_", " ") }),
      make("dd", {}, make("del", { textContent: one.defaultValue || "nothing" }), " → ", make("ins", { textContent: one.value || "nothing" }))]));
    return changed;
  };
  form.addEventListener("input", ({ target }) => {
    differ();
    clearTimeout(asking);
    if (target.name === "when") asking = setTimeout(look, 200);
  });
  const refuse = (text) => { const place = $("[data-refused]", form); write(place, text); place.hidden = false; place.scrollIntoView({ block: "nearest" }); };
  const words = (text) => [...text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a?.replace(/\\(.)/g, "$1") ?? b ?? c);
  const value = (text) => { try { return JSON.parse(text); } catch { return text; } };
  const READ = {
    name: (text) => ({ name: text.trim() }), when: () => ({ trigger: JSON.parse(meant) }), command: (text) => ({ command: words(text) }),
    url: (text) => ({ payload: { url: text } }), payload: (text) => ({ payload: text.trim() ? JSON.parse(text) : null }),
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(asking);
    await look();
    if (wrong) return refuse(wrong);
    const fields = form.dataset.job ? differ() : [...form.elements].filter((one) => one.name && one.value.trim());
    if (!fields.length) return refuse("Nothing is different yet.");
    let body = form.dataset.job ? {} : { kind: form.dataset.kind };
    try { for (const one of fields) body = { ...body, ...(READ[one.name]?.(one.value) ?? { [one.name]: one.value.trim() ? value(one.value.trim()) : null }) }; }
    catch { return refuse("That is not JSON: write for example {\"to\": \"team\"}."); }
    const done = form.dataset.job
      ? await call("PATCH", `/api/jobs/${form.dataset.job}`, body, { "If-Match": `"${form.dataset.revision}"` })
      : await call("POST", "/api/jobs", body);
    if (!done.ok) return refuse(done.error);
    tellThere(`/jobs/${encodeURIComponent(done.said.name)}`, form.dataset.job ? "Saved." : `Added ${done.said.name}.`);
  });
  if (inline) look();
}

// -- the output of a run: it follows, is searched, and leads to the error --

const log = () => document.getElementById("log");
const WRONG = /error|exception|traceback|fatal|panic|failed/i;
let at = -1;
const follows = () => $("[data-follow]")?.getAttribute("aria-pressed") === "true";
const toEnd = () => { if (log() && follows()) log().scrollTop = log().scrollHeight; };
function seek(test) {
  const lines = log().textContent.split("\n");
  const found = lines.map((line, index) => (test(line) ? index : -1)).filter((index) => index >= 0);
  write($("[data-hits]"), found.length ? `${found.length} ${found.length === 1 ? "line" : "lines"}` : "none");
  if (!found.length) return;
  at = found.find((index) => index > at) ?? found[0];
  $("[data-follow]")?.setAttribute("aria-pressed", "false");
  const begin = lines.slice(0, at).join("\n").length + (at ? 1 : 0);
  const range = document.createRange();
  const walker = document.createTreeWalker(log(), NodeFilter.SHOW_TEXT);
  for (let passed = 0, node; (node = walker.nextNode()); passed += node.length) {
    if (begin < passed + node.length) { range.setStart(node, begin - passed); range.setEnd(node, Math.min(node.length, begin - passed + lines[at].length)); break; }
  }
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  log().scrollTop += range.getBoundingClientRect().top - log().getBoundingClientRect().top - 60;
}
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("[data-log] input") || !event.target.value) return;
  const text = event.target.value.toLowerCase();
  seek((line) => line.toLowerCase().includes(text));
});
document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-error-jump]")) seek((line) => WRONG.test(line));
  const button = target.closest("[data-follow]");
  if (button) { button.setAttribute("aria-pressed", String(!follows())); toEnd(); }
});
document.addEventListener("swapped", toEnd);
toEnd();
// What a run prints is no event: as long as it may print more, its output is fetched every second.
const written = regions.find((one) => one.id === "output");
if (written) setInterval(() => $("#output[data-written]") && !document.hidden && written.touch(), 1000);

// -- the tail of events --

const tail = document.getElementById("tail");
if (tail) {
  const stream = new EventSource(tail.dataset.stream ? `/api/events?stream=${encodeURIComponent(tail.dataset.stream)}` : "/api/events");
  const none = $("[data-quiet]");
  let held = false;
  none.hidden = false;
  const add = ({ type, data }) => {
    if (held) return;
    none.hidden = true;
    const said = JSON.parse(data);
    const about = said.data || {};
    const what = [type, said.type, about.job || about.agent || about.workflow || about.node || "", about.outcome || ""].join(" ").trim();
    const time = make("time", { className: "at", dateTime: said.at, textContent: new Date(said.at).toLocaleTimeString("en-GB", { timeZone: document.body.dataset.zone }) });
    tail.prepend(make("li", {}, time, about.run ? make("a", { href: `/runs/${about.run}`, textContent: what }) : make("span", { textContent: what }), make("span")));
    while (tail.childElementCount > 500) tail.lastElementChild.remove();
  };
  for (const name of ["run", "job", "heartbeat", "delivery", "alert", "node", "workflow"]) stream.addEventListener(name, add);
  const button = $("[data-hold]");
  button.onclick = hold;
  document.addEventListener("held", ({ detail }) => { held = detail; button.setAttribute("aria-pressed", String(held)); write(button, held ? "Go on" : "Hold"); });
}
