// Keeps a page up to date and makes its buttons work. Pages read without it.
//
// One stream says which kinds of things changed. Regions that show such things are fetched again, each at most once a
// second, and swapped row by row; what a person points at, types in or has selected is left alone.

const page = document.body;
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
export const make = (name, about = {}, ...inside) => {
  const node = Object.assign(document.createElement(name), about);
  node.append(...inside);
  return node;
};
export const write = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };

const clock = () => performance.now();
// Of the server's clock from ours.
let offset = Number(page.dataset.now) - Date.now();
let holding = false;
const held = () => holding || document.hidden;

// -- the verdict in the tab: a mark in the title, a shape in the icon --

const MARKS = { well: "●0", quiet: "○0", empty: "○0", needs_you: "◆1", failing: "■2", behind: "◷1", stalled: "▲2", unsure: "?3" };
const icons = page.dataset.icons.split(" ");
function sign(state) {
  const [mark, icon] = MARKS[state] || MARKS.unsure;
  document.title = mark + document.title.slice(1);
  const link = $("link[rel=icon]");
  const wanted = `/static/${icons[icon]}`;
  if (link.getAttribute("href") !== wanted) link.href = wanted;
}

// -- regions --

class Region {
  constructor(node) {
    Object.assign(this, { id: node.id, source: node.dataset.region, streams: node.dataset.live.split(" "), next: 0 });
  }

  touch() {
    this.dirty = true;
    this.plan();
  }

  plan() {
    if (this.timer || this.busy) return;
    this.timer = setTimeout(() => { this.timer = null; this.fetch(); }, Math.max(0, this.next - clock()));
  }

  async fetch() {
    if (!this.dirty || held()) return;
    this.dirty = false;
    this.busy = true;
    const began = clock();
    const asked = this.began < freed || began < freed + 3e3;
    try {
      const answer = await fetch(this.source, { headers: { "If-None-Match": this.tag || "" }, redirect: "manual" });
      // Who was signed out, and a page of what is gone, are told so by the page.
      const { headers, status } = answer;
      if (answer.type === "opaqueredirect" || status === 401 || status === 404 && began > 5e3) location.reload();
      this.dirty ||= status > 499;
      const verdict = headers.get("Wakeful-Verdict");
      if (verdict) sign(verdict);
      if (status === 200) {
        this.tag = headers.get("ETag");
        this.began = began;
        // What was left alone is fetched again when nobody is in its way.
        if (swap(this.id, await answer.text(), asked)) { this.tag = null; this.dirty = true; }
      }
    } catch { this.dirty = true; }
    // What is still being counted is asked for again.
    this.dirty ||= $(`#${this.id}[data-soon]`);
    this.busy = false;
    const now = clock();
    this.next = now + (now - began > 300 ? 5e3 : 1e3);
    if (this.dirty) this.plan();
  }
}

export const regions = $$("[data-region]").map((one) => new Region(one));
export const touchAll = () => regions.forEach((one) => one.touch());

let skipped = 0;
let newer = 0;
let free;
let freed = -3e3;
// What somebody points at may change when it is next fetched, and for some seconds, because they asked for it.
export const letGo = () => { freed = clock(); touchAll(); };
export function swap(id, html, asked) {
  const old = $(`#${id}`);
  const fresh = new DOMParser().parseFromString(html, "text/html").getElementById(id);
  skipped = newer = 0;
  free = asked;
  if (old && fresh) { merge(old, fresh); tick(); document.dispatchEvent(new CustomEvent("swapped", { detail: old })); }
  if (newer || $(`#newer-${id}`)) use((found) => found.offer(old, newer));
  return skipped;
}

const key = (node) => (node.nodeType === 1 ? node.dataset.id || node.id || null : null);
const own = "form, dialog, [data-selection]";
const inHand = (node) => node.nodeType === 1 && (node.matches(own) || node.matches("[data-id]") &&
  (node.contains(document.activeElement) || !free && node.matches(":hover") || $("input:checked", node)));
// Who has scrolled into a list of what is newest reads there.
const touched = (list) => !free && list.matches("[data-list]") &&
  (list.matches(":hover, :focus-within") || $("input:checked", list) || list.dataset.list && list.getBoundingClientRect().top < 0);
