"""`/runs` and `/runs/ID`: what happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from wakeful import ids
from wakeful.kernel.model.job import Run
from wakeful.kernel.model.run import run_views
from wakeful.routing.rendering import trace_for
from wakeful.store.interface import Transaction
from wakeful.store.runs import RunFilter
from wakeful.surfaces.api.run_logs import tail_of
from wakeful.surfaces.web.marks import OPEN, OUTCOMES, look_of_run
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage, command
from wakeful.surfaces.web.rendering import ansi
from wakeful.threads import room
from wakeful.triggers import to_ms

SHOWN = 50
LOG_SHOWN = 64 * 1024
CHAIN_SHOWN = 20
WORKFLOW_PHASES = ("preparing", "prepared", "mutating", "mutated", "emitting", "committed")


def took(run: Run) -> int | None:
    """How long it took; None while it runs, or if it never started."""
    if run.started_at is None or run.finished_at is None:
        return None
    return to_ms(run.finished_at) - to_ms(run.started_at)


def late(run: Run) -> int | None:
    """How long after its slot it started."""
    if run.started_at is None or run.slot is None:
        return None
    return max(0, to_ms(run.started_at) - to_ms(run.slot))


async def listed(asked: PageRequest) -> dict[str, Any]:
    """A page of runs, the newest first."""
    query = asked.query
    outcome = query.get("outcome", "")
    cursor = query.get("cursor", "")
    filters = RunFilter(
        outcome=outcome if outcome in OUTCOMES else None,
        status=outcome if outcome in OPEN else None,
        before_id=ids.number_of("run", cursor),
        limit=SHOWN + 1,
        hidden=asked.scheduler.host.hidden_kinds,
    )
    runs = await asked.scheduler.server_side.list_runs(filters, asked.rights, job=query.get("job") or None)
    kept = {key: value for key, value in query.items() if key != "cursor" and value}
    more = f"/runs?{urlencode({**kept, 'cursor': runs[SHOWN - 1].id})}" if len(runs) > SHOWN else None
    return {
        "runs": [(run, look_of_run(run), took(run), late(run)) for run in runs[:SHOWN]],
        "more": more,
        "outcomes": {**{name: look.word for name, look in OUTCOMES.items()}, **{n: k.word for n, k in OPEN.items()}},
    }


page = WebPage(
    "runs",
    "/runs",
    lambda _: "Runs",
    (Region("runs", ("run",), listed),),
    lambda asked: command("runs", asked.query, {"job": ""}),
)


async def the_run(asked: PageRequest) -> Run:
    return await asked.scheduler.server_side.get_run(asked.path["id"], asked.rights)


async def head(asked: PageRequest) -> dict[str, Any]:
    """What it was, why it started, and how it ended."""
    run = await the_run(asked)
    return {"run": run, "look": look_of_run(run), "took": took(run), "late": late(run)}


async def why(asked: PageRequest) -> dict[str, Any]:
    found = await asked.scheduler.server_side.explain(asked.path["id"], asked.rights)
    return {"sentences": found.sentences}


def _tail(path: Path, run: Run) -> str:
    """The end of what it printed."""
    tail = tail_of(path, LOG_SHOWN, run)
    with tail.file as file:
        return file.read(LOG_SHOWN).decode("utf-8", "replace")


async def output(asked: PageRequest) -> dict[str, Any]:
    """What it returned and what it printed."""
    run = await the_run(asked)
    text = await room("logs").call(_tail, asked.scheduler.log_path(run.id), run)
    shown = run.output
    return {
        "run": run,
        "log": ansi(text),
        "length": len(text),
        "output": shown if isinstance(shown, str) else json.dumps(shown, indent=1, ensure_ascii=False),
        "has_output": shown is not None,
        "trace": trace_for(asked.caller, run.trace),
    }


async def facts(asked: PageRequest) -> dict[str, Any]:
    run = await the_run(asked)
    return {"run": run, "deliveries": getattr(run, "deliveries", []) or [], "usage": run.usage or {}}


async def chain(asked: PageRequest) -> dict[str, Any]:
    """All attempts at the same thing, and how far this one came."""
    run = await the_run(asked)

    def work(tx: Transaction) -> list[Run]:
        first = ids.number_of("run", run.id) or 0
        rows = [tx.runs.get(first)]
        while rows[0] is not None and rows[0].retry_of is not None and len(rows) < CHAIN_SHOWN:
            rows.insert(0, tx.runs.get(rows[0].retry_of))
        while rows[-1] is not None and (after := tx.runs.successor(rows[-1].id)) and len(rows) < CHAIN_SHOWN:
            rows.append(tx.runs.get(after))
        return run_views(tx, [row for row in rows if row is not None])

    attempts = await asked.scheduler.read(work)
    return {
        "run": run,
        "attempts": [(one, look_of_run(one), took(one)) for one in attempts],
        "phases": phases_of(run),
    }


def phases_of(run: Run) -> list[tuple[str, str]]:
    """The way of a run, each part with its state: `done`, `here` or `ahead`."""
    if run.kind == "workflow":
        names = list(WORKFLOW_PHASES)
        at = names.index(run.phase) if run.phase in names else -1 if run.outcome is None else len(names)
    else:
        names = ["due", "started", *(["waits"] if run.status == "waiting" or run.approvals else []), "ended"]
        open_at = {"queued": 0, "active": 1, "waiting": 2}
        at = len(names) if run.outcome is not None else open_at.get(run.status, 0)
        if run.outcome is not None and run.started_at is None:
            names.remove("started")
            at = len(names)
    return [(name, "done" if n < at else "here" if n == at else "ahead") for n, name in enumerate(names)]


run_page = WebPage(
    "run",
    "/runs/{id}",
    lambda asked: asked.path["id"],
    (
        Region("run", ("run",), head),
        Region("why", ("run",), why),
        Region("chain", ("run",), chain),
        Region("output", ("run",), output),
        Region("facts", ("run", "delivery"), facts),
    ),
    lambda asked: f"wakeful show {asked.path['id']}",
    tab="runs",
)
