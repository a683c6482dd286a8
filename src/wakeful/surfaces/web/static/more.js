// What buttons do and ask of the server, dialogs, the list of keys, and the results of find: loaded when they are first wanted.

import { $, $$, hold, KEPT, letGo, make, quiet, tell, touchAll, UNREACHED, write } from "DASHBOARD";

const dialog = document.getElementById("dialog");
export function askFirst(title, { note, must, confirm, yes, from, lines = [] }) {
  return new Promise((resolve) => {
    const fields = {};
    const field = (name, label, required = false) => make("label", { textContent: `${label} ` }, (fields[name] = make("input", { name, required, autocomplete: "off" })));
    dialog.replaceChildren(make("form", { method: "dialog" }, make("h2", { id: "dialog-title", textContent: title }),
      ...lines.map((text) => make("p", { textContent: text })),
      ...(note === undefined ? [] : [field("note", note || "Note", must)]),
      ...(confirm === undefined ? [] : [field("confirm", `Type ${confirm} to go on`, true)]),
      make("div", { className: "acts" }, make("button", { type: "button", className: "btn bare", textContent: "Back", onclick: () => dialog.close("no") }),
        make("button", { className: "btn solid", value: "yes", textContent: yes }))));
    dialog.onclose = () => {
      from?.focus();
      const typed = Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, one.value]));
      resolve(dialog.returnValue === "yes" && (confirm === undefined || typed.confirm === confirm) ? typed : null);
    };
    dialog.returnValue = "no";
    dialog.showModal();
  });
}

// -- actions --

export async function call(method, path, body, headers = {}) {
  try {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(path, { method, headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers }, ...given });
    const said = await answer.json().catch(() => ({}));
    return { ok: answer.ok, said, error: said.error || `The server answered ${answer.status}.`, action: answer.headers.get("Wakeful-Action") };
  } catch { return { ok: false, said: {}, error: UNREACHED }; }
}
// What is said on the page that comes next.
export const tellThere = (place, ...said) => { sessionStorage.setItem("wakeful-told", JSON.stringify(said)); location.assign(place); };

// A button says what it does: data-do="POST /api/jobs/a/pause", data-body='{…}', data-say="Paused a", and where it asks
// before: data-ask, data-note (asks for a note; it must be given where data-as says what it is sent as), data-confirm (must be typed).
export async function act(button) {
  const { ask, note, confirm, body, say, then } = button.dataset;
  const [method, path] = button.dataset.do.split(" ");
  const yes = button.textContent.trim();
  const typed = ask === undefined && note === undefined ? {} : await askFirst(ask || yes, { note, must: button.dataset.as !== undefined, confirm, yes, from: button });
  if (!typed) return;
  button.disabled = true;
  const given = body === undefined ? undefined : { ...JSON.parse(body), ...(typed.note ? { [button.dataset.as || "note"]: typed.note } : {}) };
  const done = await call(method, path, given);
  button.disabled = false;
  if (done.ok && then) return tellThere(then, say, done.action);
  tell(done.ok ? say || "Done." : done.error, done.ok ? done.action : null);
  letGo();
}
export async function undo() {
  const latest = sessionStorage.getItem(KEPT);
  if (!latest) return tell("Nothing to undo.");
  sessionStorage.removeItem(KEPT);
  const done = await call("POST", `/api/actions/${encodeURIComponent(latest)}/undo`);
  tell(done.ok ? `Undone: ${done.said.restored.slice(0, 3).join(", ")}${done.said.count > 3 ? ` and ${done.said.count - 3} more` : ""}.` : done.error);
  touchAll();
}

// New rows of a list that somebody is about to use wait until they ask for them.
export function offer(region, number) {
  const id = `newer-${region.id}`;
  const pill = document.getElementById(id);
  if (!number) return pill?.remove();
  const showThem = () => { if (region.getBoundingClientRect().top < 0) scrollTo(0, scrollY + region.getBoundingClientRect().top - 72); letGo(); };
  if (!pill) region.before(make("button", { id, className: "btn newer", type: "button", onclick: showThem }));
  // A page of a list has at most 50 rows.
  write(document.getElementById(id), `${number < 50 ? number : "50+"} new`);
}

