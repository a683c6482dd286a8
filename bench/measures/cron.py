"""Cron expressions: how many fire times a second each library finds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.contenders import CACHE, HUEY, ROOT, environment
from bench.figures import Run
from bench.measures import Column, Entry, Plan, Table, interleave

CRONER = "croner@11.0.0"
NODE_SCRIPT = ROOT / "bench" / "contenders" / "croner_rates.mjs"


def rates(python: str, library: str, seconds: float, _: Path) -> Run:
    command = [python, "-m", "bench.contenders.cron_rates", library, str(seconds)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    found: Run = json.loads(done.stdout)
    return found


def croner_rates(node: str, seconds: float, _: Path) -> Run:
    done = subprocess.run(
        [node, str(NODE_SCRIPT), str(CACHE / "node"), str(seconds)],
        stdout=subprocess.PIPE, text=True, timeout=120, check=True,
    )  # fmt: skip
    found: Run = json.loads(done.stdout)
    return found


def fetch_croner() -> str | None:
    """node, with croner installed beside the other peers; None where there is no node or it cannot be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    folder = CACHE / "node"
    if not (folder / "node_modules" / "croner").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--silent", "--no-save", "--no-package-lock", "--prefix", str(folder), CRONER]
        if subprocess.run(command, timeout=300, check=False, stdout=subprocess.DEVNULL).returncode:
            return None
    return node


def measure(plan: Plan) -> list[Table]:
    seconds = 0.3 if plan.quick else 1.0
    table = Table(
        "cron",
        "Cron: fire times per second, a mix of 20 expressions",
        [
            Column("utc_per_s", "UTC /s", "more"),
            Column("new_york_per_s", "New York /s", "more"),
            Column("parse_utc_per_s", "parse + first, UTC /s", "more"),
            Column("parse_new_york_per_s", "parse + first, New York /s", "more"),
        ],
        notes=[
            "Successive times, each asked from the one before (`next_after`); `upcoming` asks for 200 at once.",
            "APScheduler counts weekdays from Monday, so the expressions with weekdays are other work for it.",
        ],
        ours="Wakeful",
    )
    entries: list[Entry] = [
        ("Wakeful", partial(rates, sys.executable, "wakeful", seconds)),
        ("Wakeful, upcoming", partial(rates, sys.executable, "wakeful-upcoming", seconds)),
    ]
    if plan.peers:
        libraries = ("cronsim", "croniter", "apscheduler")
        entries += [(name, partial(rates, HUEY.python, name, seconds)) for name in libraries]
        node = fetch_croner()
        if node is None:
            table.notes.append("croner (JavaScript) was left out: node and npm are not there.")
        else:
            entries.append(("croner (JavaScript)", partial(croner_rates, node, seconds)))
    table.peers_in = tuple(name for name, _ in entries[2:])
    interleave(plan, table, entries)
    return [table]
