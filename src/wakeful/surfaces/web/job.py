"""`/jobs/NAME` and `/jobs/NAME/slots/TIME`: why a job is where it is, and what became of one moment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.kernel.model.job import Job, Run
from wakeful.kernel.rules.ledger import fate_of
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.kernel.views.actions import action_view
from wakeful.kernel.views.history import stats
from wakeful.routing.rendering import job_shape
from wakeful.store.interface import Transaction
from wakeful.store.runs import RunFilter
from wakeful.store.stretches import Span, Stretch
from wakeful.surfaces.web.drawings.bars import durations, ledger_bar
from wakeful.surfaces.web.marks import look_of_job, look_of_run
from wakeful.surfaces.web.more import about
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage
from wakeful.surfaces.web.rendering import because
from wakeful.surfaces.web.runs import late, took
from wakeful.triggers.moments import read_moment, to_ms

DAY_MS = 86_400_000
SPANS = {"today": 1, "7d": 7, "30d": 30}
RUNS_SHOWN, DURATIONS_SHOWN, NEXT_SHOWN, ERRORS_READ = 20, 60, 5, 300
PASSED_SHOWN, ACTIONS_SHOWN = 10, 8
PASSED = ("passed_over", "merged", "missing")
PARTS = (
    ("ran", "l1"),
    ("running", "l2"),
    ("waiting", "l5"),
    ("passed over", "l3"),
    ("merged", "l4"),
    ("missing", "l5"),
)


def name_of(asked: PageRequest) -> str:
    return asked.path["name"]


async def the_job(asked: PageRequest) -> Any:
    return await asked.scheduler.server_side.get_job(name_of(asked), asked.rights)


async def head(asked: PageRequest) -> dict[str, Any]:
    """What it is, and when it comes next."""
    job = await the_job(asked)
    number = ids.number_of("run", job.current_run) if job.current_run is not None else None
    run = await asked.scheduler.read(lambda tx: tx.runs.get(number)) if number is not None else None
    asks = run is not None and run.status == "waiting" and run.phase == APPROVAL
    return {"job": job, "look": look_of_job(job), "may_write": asked.may_write(job.kind), "asks": asks}


async def why(asked: PageRequest) -> dict[str, Any]:
    """Why it is where it is."""
    found = await asked.scheduler.server_side.explain(name_of(asked), asked.rights)
    return {"sentences": found.sentences}


async def slots(asked: PageRequest) -> dict[str, Any]:
    """What became of every slot, in figures."""
    job = await the_job(asked)
    span = asked.query.get("span", "7d")
    days = SPANS.get(span, 7)
    since = asked.times.midnight() if days == 1 else asked.times.now - days * DAY_MS
    ledger = await asked.scheduler.server_side.get_ledger(job.id, lambda _: since, asked.rights)
    tally = ledger.total
    counts = {
        "ran": tally.ran, "running": tally.running, "waiting": sum(tally.waiting.values()),
        "passed over": sum(tally.passed_over.values()), "merged": tally.merged, "missing": tally.missing,
    }  # fmt: skip
    number = ids.number_of("job", job.id) or 0
    figures = await asked.scheduler.read(lambda tx: stats(tx, number, since))
    lately = [run for run in await _runs(asked, job.id, ERRORS_READ) if to_ms(run.due_at) >= since]
    delays = sorted(to_ms(run.started_at) - to_ms(run.slot) for run in lately if run.started_at and run.slot)
    costs = [run.usage["cost"] for run in lately if run.usage and run.usage.get("cost")]
    return {
        "late": (delays[(len(delays) - 1) // 2], delays[-(-len(delays) * 99 // 100) - 1]) if delays else None,
        "costs": (sum(costs) / len(costs), sum(costs), len(costs)) if costs else None,
        "job": job,
        "tally": tally,
        "bar": ledger_bar([(cls, counts[name]) for name, cls in PARTS]),
        "figures": figures,
        "span": span if span in SPANS else "7d",
        "spans": SPANS,
    }


async def lasted(asked: PageRequest) -> dict[str, Any]:
    """How long the last runs took."""
    job = await the_job(asked)
    runs = await _runs(asked, job.id, DURATIONS_SHOWN)
    runs = [run for run in reversed(runs) if run.outcome is not None]
    lasting = [took(run) for run in runs]
    known = sorted(ms for ms, run in zip(lasting, runs, strict=True) if ms is not None and run.outcome == "success")
    usual = known[(len(known) - 1) // 2] if known else None
    most = known[-(-len(known) * 95 // 100) - 1] if known else None
    edits = await asked.scheduler.read(lambda tx: _edits(tx, job))
    marks = [(next((n for n, run in enumerate(runs) if to_ms(run.due_at) >= at), None), words) for at, words in edits]
    lines = [(number, words) for number, words in marks if number]
    return {"runs": runs, "drawing": durations(runs, lasting, usual, most, lines), "usual": usual, "most": most}


def _edits(tx: Transaction, job: Job) -> list[tuple[int, str]]:
    """When the job was changed, as far as it is on record: other times, and other edits."""
    number = ids.number_of("job", job.id) or 0
    found = {past.until: "other times" for past in tx.stretches.past_triggers(number)}
    found |= {one.at: "edited" for one in tx.actions.about(number, ACTIONS_SHOWN) if one.what == "edit"}
    if job.revision > 1:
        found[to_ms(job.updated_at)] = f"revision {job.revision}"
    return sorted(found.items())


async def _runs(asked: PageRequest, job_id: str, limit: int) -> list[Run]:
    return await asked.scheduler.server_side.list_runs(RunFilter(limit=limit), asked.rights, job=job_id)


class Trouble(NamedTuple):
    """Runs that failed in the same way."""

    run: Run
    """The last of them."""
    times: int
    first: Run


def grouped(runs: Sequence[Run]) -> list[Trouble]:
    """Failures by type and text, without the numbers in it; the most frequent first."""
    groups: dict[tuple[str | None, str], list[Run]] = {}
    for run in runs:
        if run.outcome in ("error", "timeout", "crashed"):
            text = "".join("0" if letter.isdigit() else letter for letter in (run.error or run.outcome))[:200]
            groups.setdefault((run.error_type, text), []).append(run)
    found = [Trouble(one[0], len(one), one[-1]) for one in groups.values()]
    return sorted(found, key=lambda trouble: -trouble.times)[:6]


async def errors(asked: PageRequest) -> dict[str, Any]:
    """What went wrong, grouped."""
    job = await the_job(asked)
    runs = await _runs(asked, job.id, ERRORS_READ)
    return {"troubles": [(one, look_of_run(one.run)) for one in grouped(runs)], "read": len(runs)}


async def ahead(asked: PageRequest) -> dict[str, Any]:
    """When it starts next."""
    job = await the_job(asked)
    return {"times_ahead": job.upcoming(NEXT_SHOWN), "own_zone": job.trigger.own_zone}


async def definition(asked: PageRequest) -> dict[str, Any]:
    """What it is, as it was written."""
    job = await the_job(asked)
    shown = job_shape(job, asked.caller, asked.scheduler.host.default_zone)
    payload = shown["payload"] if isinstance(shown["payload"], dict) else {"payload": shown["payload"]}
    fields = {name: value for name, value in {**payload, **job.options}.items() if value not in (None, [], {}, "")}
    return {
        "job": job,
        "may_write": asked.may_write(job.kind),
        "fields": {name: as_line(name, value) for name, value in fields.items()},
    }


def as_line(name: str, value: Any) -> str:
    """A value as a person writes it: a command as in a shell, lists and sections on one line."""
    if name == "argv" and isinstance(value, list):
        return shlex.join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')}: {as_line(key, one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(as_line("", one) for one in value)
    return value if isinstance(value, str) else json.dumps(value)


async def actions(asked: PageRequest) -> dict[str, Any]:
    """Who did what to it."""
    job = await the_job(asked)
    number = ids.number_of("job", job.id) or 0
    found = await asked.scheduler.read(
        lambda tx: [action_view(head, tx.now) for head in tx.actions.about(number, ACTIONS_SHOWN)]
    )
    return {"actions": found, "about": await asked.scheduler.read(lambda tx: about(tx, found))}


async def history(asked: PageRequest) -> dict[str, Any]:
    """Its runs, the newest first."""
    job = await the_job(asked)
    runs = await _runs(asked, job.id, RUNS_SHOWN)
    number, until = ids.number_of("job", job.id) or 0, asked.times.now
    first = min((to_ms(run.due_at) for run in runs), default=until - DAY_MS)
    passed = await asked.scheduler.read(lambda tx: tx.stretches.within(number, Span(first - 1, until)))
    items: list[tuple[int, Any]] = [(to_ms(run.due_at), (run, look_of_run(run), took(run), late(run))) for run in runs]
    items += [(one.last_slot, pass_of(one)) for one in passed if fate_of(one.fate).what in PASSED]
    items.sort(key=lambda item: -item[0])
    return {"items": [item for _, item in items[: RUNS_SHOWN + PASSED_SHOWN]], "job": job}


class SkippedSlots(NamedTuple):
    """Slots in a row that did not run, for one reason."""

    first: int
    last: int
    slots: int
    word: str
    why: str


def pass_of(stretch: Stretch) -> SkippedSlots:
    fate = fate_of(stretch.fate)
    words = {"merged": "another run covers it", "missing": "nothing could run, and it was not caught up"}
    why = words.get(fate.what) or because(fate.why)
    return SkippedSlots(stretch.first_slot, stretch.last_slot, stretch.slots, fate.what.replace("_", " "), why)


page = WebPage(
    "job",
    "/jobs/{name:path}",
    lambda asked: asked.path["name"],
    (
        Region("job", ("job", "run"), head),
        Region("why", ("job", "run"), why),
        Region("slots", ("run",), slots),
        Region("durations", ("run",), lasted),
        Region("errors", ("run",), errors),
        Region("ahead", ("job", "run"), ahead),
        Region("definition", ("job",), definition),
        Region("actions", ("job",), actions),
        Region("runs", ("run",), history),
    ),
    lambda asked: f"wakeful explain {shlex.quote(asked.path['name'])}",
    tab="jobs",
)


async def slot(asked: PageRequest) -> dict[str, Any]:
    """What became of one moment."""
    at = read_moment(asked.path["time"], "slot")
    found = await asked.scheduler.server_side.get_slot(name_of(asked), at, asked.rights)
    return {"slot": found, "runs": [(run, look_of_run(run), took(run), late(run)) for run in found.runs]}


slot_page = WebPage(
    "slot",
    "/jobs/{name:path}/slots/{time}",
    lambda asked: f"{asked.path['name']} {asked.path['time']}",
    (Region("slot", ("run", "job"), slot),),
    lambda asked: f"wakeful explain {shlex.quote(asked.path['name'])}",
    tab="jobs",
)