const flash = (node) => { node.classList?.remove("fresh"); void node.offsetWidth; node.classList?.add("fresh"); };

// What differs at the end of a text, so that a selection at its beginning stays.
const difference = (old, fresh) => (fresh.startsWith(old) ? [old.length, 0, fresh.slice(old.length)] : [0, old.length, fresh]);

// Makes `old` what `fresh` is, keeping the elements that are the same.
function merge(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType === 3 && fresh.nodeType === 3) return old.replaceData(...difference(old.data, fresh.data));
  if (old.nodeType !== 1 || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (inHand(old)) { if (!old.matches(own)) skipped++; return; }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const still = touched(old);
  const known = new Map([...old.childNodes].filter(key).map((one) => [key(one), [one, one.dataset.v]]));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const id = key(wanted);
    const [there, v] = known.get(id) || [];
    // A list of what is newest that nobody touches is written anew in place: its rows push nothing.
    const same = !still && old.dataset.list ? at : id ? there : at && !key(at) && at.nodeName === wanted.nodeName ? at : null;
    if (!same && still && id) { skipped++; newer++; continue; }
    if (!same) { old.insertBefore(wanted, at); if (id) flash(wanted); continue; }
    if (same !== at && !still) old.insertBefore(same, at);
    if (same === at || !still) at = same.nextSibling;
    merge(same, wanted);
    if (id && v !== wanted.dataset.v) flash(same);
  }
  while (at) { const following = at.nextSibling; if (still && key(at) || inHand(at)) skipped++; else at.remove(); at = following; }
}

// -- the stream: tabs share one --

const channel = "BroadcastChannel" in window ? new BroadcastChannel("wakeful") : null;
let heard = clock();
let lostAt = null;
let source = null;
let release = null;
let leaving = null;

function hear(kind, data) {
  heard = clock();
  if (data.now) { offset = data.now - Date.now(); sign(data.verdict); }
  if (lostAt || kind === "hello") { lostAt = null; touchAll(); }
  show("live");
  if (kind === "changed") for (const one of regions) if (one.streams.some((name) => data.streams.includes(name))) one.touch();
  if (kind === "closing" && data.reason === "unauthorized") location.reload();
}

function lose() {
  if (lostAt || document.hidden) return;
  lostAt = new Date();
  show("lost");
  sign("unsure");
}

function show(word) {
  const live = $(".live");
  if (!live) return;
  live.dataset.state = word;
  write(live, word === "lost" ? "no server" : holding ? "held" : word);
  page.classList.toggle("lost", word === "lost");
  const notice = $("#lost");
  if (word !== "lost") notice?.remove();
  else if (!notice) {
    const text = `This page lost the server at ${lostAt.toLocaleTimeString("en-GB")} and is trying again. What you see is from then.`;
    ($("#verdict") || $("main")).prepend(make("p", { id: "lost", className: "notice", role: "alert" }, text));
  }
}

function listen() {
  source?.close();
  source = new EventSource("/ui/stream");
  for (const kind of ["hello", "changed", "beat", "closing"])
    source.addEventListener(kind, ({ data }) => { const said = JSON.parse(data); hear(kind, said); channel?.postMessage({ kind, data: said }); });
  source.onerror = () => { channel?.postMessage({ kind: "lost" }); lose(); if (source?.readyState === 2) setTimeout(listen, 1e3); };
}

function lead() {
  if (release) return;
  // Asks once, and again when somebody looks at what was hidden meanwhile.
  release = () => {};
  const stay = (resolve) => {
    release = () => { source?.close(); source = release = null; resolve(); };
    document.hidden ? release() : listen();
  };
  if (navigator.locks) navigator.locks.request("wakeful-stream", () => new Promise(stay));
  else stay(() => {});
}
if (channel) channel.onmessage = ({ data }) => (data.kind === "lost" ? lose() : hear(data.kind, data.data));
document.addEventListener("visibilitychange", () => {
  clearTimeout(leaving);
  if (document.hidden) leaving = setTimeout(() => release?.(), 3e4);
  else { heard = clock(); lead(); touchAll(); }
});
if (page.dataset.page) {
  lead();
  // Signs of life come every five seconds.
  setInterval(() => clock() - heard > 14e3 && lose(), 1000);
  // What depends on the time alone, such as lateness, is looked at again without an event.
  setInterval(() => lostAt || touchAll(), 6e4);
}

