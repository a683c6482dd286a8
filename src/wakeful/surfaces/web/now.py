"""`/`: is all well, and what needs a person?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.budgets.rules import in_units
from wakeful.domains.agents.budgets.spending import limits_of
from wakeful.domains.agents.naming import wake_job
from wakeful.domains.delivery.tables import DeliveryFilter, Outbox
from wakeful.domains.delivery.views import delivery_text, list_connectors, list_deliveries
from wakeful.kernel.model.job import Job, Run, job_views
from wakeful.kernel.model.run import run_views
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.kernel.views.history import lately
from wakeful.kernel.views.ledger import Tally
from wakeful.kernel.views.records import Alert, alert_views
from wakeful.kernel.views.statistics import Figures, figures
from wakeful.kernel.views.timeline import Band, Row, Timeline, slept, timeline
from wakeful.store.interface import Transaction
from wakeful.store.records import RunDetails
from wakeful.store.runs import RunFilter
from wakeful.surfaces.web.deliveries import look_of as look_of_delivery
from wakeful.surfaces.web.drawings.bars import meter
from wakeful.surfaces.web.drawings.timeline import draw_back, draw_head, draw_rows, rows_with_room
from wakeful.surfaces.web.incidents import ASKS, place_of, subject_of
from wakeful.surfaces.web.marks import look_of_job
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage
from wakeful.surfaces.web.remembering import Remembered
from wakeful.surfaces.web.rendering import Times, span
from wakeful.triggers import to_ms

LEDGERS: Remembered[tuple[Tally, list[Band]]] = Remembered()
TIMELINES: Remembered[Timeline] = Remembered()
FIGURES: Remembered[tuple[Figures, int]] = Remembered()
NEEDS_SHOWN, NEEDS_NAMED = 4, 4  # in full, and by name alone
NEXT_SHOWN = 5
RUNNING_SHOWN = 8
SAID_SHOWN = 4
SAID = "sent"  # the outcome of a run whose agent had something to say
ACTIONS_READ, AGENTS_READ, BEATS_READ = 100, 20, 100
STILL = ("success", "noop")
#: Incidents after which the last run can be tried again, and how it ended.
FAILING, BAD = ("disabled", "failing", "failed"), ("error", "timeout", "crashed", "unknown")
ANSWERS = ("approve", "reject", "acknowledge")
#: Why a run starts without a person: a slot that has two successes of such runs was done twice.
BY_ITSELF = ("schedule", "catch_up", "recovery", "retry", "after", "approval")
HOUR_MS = 3_600_000
SPANS = {"12h": (12 * HOUR_MS, 2), "day": (24 * HOUR_MS, 4), "week": (7 * 24 * HOUR_MS, 24)}


async def of_today(asked: PageRequest) -> tuple[Tally, list[Band]] | None:
    """What became of the day's slots, and when the machine slept; None while many are counted for the first time."""
    midnight = asked.times.midnight()

    async def find() -> tuple[Tally, list[Band]]:
        ledger = await asked.scheduler.server_side.get_ledger(None, lambda _: midnight, asked.rights)
        return ledger.total, await asked.scheduler.read(lambda tx: slept(tx, midnight))

    return await LEDGERS.ask_soon(asked.scheduler, str(midnight), find)


async def verdict(asked: PageRequest) -> dict[str, Any]:
    """What became of the day's slots."""
    found = await of_today(asked)
    return {"tally": found[0], "slept": found[1]} if found is not None else {"tally": None}


async def needs(asked: PageRequest) -> dict[str, Any]:
    """What waits for a person: questions first, then incidents that nobody has seen."""
    midnight = asked.times.midnight()

    def work(tx: Transaction) -> tuple[list[Run], list[Alert], int, list[int], dict[str, Again]]:
        asking = tx.runs.matching(RunFilter(status="waiting", phase=APPROVAL, limit=NEEDS_SHOWN))
        number = len(asking) if len(asking) < NEEDS_SHOWN else tx.runs.open_counts().get(APPROVAL, 0)
        alerts = tx.alerts.awaited(ASKS, NEEDS_SHOWN + NEEDS_NAMED)
        done = [one.at for one in tx.actions.before(None, ACTIONS_READ) if one.what in ANSWERS and not one.undone]
        views = alert_views(tx, alerts)
        return (
            run_views(tx, asking),
            views,
            number + tx.alerts.count_awaited(ASKS)[0],
            done,
            {one.id: way for one in views[:NEEDS_SHOWN] if (way := again(tx, one))},
        )

    questions, alerts, number, answered, ways = await asked.scheduler.read(work)
    found: Sequence[Run | Alert] = [*questions, *alerts]
    return {
        "questions": [one for one in found[:NEEDS_SHOWN] if isinstance(one, Run)],
        "alerts": [(one, place_of(one)) for one in found[:NEEDS_SHOWN] if isinstance(one, Alert)],
        "also": [(subject_of(one), one.kind, place_of(one)) for one in found[NEEDS_SHOWN:] if isinstance(one, Alert)],
        "more": max(0, number - NEEDS_SHOWN),
        "again": ways,
        "answered": sum(at >= midnight for at in answered),
        "last_answer": max(answered, default=None),
    }


