"""`doctor`: looks at everything that could keep jobs from running, and says what to do about it."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from wakeful import Job, Run, Scheduler, __version__
from wakeful.console.humanize import count, span, stamp, zone_named
from wakeful.console.opening import now_ms, read, server_of
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Cell, Json, console, print_beside, print_json
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import alert_rules
from wakeful.kernel.rules.alerting import closer_look
from wakeful.kernel.rules.approval import APPROVAL
from wakeful.kernel.rules.holding import Hold, hold_of, hold_words
from wakeful.kernel.views.orphans import orphans
from wakeful.references import adopt
from wakeful.store.jobs import JobFilter
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.approval import question_of, questions
from wakeful.surfaces.cli.doctor_places import Check, configuration_of, disk_of, folder_of
from wakeful.surfaces.cli.job_warnings import COMMAND, missing_predecessors, predecessor, warnings_about_work
from wakeful.surfaces.cli.nodes import serving
from wakeful.surfaces.cli.service_units import look as look_at_service
from wakeful.triggers import system_zone, to_ms

if TYPE_CHECKING:
    from wakeful import Alert
    from wakeful.store.interface import Transaction

OLDEST_PYTHON = (3, 11)
#: No clock that is right shows a time before this version was made, or in the next century.
PLAUSIBLE = range(1_767_225_600_000, 4_102_444_800_000)
STEP_MS = 60_000
NO_HANDLER = "kind:"
MOST_EXAMINED = 500  # jobs whose program, directory and predecessor are looked for
MOST_COUNTED = 1_000  # jobs that wait for a server
MOST_NAMED = 20  # jobs without a handler, of one kind
MOST_ASKED = 5  # runs that wait for a person
BUSY = ("running", "waiting")
START_PROGRAM = "start the program that handles them: wakeful serve --app module:scheduler"


class Doubts(NamedTuple):
    """What looks wrong about jobs that are to run, and how many were looked at."""

    looked_at: int
    found: list[tuple[str, str, str]]  # a job, what is wrong, and what helps
    elsewhere: bool = False  # commands run on other machines only, and were not looked at
    agents: Sequence[tuple[str, Mapping[str, Any]]] = ()  # agents that run from here, and how


class Inside(NamedTuple):
    """What the store itself knows."""

    jobs: int
    waiting: int  # jobs that will start by time
    unhandled: list[tuple[Job, int]]  # a job that is due without a handler, with how many more of its kind there are
    alerts: list[Alert]
    server: dict[str, Any] | None
    alive_at: int
    orphans: list[str]  # jobs that code declared and no running program does
    questions: list[Run]  # runs that wait for a person; the newest
    asked: int  # how many there are
    doubts: Doubts
    hold: Hold | None = None  # on everything
    notified: str | None = None  # where alerts are sent
    nodes: Sequence[str] = ()  # that run jobs now


@app.command("doctor", rich_help_panel=SERVER)
def doctor(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Check for everything that could keep jobs from running. Exits with 1 if there is a problem."""
    place = chosen(ctx, db)
    checks = examine(place, now_ms())
    well = all(check.ok for check in checks)
    if as_json:
        print_json({"ok": well, "store": str(place), "checks": [_as_data(check) for check in checks]})
    else:
        _print(checks)
    if not well:
        raise typer.Exit(1)


def _as_data(check: Check) -> dict[str, Any]:
    return check._replace(do=None if check.ok else check.do)._asdict()


def _print(checks: list[Check]) -> None:
    from rich.text import Text

    out = console()
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = ("✓", "green") if check.ok else ("✗", "bold red")
        print_beside(out, Text(f"{mark} ", style).append(f"{check.name:<{width}}  ", "bold"), Cell(check.found))
        if check.do is not None and not check.ok:
            print_beside(out, Text(f"  {'':<{width}}  → ", "yellow"), Cell(check.do, "yellow"))
    wrong = sum(not check.ok for check in checks)
    say()
    say(f"{count(wrong, 'problem')} found" if wrong else "All is well")


def examine(place: StoreLocation, now: int) -> list[Check]:
    """Every check, in the order in which one needs the other."""
    try:
        return _examine(place, now)
    finally:
        adopt({})