// -- find --

const hits = document.getElementById("hits");
const asked = $("form.find input");
let searching = null;
asked?.addEventListener("input", () => {
  clearTimeout(searching);
  searching = setTimeout(async () => {
    const text = asked.value.trim();
    const answer = text ? await fetch(`/ui/find/found?q=${encodeURIComponent(text)}`).then((one) => one.text(), () => "") : "";
    if (asked.value.trim() !== text) return;
    const found = answer && new DOMParser().parseFromString(answer, "text/html").getElementById("found");
    hits.replaceChildren(...(found ? found.childNodes : []));
    hits.hidden = !found;
  }, 120);
});
$("form.find")?.addEventListener("keydown", (event) => {
  const links = $$("a", hits);
  const at = links.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && links.length) { event.preventDefault(); (links[at + step] || asked).focus(); }
  if (event.key === "Enter" && at < 0 && links.length && !hits.hidden) { event.preventDefault(); links[0].click(); }
  if (event.key === "Escape") { hits.hidden = true; asked.focus(); }
});
document.addEventListener("focusin", (event) => { if (hits && !event.target.closest("form.find")) hits.hidden = true; });

// -- the timeline: arrows go from mark to mark, and a line says where one is --

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };
function walk(step) {
  const marks = $$(".tl td.cut a");
  const at = marks.indexOf(document.activeElement);
  if (at >= 0) marks[at + step]?.focus();
}

// -- keys --

const PLACES = { n: "/", j: "/jobs", r: "/runs", a: "/agents", w: "/workflows", d: "/deliveries", o: "/nodes", e: "/events" };
let current = -1;
const row = () => $$("main [data-id]")[current];
function move(step) {
  const all = $$("main [data-id]");
  current = Math.min(all.length - 1, Math.max(0, current + step));
  all[current] && ($("a", all[current]) || $("button, input", all[current]))?.focus();
  all[current]?.scrollIntoView({ block: "nearest" });
}
const KEYS = {
  "/": [() => asked?.focus(), "find"],
  g: [() => {}, "then n j r a w d o e: go to a page"],
  j: [() => move(1), "next row"],
  k: [() => move(-1), "previous row"],
  x: [() => row() && $("input[type=checkbox]", row())?.click(), "select"],
  ".": [() => row() && ($("button", row()) || $("[data-bulk]:enabled"))?.focus(), "actions"],
  y: [() => row() && ($("a[data-why]", row()) || $("a", row()))?.click(), "why"],
  u: [undo, "undo"],
  " ": [hold, "hold updates"],
  "?": [help, "this list"],
};
export function press(key, leads) {
  if (STEPS[key]) walk(STEPS[key]);
  else if (leads && PLACES[key]) location.assign(PLACES[key]);
  else KEYS[key]?.[0]();
}
function help() {
  const about = Object.entries(KEYS).flatMap(([name, [, words]]) => [make("dt", { textContent: name === " " ? "space" : name }), make("dd", { textContent: words })]);
  const toggle = () => { localStorage.setItem("wakeful-keys", quiet() ? "on" : "off"); dialog.close(); };
  dialog.replaceChildren(make("h2", { id: "dialog-title", textContent: "Keys" }), make("dl", { className: "kv" }, ...about), make("div", { className: "acts" },
    make("button", { type: "button", className: "btn", textContent: `Turn single keys ${quiet() ? "on" : "off"}`, onclick: toggle }),
    make("button", { type: "button", className: "btn solid", textContent: "Close", onclick: () => dialog.close() })));
  dialog.onclose = null;
  dialog.showModal();
}
if (asked.value) asked.dispatchEvent(new Event("input"));