class Again(NamedTuple):
    """How to try once more what failed: the button, where it leads, and what is said then."""

    words: str
    path: str
    body: str
    said: str


def again(tx: Transaction, alert: Alert) -> Again | None:
    """What the button of an incident tries again: the messages that failed, or the last run of the job."""
    if alert.kind == "delivery_failed":
        failed = tx.of(Outbox).matching(DeliveryFilter("failed", alert.key.partition(":")[2], limit=1))
        if failed:
            number = delivery_text(failed[0].id)
            return Again("Send again", f"/api/deliveries/{number}/requeue", "{}", "It is sent again.")
    elif alert.kind in FAILING and alert.job_id is not None:
        job_id = ids.number_of("job", alert.job_id) or 0
        last = tx.runs.last_of([job_id], 1).get(job_id)
        if last and last[0].outcome in BAD and tx.runs.successor(last[0].id) is None:
            return Again("Try once", f"/api/runs/{ids.run_text(last[0].id)}/retry", "{}", f"Tries {alert.job} once.")
    return None


async def going(asked: PageRequest) -> dict[str, Any]:
    """What runs, and what starts next."""
    hidden = asked.scheduler.host.hidden_kinds

    def work(tx: Transaction) -> tuple[list[tuple[Run, int | None]], int, list[Job]]:
        active = tx.runs.matching(RunFilter(status="active", limit=RUNNING_SHOWN, hidden=hidden))
        views = run_views(tx, active)
        usual = lately(tx, [run.job_id for run in views])
        number = tx.runs.open_counts(hidden).get("active", 0) if len(active) == RUNNING_SHOWN else len(active)
        shown = [(run, usual[run.job_id].usually_ms) for run in views]
        return shown, number, job_views(tx, tx.jobs.soonest(NEXT_SHOWN, hidden))

    running, number, soon = await asked.scheduler.read(work)
    starts = sorted(
        ((at, job.name) for job in soon for at in job.upcoming(NEXT_SHOWN) if to_ms(at) > asked.times.now),
    )[:NEXT_SHOWN]
    return {"running": running, "number": number, "places": asked.scheduler.host.max_running, "starts": starts}


async def line(asked: PageRequest) -> dict[str, Any]:
    """What ran and what is to come."""
    name = asked.query.get("span", "12h")
    reach, hours = SPANS.get(name, SPANS["12h"])
    as_table = asked.query.get("view") == "table"

    async def find() -> Timeline:
        return await asked.scheduler.read(lambda tx: timeline(tx, reach, reach, asked.scheduler.host.hidden_kinds))

    found = await TIMELINES.ask(asked.scheduler, str(reach), find)
    ticks = ticks_of(found, hours, asked.times)
    clock = asked.times.plain
    drawn = list(zip(found.rows, draw_rows(found.rows, found, clock), strict=True))
    shown = drawn if as_table else rows_with_room(drawn)
    return {
        "line": found._replace(others=found.others + len(drawn) - len(shown)),
        "back": draw_back(found, ticks),
        "head": draw_head(found, ticks, clock),
        "rows": [(row, drawing, look_of_job(row.job), say(row, found)) for row, drawing in shown],
        "span": name if name in SPANS else "12h",
        "as_table": as_table,
    }


def is_silent(details: RunDetails | None) -> bool:
    """Whether a run of an agent said nothing: no reply, or one that only acknowledges."""
    output = json.loads(details.output) if details is not None and details.output is not None else None
    return not isinstance(output, dict) or output.get("outcome", SAID) != SAID or not output.get("reply")


def say(row: Row, found: Timeline) -> tuple[str, str]:
    """What stands at the end of a row, and in which tone."""
    job, last = row.job, row.marks[-1] if row.marks else None
    if last is not None and "waiting" in (job.status, last.what):
        return f"waits {span(found.now - last.at)}", "wait"
    if job.status == "disabled":
        return "off", "bad"
    if job.status == "paused":
        return "paused", ""
    if last is not None and last.what == "active":
        return f"running {span(found.now - last.at)}", "run"
    if row.more_ahead and len(row.ahead) > 2:  # the first of them may be late
        return f"every {span(row.ahead[2] - row.ahead[1])}", ""
    return ("", "") if row.ahead else (job.status, "")