def _examine(place: StoreLocation, now: int) -> list[Check]:
    settings = configuration_of(place)
    checks = [_python(), _zones(now), *settings.checks]
    if not place.exists:
        checks += [
            folder_of(place),
            Check("store", ok=True, found=f"none yet at {place}; the first job or server makes it"),
        ]
        return [*checks, *disk_of(place), _clock(now, 0)]
    try:
        inside = read(place, _look, None)
    except (SchedulerError, OSError) as error:
        return [*checks, Check("store", ok=False, found=str(error), do="see the sentence above"), _clock(now, 0)]
    if inside is None:
        nothing = Check("store", ok=True, found=f"none yet at {place}; the first job or server makes it")
        return [*checks, nothing, _clock(now, 0)]
    checks += [_sqlite(), Check("store", ok=True, found=f"{place}, {count(inside.jobs, 'job')}"), folder_of(place)]
    return [
        *checks,
        *disk_of(place),
        _clock(now, inside.alive_at),
        _server(inside),
        *([Check(*found)] if (found := look_at_service()) is not None else []),
        *_hold(inside),
        *_handlers(inside),
        *_approvals(inside),
        *_jobs(inside),
        *_alerts(inside),
        *_notified(inside, settings.notified),
    ]


async def _look(scheduler: Scheduler) -> Inside | None:
    summary = await scheduler.get_summary()
    alerts, hidden = list(await scheduler.list_alerts()), scheduler.host.hidden_kinds
    asked = await questions(scheduler, MOST_NAMED) if summary.open_approvals else []
    server = server_of(scheduler)
    nodes = sorted(node.name for node in serving(await scheduler.list_nodes()))

    def work(tx: Transaction) -> Inside:
        busy = [pair for status in BUSY for pair in tx.jobs.matching(JobFilter(status=status, hidden=hidden))]
        running = (Job(*pair, tx.now) for pair in busy)
        return Inside(
            sum(summary.jobs.values()),
            tx.jobs.armed(MOST_COUNTED, hidden) + sum(job.next_run_at is not None for job in running),
            [found for key, number in summary.parked.items() if key.startswith(NO_HANDLER)
             for found in _first_and_rest(tx, key, number)],
            alerts,
            server,
            to_ms(summary.alive_at) if summary.alive_at is not None else 0,
            orphans(tx) if server is not None else [],
            asked,
            summary.open_approvals,
            _doubts(tx, hidden, {alert.job for alert in alerts if alert.kind == "no_node"}, served=server is not None),
            hold_of(tx.nodes.held()),
            alert_rules(tx).to,
            nodes,
        )  # fmt: skip

    return await scheduler.read(work)


def _unhandled_soon(tx: Transaction, jobs: list[Job]) -> list[tuple[str, str, str]]:
    """Jobs of kinds that no running program handles; those that are due or were declared are reported elsewhere."""
    nodes = [json.loads(node.details) for node in tx.members.alive()]
    kinds = {kind for node in nodes for kind in node.get("kinds", ())}
    return [
        (job.name, f"no running program handles kind {job.kind!r}", START_PROGRAM)
        for job in jobs
        if job.kind not in kinds and job.waiting_for is None and not (job.source == "code" and job.kind == job.name)
    ]


def _unplaced(tx: Transaction, jobs: list[Job]) -> list[tuple[str, str, str]]:
    """Jobs that ask for labels which no running node has."""
    nodes = [set(json.loads(node.details).get("labels", ())) for node in tx.members.alive()]
    asked = [(job, sorted(job.options.get("labels") or ())) for job in jobs]
    return [
        (
            job.name,
            f"no running node is labelled {', '.join(wanted)}",
            f"start one: wakeful serve --labels {','.join(wanted)}",
        )
        for job, wanted in asked
        if wanted and not any(node.issuperset(wanted) for node in nodes)
    ]