// -- times --

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function span(ms) {
  let left = Math.max(0, Math.floor(ms / 1000));
  const first = UNITS.findIndex(([size]) => left >= size);
  return UNITS.slice(first < 0 ? 3 : first).slice(0, 2).map(([size, name], index) => {
    const count = Math.floor(left / size);
    left %= size;
    return count || !index ? `${count} ${name}` : "";
  }).join(" ").trim();
}
export function tick() {
  const now = Date.now() + offset;
  for (const one of $$("time[data-until]")) {
    const left = Date.parse(one.dataset.until) - now;
    write(one, left > 0 ? `in ${span(left)}` : "now");
    // What was to come may have given way to what follows, without an event.
    if (left <= 0 && left > -3000) regions.find(({ id }) => one.closest(`#${id}`))?.touch();
  }
  for (const one of $$("time[data-since], time[data-ago]")) {
    const { since, ago } = one.dataset;
    write(one, span(now - Date.parse(since || ago)) + (ago ? " ago" : ""));
  }
  write($("time[data-clock]"), new Date(now).toLocaleString("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: page.dataset.zone }).replace(",", ""));
}
setInterval(() => document.hidden || tick(), 1000);
tick();

// -- actions --

export const UNREACHED = "The server did not answer. Nothing is known to have changed.";
const bar = $("#undo");
export const KEPT = "wakeful-undo";
let hiding = null;
export function tell(text, action) {
  clearTimeout(hiding);
  bar.replaceChildren(make("span", {}, text));
  if (action) {
    sessionStorage.setItem(KEPT, action);
    bar.append(make("button", { className: "btn bare", type: "button", onclick: () => use((found) => found.undo()) }, "Undo"));
  }
  bar.hidden = false;
  hiding = setTimeout(() => (bar.hidden = true), 1e4);
}
const told = sessionStorage.getItem("wakeful-told");
if (told) { sessionStorage.removeItem("wakeful-told"); tell(...JSON.parse(told)); }

// What buttons and keys do, dialogs and the results of find are loaded when they are first wanted.
const more = () => import(page.dataset.more);
function use(how) { more().then(how, () => tell(UNREACHED)); }

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) { event.preventDefault(); use((found) => found.act(button)); }
});

$("form.find input")?.addEventListener("focus", more, { once: true });
document.addEventListener("focusin", ({ target }) => {
  const mark = target.closest(".tl td.cut a");
  if (mark) write($("[data-aloud]"), `${$("th", mark.closest("tr")).textContent.trim()}: ${mark.getAttribute("aria-label")}`);
});

// -- keys: what they do is loaded with the first one --

export function hold() {
  holding = !holding;
  show(lostAt ? "lost" : "live");
  document.dispatchEvent(new CustomEvent("held", { detail: holding }));
  if (!holding) touchAll();
}
export const quiet = () => localStorage.getItem("wakeful-keys") === "off";
let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]") || event.defaultPrevented) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select") || event.key === " " && event.target.matches("button, a, input, summary, pre")) return;
  const leads = Date.now() - going < 1500;
  const along = /^Arrow[LR]/.test(event.key) && event.target.closest(".tl a");
  if (!along && (quiet() && event.key !== "?" || !"/gjkx.yu ?".includes(event.key) && !leads)) return;
  event.preventDefault();
  going = event.key === "g" ? Date.now() : 0;
  use((found) => found.press(event.key, leads));
});

// The server writes times in the reader's zone once it knows it; what is here already is fetched again.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (page.dataset.zone && zone && zone !== page.dataset.zone) {
  document.cookie = `wakeful-zone=${encodeURIComponent(zone)}; Path=/; Max-Age=31536000; SameSite=Strict`;
  page.dataset.zone = zone;
  write($("[data-place]"), zone);
  touchAll();
}
page.classList.add("script");
for (const one of $$("[data-keys]")) one.hidden = false;
