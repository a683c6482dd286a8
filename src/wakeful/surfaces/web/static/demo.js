// The strip and the phone of the demo: asks its server every second what there is to show, and measures what happens
// when the server is killed, sleeps, or cannot reach the phone.

const $ = (name) => document.querySelector(`[data-demo="${name}"]`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const zone = document.body.dataset.zone;
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const make = (tag, about = {}, ...inside) => { const node = Object.assign(document.createElement(tag), about); node.append(...inside); return node; };
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

async function ask(method, path, body) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error || `The server answered ${answer.status}.`);
  return said;
}

// -- what there is to show --------------------------------------------------------------------------------------------

let kills = 0;
let broken = false;
const drawn = new Set();
const write = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };
const clock = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone });

function show(state) {
  ({ kills } = state);
  const { text, link, over } = state.story;
  const story = $("story");
  if (story.dataset.text !== text) {
    story.dataset.text = text;
    story.replaceChildren(text, ...(link ? [" ", make("a", { href: link, className: "link", textContent: "why" })] : []));
  }
  $("yours").hidden = !over;
  write($("clock"), clock(state.now));
  ({ broken } = state.phone);
  write($("phone"), broken ? "mend the phone" : "break the phone");
  write($("signal"), broken ? "refuses" : "connected");
  $("device").classList.toggle("broken", broken);
  draw(state.phone);
}

const ticks = () => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "ticks");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "delivered");
  svg.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
  svg.firstChild.setAttribute("href", "#ticks");
  return svg;
};

function draw({ messages, waiting }) {
  const list = $("messages");
  for (const old of list.querySelectorAll(".waits")) old.remove();
  for (const { id, title, agent, text, at } of messages) {
    if (drawn.has(id)) continue;
    drawn.add(id);
    list.append(make("li", { className: "fresh" }, make("b", { textContent: agent || title || "wakeful" }), make("p", { textContent: text }), make("small", {}, clock(at), ticks())));
    list.scrollTop = list.scrollHeight;
  }
  for (const text of waiting) list.append(make("li", { className: "waits" }, make("p", { textContent: text }), make("small", { textContent: "on its way" })));
  if (waiting.length) list.scrollTop = list.scrollHeight;
}

let busy = false; // a trick is going on, which asks for itself
async function look() {
  if (busy || document.hidden) return;
  try { show(await ask("GET", "/demo/state")); } catch { /* the page itself says that the server is gone */ }
}
setInterval(look, 1000);
look();

// -- the log of a trick -----------------------------------------------------------------------------------------------

let record = { lines: [], sums: "", why: "" };
function paint() {
  $("proof").hidden = !record.lines.length;
  $("log").replaceChildren(...record.lines.map(([at, text]) => make("li", {}, make("time", { textContent: at }), make("span", { textContent: text }))));
  write($("sums"), record.sums);
  $("why").hidden = !record.why;
  if (record.why) $("why").href = record.why;
  sessionStorage.setItem("wakeful-demo", JSON.stringify(record));
}
function note(text, sums, why) {
  const at = new Date();
  record.lines.push([`${at.toLocaleTimeString("en-GB", { timeZone: zone })}.${String(at.getMilliseconds()).padStart(3, "0")}`, text]);
  if (sums !== undefined) record.sums = sums;
  if (why) record.why = why;
  paint();
}
try { record = JSON.parse(sessionStorage.getItem("wakeful-demo")) || record; } catch { sessionStorage.removeItem("wakeful-demo"); }
paint();
$("clear").onclick = () => { record = { lines: [], sums: "", why: "" }; paint(); };

async function perform(trick) {
  if (busy) return;
  busy = true;
  for (const name of ["kill", "sleep", "phone"]) $(name).disabled = true;
  record = { lines: [], sums: "", why: "" };
  try { await trick(); } catch (error) { note(error.message); }
  for (const name of ["kill", "sleep", "phone"]) $(name).disabled = false;
  busy = false;
  look();
}

// -- kill -9 ----------------------------------------------------------------------------------------------------------