def _doubts(tx: Transaction, hidden: tuple[str, ...], alerted: Collection[str | None], *, served: bool) -> Doubts:
    """What looks wrong about the first jobs by name: a bounded number, however many are stored.

    `alerted`: jobs about whose labels an alert is open.
    """
    looked_at = [Job(*pair, tx.now) for pair in tx.jobs.matching(JobFilter(hidden=hidden, limit=MOST_EXAMINED))]
    jobs = [job for job in looked_at if job.enabled]
    missing = missing_predecessors(tx, jobs)
    elsewhere = not tx.exclusive and not _runs_here(tx)
    found = [
        (job.name, f"there is no job {name!r} for it to start after", f"add one, or {_edit(job)} --after JOB")
        for job in jobs
        if (name := predecessor(job)) in missing
    ]
    if served:
        found += [*_unhandled_soon(tx, jobs), *_unplaced(tx, [job for job in jobs if job.name not in alerted])]
    for job in jobs if not elsewhere else ():
        if job.kind == COMMAND and (tx.exclusive or not job.options.get("labels")):
            wrong = [text[0].lower() + text[1:].rstrip(".") for text in warnings_about_work(job, None)]
            found += [(job.name, text, f"put it there, or {_edit(job)}") for text in wrong]
    agents = [(job.payload["agent"], job.payload["runner"]) for job in jobs if _is_agent(job) and not elsewhere]
    return Doubts(len(looked_at), found, elsewhere, agents)


def _is_agent(job: Job) -> bool:
    """Whether the job stands for an agent as a whole."""
    return job.kind == "agent" and job.name.endswith(".wake") and not job.options.get("labels")


def _edit(job: Job) -> str:
    return f"wakeful edit {shlex.quote(job.name)}"


def _runs_here(tx: Transaction) -> bool:
    """Whether a node on this machine runs jobs of a shared store."""
    here = platform.node()
    return any(json.loads(node.details).get("host") == here for node in tx.members.alive())


def _jobs(inside: Inside) -> list[Check]:
    """A job that cannot do its work, one line each; how many were looked at where that is not all."""
    doubts = inside.doubts
    found = [*doubts.found, *_agents(doubts)]
    rest = len(found) - MOST_NAMED
    checks = [Check("job", ok=False, found=f"{name}: {text}", do=remedy) for name, text, remedy in found[:MOST_NAMED]]
    if rest > 0:
        checks.append(Check("job", ok=False, found=f"{count(rest, 'more problem')} like these", do="fix these first"))
    partly = doubts.looked_at == MOST_EXAMINED and inside.jobs > MOST_EXAMINED
    looked = f"the first {doubts.looked_at} of {inside.jobs} by name" if partly else count(doubts.looked_at, "job")
    where = "; commands run on other machines and are not looked at" if doubts.elsewhere else ""
    if not checks or partly:
        checks.append(Check("jobs", ok=True, found=f"looked at {looked}{where}"))
    return checks


def _agents(doubts: Doubts) -> list[tuple[str, str, str]]:
    if not doubts.agents:
        return []
    from wakeful.surfaces.cli.agent_checks import agent_problems

    return agent_problems(doubts.agents)


def _first_and_rest(tx: Transaction, key: str, number: int) -> list[tuple[Job, int]]:
    """The jobs that have waited longest for that handler; the last one also represents the rest."""
    jobs = [Job(*pair, tx.now) for pair in tx.jobs.parked_on(key, tx.now, MOST_NAMED)]
    return [(job, number - len(jobs) if job is jobs[-1] else 0) for job in jobs]


def _python() -> Check:
    found = f"Wakeful {__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return Check("program", ok=sys.version_info >= OLDEST_PYTHON, found=found, do="use Python 3.11 or newer")


def _sqlite() -> Check:
    # Only the store may import its driver; it has, and refuses one that is too old by itself.
    version = getattr(sys.modules.get("sqlite3"), "sqlite_version", None)
    return Check("database", ok=True, found=f"SQLite {version}" if version else "reachable")


def _zones(now: int) -> Check:
    try:
        shown = stamp(now, zone_named(None))
        zone_named("Europe/Berlin")
    except (LookupError, OSError, ValueError) as error:
        return Check("time zones", ok=False, found=f"no zone data: {error}", do="pip install tzdata")
    return Check("time zones", ok=True, found=f"{system_zone()}, it is {shown}")