def ticks_of(line: Timeline, hours: int, times: Times) -> list[int]:
    """Round hours of the wall clock, so many apart; also on a day on which clocks change."""
    found, at = list[int](), times.whole_hour(line.since)
    while at < line.until:
        if at > line.since and times.hour(at) % hours == 0 and (not found or at - found[-1] > HOUR_MS):
            found.append(at)
        at += HOUR_MS
    return found


async def said(asked: PageRequest) -> dict[str, Any]:
    """What agents said, and whether it arrived."""
    since, agents = asked.times.midnight(), await asked.scheduler.agents.list()
    latest = sorted(agents, key=lambda agent: agent["last_run_at"] or "", reverse=True)[:AGENTS_READ]
    names = [agent["name"] for agent in latest]
    found = await asked.scheduler.read(lambda tx: replies_of(tx, names))
    hushed = await asked.scheduler.read(lambda tx: hushes(tx, names, since))
    has_connectors = bool(await asked.scheduler.read(list_connectors))
    replies = [(one, look_of_delivery(one)) for one in found]
    return {"replies": replies, "hushed": hushed, "connected": has_connectors}


def replies_of(tx: Transaction, agents: Sequence[str]) -> list[dict[str, Any]]:
    """The last messages of these agents, the newest first, however many others were sent since."""
    found = [one for agent in agents for one in list_deliveries(tx, DeliveryFilter(agent=agent, limit=SAID_SHOWN))]
    return sorted(found, key=lambda one: one["created_at"], reverse=True)[:SAID_SHOWN]


class Hush(NamedTuple):
    """An agent that looked and had nothing to say."""

    agent: str
    times: int
    since: int
    last: int


def hushes(tx: Transaction, agents: Sequence[str], since: int) -> list[Hush]:
    """How often agents were woken today and said nothing, since they last said something."""
    beats = {agent: tx.jobs.by_name(wake_job(agent)) for agent in agents}
    numbers = {pair[0].id: agent for agent, pair in beats.items() if pair is not None}
    found = []
    for number, runs in tx.runs.last_of(list(numbers), BEATS_READ).items():
        today = [run for run in runs if run.outcome is not None and (run.started_at or 0) >= since]
        details = tx.runs.details_of([run.id for run in today])
        hushed = [run.outcome in STILL and is_silent(details.get(run.id)) for run in today]
        quiet = today[: hushed.index(False) if False in hushed else len(hushed)]
        if quiet:
            times = [run.started_at or 0 for run in quiet]
            found.append(Hush(numbers[number], len(quiet), times[-1], times[0]))
    return found


async def spend(asked: PageRequest) -> dict[str, Any]:
    """What agents have used of their budget today."""
    agents = await asked.scheduler.agents.list()
    used = sum(agent["spent_today"]["cost"] for agent in agents)
    limits = await asked.scheduler.read(limits_of)
    cap = in_units(limits.caps.cost) if limits.caps.cost is not None else None
    elapsed = max(1, asked.times.now - asked.times.midnight())
    expected = used * 24 * HOUR_MS / elapsed
    return {
        "agents": sorted(agents, key=lambda agent: -agent["spent_today"]["cost"])[:6],
        "used": used,
        "cap": cap,
        "expected": expected,
        "drawing": meter(used, cap or max(used, 1.0), expected),
    }


async def record(asked: PageRequest) -> dict[str, Any]:
    """What stands on record, and that nothing of today is lost or was done twice."""
    today = ids.first_id_at(asked.times.midnight())

    async def find() -> tuple[Figures, int]:
        return await asked.scheduler.read(
            lambda tx: (figures(tx, asked.scheduler.host.hidden_kinds), tx.runs.settled_twice(today, BY_ITSELF))
        )

    found = await of_today(asked)
    known = await FIGURES.ask_soon(asked.scheduler, str(today), find)
    if found is None or known is None:
        return {"figures": None}
    return {"figures": known[0], "lost": found[0].unaccounted, "twice": known[1]}


async def first(asked: PageRequest) -> dict[str, Any]:
    """Whether this is the first visit: nothing is scheduled yet."""
    connectors = await asked.scheduler.read(list_connectors)
    return {"connected": bool(connectors), "agents": bool(await asked.scheduler.agents.list())}


page = WebPage(
    "now",
    "/",
    lambda _: "Now",
    (
        Region("verdict", ("run", "job", "alert", "node"), verdict),
        Region("needs", ("run", "alert", "delivery"), needs),
        Region("going", ("run", "job"), going),
        Region("timeline", ("run", "job", "node"), line),
        Region("said", ("delivery", "heartbeat"), said),
        Region("spend", ("run",), spend),
        Region("record", ("run",), record),
    ),
    lambda _: "wakeful status",
    facts=first,
)
