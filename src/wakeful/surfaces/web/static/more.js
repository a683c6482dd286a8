// Dialogs, the list of keys, and the results of find: loaded when they are first wanted.

import { $, $$, hold, make, quiet, undo } from "DASHBOARD";

const dialog = document.getElementById("dialog");
export function askFirst(title, { note, confirm, yes, from, lines = [] }) {
  return new Promise((resolve) => {
    const fields = {};
    const field = (name, label, required) => make("label", { textContent: `${label} ` }, (fields[name] = make("input", { name, required, autocomplete: "off" })));
    dialog.replaceChildren(make("form", { method: "dialog" }, make("h2", { id: "dialog-title", textContent: title }),
      ...lines.map((text) => make("p", { textContent: text })),
      ...(note === undefined ? [] : [field("note", note || "Note", false)]),
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
  ".": [() => row() && $("button", row())?.focus(), "actions"],
  y: [() => row() && $("a[data-why]", row())?.click(), "why"],
  u: [undo, "undo"],
  " ": [hold, "hold updates"],
  "?": [help, "this list"],
};
export function press(key, leads) {
  if (leads && PLACES[key]) location.assign(PLACES[key]);
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