def _clock(now: int, alive_at: int) -> Check:
    if now not in PLAUSIBLE:
        return Check("clock", ok=False, found="the clock was never set", do="set the date, or let NTP do it")
    behind = alive_at - now
    if behind > STEP_MS:
        found = f"the clock is {span(behind)} behind the last time a server was alive"
        return Check(
            "clock", ok=False, found=found, do="check the date; scheduled times that already ran do not run again"
        )
    return Check("clock", ok=True, found="plausible")


def _server(inside: Inside) -> Check:
    if inside.server is not None:
        several = (
            f"{count(len(inside.nodes), 'node')} running: {', '.join(inside.nodes)}" if len(inside.nodes) > 1 else None
        )
        return Check("server", ok=True, found=several or f"running, process {inside.server.get('pid')}")
    waits = inside.waiting
    many = count(waits, "job") if waits < MOST_COUNTED else f"{MOST_COUNTED} or more jobs"
    found = f"not running, and {many} will not fire" if waits else "not running, and nothing waits"
    return Check("server", ok=not waits, found=found, do="start one: wakeful serve")


def _handlers(inside: Inside) -> list[Check]:
    return [
        Check(
            "handler",
            ok=False,
            found=f"{job.name}{f' and {rest} more are' if rest else ' is'} due, "
            f"but no running program handles kind {job.kind!r}",
            do=_declared_remedy(job.name) if job.name in inside.orphans else START_PROGRAM,
        )
        for job, rest in inside.unhandled
    ] + [
        Check(
            "handler",
            ok=False,
            found=f"{name} was declared in code, but no running program declares it",
            do=_declared_remedy(name),
        )
        for name in _not_due(inside)
    ]


def _not_due(inside: Inside) -> list[str]:
    named = {job.name for job, _ in inside.unhandled}
    return [name for name in inside.orphans if name not in named][:MOST_NAMED]


def _declared_remedy(name: str) -> str:
    quoted = shlex.quote(name)
    return f"if it was renamed or dropped in code: wakeful remove {quoted}; else start the program that declares it"


def _approvals(inside: Inside) -> list[Check]:
    """What waits for a person is no fault, but nothing else says that it does."""
    if not inside.asked:
        return []
    named = [f"{run.job} asks {question_of(run)!r}: wakeful approve {run.id}" for run in inside.questions[:MOST_ASKED]]
    rest = [f"{inside.asked - len(named)} more: wakeful approvals"] if inside.asked > len(named) else []
    return [Check("approval", ok=True, found=found) for found in (*named, *rest)]


def _hold(inside: Inside) -> list[Check]:
    if inside.hold is None:
        return []
    found = f"everything is paused {hold_words(inside.hold)}"
    return [Check("hold", ok=False, found=found, do="wakeful resume --all")]


def _alerts(inside: Inside) -> list[Check]:
    alerts = [alert for alert in inside.alerts if alert.kind != APPROVAL]  # who waits for an answer keeps nothing down
    if not alerts:
        return [Check("alerts", ok=True, found="none open")]
    return [
        Check(
            "alert",
            ok=False,
            found=f"{alert.message}{' (acknowledged)' if alert.acked_at is not None else ''}",
            do=_remedy(alert),
        )
        for alert in alerts
    ]


def _notified(inside: Inside, written: str | None) -> list[Check]:
    """Whether failures are sent to anyone; no fault, but easily forgotten. `written`: what the file here says."""
    if not inside.jobs:
        return []
    if inside.notified is not None:
        found = f"alerts are sent to {inside.notified}"
    elif written is not None:
        found = f"alerts are sent to {written} once a server has read wakeful.yaml"
    else:
        found = "alerts are not sent to anyone: set alerts.to in wakeful.yaml (docs/alerts.md)"
    return [Check("messages", ok=True, found=found)]


def _remedy(alert: Alert) -> str:
    look = closer_look(alert.kind, alert.key, alert.job) or "wakeful alert list"
    then = {"disabled": "resume", "failed": "run"}.get(alert.kind)
    return f"{look}, then wakeful {then} {shlex.quote(alert.job)}" if then is not None and alert.job else look