async function kill() {
  const { process, run, job } = await ask("POST", "/demo/kill");
  note(`this page asked for SIGKILL of process ${process}, in the middle of ${job}`);
  let lost = null;
  let state = null;
  const lose = () => { if (lost === null) { lost = performance.now(); note("the page lost the server"); } };
  const observer = new MutationObserver(() => document.body.classList.contains("lost") && lose());
  observer.observe(document.body, { attributeFilter: ["class"] });
  for (let tries = 0; tries < 1000; tries += 1) {
    const began = performance.now();
    try {
      state = await ask("GET", "/demo/state");
      if (state.process !== process) { lost ??= began; break; } // it waited for the next server
      await pause(20);
    } catch {
      lose();
      await pause(20);
    }
  }
  observer.disconnect();
  const away = performance.now() - lost;
  show(state);
  let after = await ask("GET", `/demo/killed/${run}`);
  note(`back as process ${state.process}; ${job} is recorded as ${after.outcome || "running"}${after.lasted_ms === null ? "" : ` after ${seconds(after.lasted_ms)}`}`);
  let said = false;
  for (let tries = 0; tries < 200 && !after.again?.outcome; tries += 1) {
    if (after.again && !said) { said = true; note(`${job} runs again`); }
    await pause(300);
    after = await ask("GET", `/demo/killed/${run}`);
  }
  note(`its second run: ${after.again?.outcome || "not yet"}`, `lost ${after.lost} · settled twice ${after.twice} · out of sight for ${seconds(away)} · killed ${count(kills, "time")}`, `/runs/${after.again?.run || run}`);
}

// -- sleep ------------------------------------------------------------------------------------------------------------

async function doze() {
  note("the machine of the demo is off for an hour");
  const { since } = await ask("POST", "/demo/sleep");
  note("it is on again, and its clock is an hour further");
  const path = `/demo/slept?since=${encodeURIComponent(since)}`;
  let after = await ask("GET", path);
  for (let tries = 0; tries < 150 && after.open; tries += 1) { await pause(300); after = await ask("GET", path); }
  const jobs = Object.keys(after.caught_up).length;
  const most = Math.max(0, ...Object.values(after.caught_up));
  note(`${count(jobs, "job")} caught up, ${most === 1 ? "each once" : `one of them ${most} times`}`,
    `${count(after.slots, "slot")}, ${count(after.ran, "run")} · ${after.merged} merged into them · ${after.passed_over} passed over${after.asking ? ` · ${after.asking} waiting for your answer` : ""} · ${after.missing} missing · lost ${after.lost} · settled twice ${after.twice}`,
    "/jobs/inbox");
  location.reload(); // the clock of the page is an hour behind
}

// -- the phone --------------------------------------------------------------------------------------------------------

async function breakPhone() {
  const { delivery } = await ask("POST", "/demo/phone", { broken: true });
  sessionStorage.setItem("wakeful-demo-message", delivery);
  note("the phone refuses connections, and a message is sent to it", "", `/deliveries/${delivery}`);
  look();
  let known = 0;
  for (let tries = 0; tries < 40 && !known; tries += 1) {
    await pause(200);
    known = (await follow(delivery, known)).known;
  }
  watch(delivery, known);
}

async function follow(delivery, known) {
  const found = await ask("GET", `/demo/messages/${delivery}`);
  for (const { ok, error } of found.log.slice(known)) {
    if (ok === null) break;
    known += 1;
    const next = found.next_attempt_at && Math.round((Date.parse(found.next_attempt_at) - Date.parse(found.log.at(-1).at)) / 1000);
    note(ok ? `attempt ${known}: the phone has it` : `attempt ${known}: ${error}${next ? `; the next one comes after ${next} s` : ""}`);
  }
  return { known, found };
}

async function watch(delivery, known) {
  let found = null;
  for (let tries = 0; tries < 2000 && (!found || !["sent", "failed"].includes(found.status)); tries += 1) {
    await pause(500);
    if (busy && !mending) continue;
    try { ({ known, found } = await follow(delivery, known)); } catch { /* the server is gone for a moment */ }
  }
  if (found?.status === "sent") note("delivered", `sent once, after ${count(known, "attempt")}`, `/deliveries/${delivery}`);
}

let mending = false;
async function mend() {
  mending = true;
  await ask("POST", "/demo/phone", { broken: false });
  const kept = JSON.parse(sessionStorage.getItem("wakeful-demo") || "null");
  if (kept && kept.why.startsWith("/deliveries/")) record = kept;
  note("the phone is mended");
  mending = false;
}

const buttons = { kill, sleep: doze, phone: () => (broken ? mend() : breakPhone()) };
for (const [name, trick] of Object.entries(buttons)) if ($(name)) $(name).onclick = () => perform(trick);
