// Fire times per second of croner: node croner_rates.mjs FOLDER SECONDS, the same mix as cron_rates.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, budget] = [process.argv[2], Number(process.argv[3])];
const { Cron } = createRequire(pathToFileURL(path.resolve(folder) + "/"))("croner");
const python = readFileSync(new URL("./cron_rates.py", import.meta.url), "utf8");
const mix = [...python.match(/MIX = \[(.*?)\]/s)[1].matchAll(/"([^"]+)"/g)].map((found) => found[1]);
const START = new Date("2026-01-01T00:00:00Z");
const STEPS = 200;
const now = () => Number(process.hrtime.bigint()) / 1e9;

function stepper(expression, zone) {
  // A fixed offset is croner's short way for UTC.
  const cron = new Cron(expression, zone === "UTC" ? { utcOffset: 0, paused: true } : { timezone: zone, paused: true });
  let at = START;
  return () => (at = cron.nextRun(at));
}

function stepping(zone) {
  let count = 0;
  let spent = 0;
  while (spent < budget) {
    const steppers = mix.map((expression) => stepper(expression, zone));
    const began = now();
    for (let k = 0; k < STEPS; k++) for (const step of steppers) step();
    spent += now() - began;
    count += STEPS * mix.length;
  }
  return count / spent;
}

function parsing(zone) {
  let count = 0;
  const began = now();
  while (now() - began < budget / 2) {
    for (const expression of mix) stepper(expression, zone)();
    count += mix.length;
  }
  return count / (now() - began);
}

console.log(
  JSON.stringify({
    utc_per_s: stepping("UTC"),
    new_york_per_s: stepping("America/New_York"),
    parse_utc_per_s: parsing("UTC"),
    parse_new_york_per_s: parsing("America/New_York"),
  }),
);
