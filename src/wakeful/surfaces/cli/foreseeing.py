"""`simulate` and `forecast`: what the jobs will do, and what that costs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful import Scheduler
from wakeful.console.failures import INTERRUPTED, WrongUse, say_note
from wakeful.console.humanize import count, money, stamp
from wakeful.console.humanize import span as length_of
from wakeful.console.opening import change, now, now_ms, read, shown_zone, usable_zone
from wakeful.console.output import say
from wakeful.console.store_location import ConfigFile, Db, StoreLocation, chosen, given_store, place_beside
from wakeful.console.tables import Column, Json, JsonParts, print_json, print_sentence, print_table
from wakeful.errors import IntervalParseError
from wakeful.surfaces.cli.app import TIME, app
from wakeful.surfaces.cli.watching import watching
from wakeful.surfaces.cli.when import read_when
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import to_ms

if TYPE_CHECKING:
    from datetime import tzinfo

    from wakeful.config.loading import Loaded
    from wakeful.domains.files.applying import Fleet
    from wakeful.foresight.forecasting import Forecast, Sum
    from wakeful.foresight.question import Setup
    from wakeful.foresight.simulating import Simulation
    from wakeful.foresight.snapshot import Snapshot
    from wakeful.foresight.world import Prepare
    from wakeful.store.interface import Transaction

SHOWN = 20
JOBS = [Column("JOB", 10), Column("RUNS", 4), Column("SKIPPED", 12), Column("LONGEST WAIT", 6, spare=1)]
LANES = [Column("LANE", 10), Column("SIZE", 4), Column("BUSIEST", 4), Column("FULL FOR", 6)]
DAYS = [
    Column("DAY", 10),
    Column("RUNS", 4),
    Column("COST", 6),
    Column("RANGE", 10, spare=1),
    Column("TOKENS", 6, spare=2),
]

Span = Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, such as 7d.")]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume", metavar="NAME=30s", help="How long runs of a job take; may be repeated.", show_default=False
    ),
]
Fail = Annotated[
    list[str] | None,
    typer.Option(
        "--fail", metavar="NAME=0.1", help="How many runs of a job fail; may be repeated.", show_default=False
    ),
]
Down = Annotated[
    list[str] | None,
    typer.Option(
        "--down",
        metavar="02:00-03:00",
        help="When the server is down: these hours of every day, or TIME/TIME once; may be repeated.",
        show_default=False,
    ),
]
ClockSet = Annotated[
    list[str] | None,
    typer.Option(
        "--clock",
        metavar="TIME=-1h",
        help="The clock is set at that time; or dst: begin a day before the clocks next change.",
        show_default=False,
    ),
]


@app.command("simulate", rich_help_panel=TIME)
def simulate(
    ctx: typer.Context,
    *,
    span: Span = "7d",
    begins: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="When it begins (default: now).", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Decides everything random.")] = 1,
    assume: Assume = None,
    fail: Fail = None,
    down: Down = None,
    clock: ClockSet = None,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="How many nodes share the work.")] = 1,
    config: ConfigFile = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show what the jobs will do, by simulation in virtual time.

    Works on a copy in memory: no program, request or message leaves it. With --config, the file is applied to the copy
    first. Runs take as long as they usually do, or 1 second.
    """
    from wakeful.foresight.question import SimulationRequest, read_assumed, read_failing
    from wakeful.foresight.simulating import head, span_of
    from wakeful.foresight.simulating import simulate as run_simulation

    place, loaded = _place(ctx, config, db)
    setup, zone = setup_of(place, loaded), shown_zone(place)
    start = None if begins is None else to_ms(read_when(begins, now=now(), zone=zone, option="--from"))
    question = SimulationRequest(
        read_span(span),
        start,
        seed,
        read_assumed(assume or ()),
        read_failing(fail or ()),
        down or (),
        clock or (),
        nodes,
    )
    snapshot, prepare = copy_of(place), None if loaded is None else applying(loaded)
    with watching() as watch:
        if not as_json:
            done = run_simulation(snapshot, question, setup, prepare=prepare, watch=watch)
            _report(done, zone)
        else:
            parts = JsonParts(head(*span_of(snapshot, question, setup), seed), "runs")
            done = run_simulation(
                snapshot, question, setup, prepare=prepare, on_run=lambda run: parts.put(run.to_dict()), watch=watch
            )
            parts.end(done.tail())
    if done.truncated:
        say_note(f"ended by Ctrl-C: what is shown happened before {stamp(done.ends, zone)}")
        raise typer.Exit(INTERRUPTED)


@app.command("forecast", rich_help_panel=TIME)
def forecast(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A job's name; else all jobs.", show_default=False)
    ] = None,
    span: Span = "30d",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Forecast how often jobs run and what they cost per day.

    Counts the times of schedules, and takes costs from the last 30 runs of each job.
    """
    from wakeful.foresight.forecasting import Forecast
    from wakeful.foresight.forecasting import forecast as make_forecast

    place, length = chosen(ctx, db), read_span(span)
    zone = usable_zone(place)

    async def work(scheduler: Scheduler) -> Forecast:
        return await scheduler.read(lambda tx: make_forecast(tx, zone, length, only=name))

    nothing = Forecast(now_ms(), now_ms() + length, [now_ms(), now_ms() + length], zone, [], [])
    found = change(place, work) if name is not None else read(place, work, nothing)
    if as_json:
        print_json(found.to_dict())
    else:
        _report_forecast(found, shown_zone(place))


# -- asking -----------------------------------------------------------------------------------------------------------


def read_span(text: str) -> int:
    """How long, in milliseconds."""
    try:
        length = interval_ms(text)
    except IntervalParseError as error:
        raise WrongUse(f"--for is a duration such as 7d: {error}.") from error
    if not 0 < length <= 366 * 86_400_000:
        raise WrongUse(f"--for is more than nothing and at most 366d, not {text}.")
    return length


def _place(ctx: typer.Context, config: Path | None, db: str | None) -> tuple[StoreLocation, Loaded | None]:
    """The store, and the file that is to be applied to the copy, if one was named."""
    if config is None:
        return chosen(ctx, db), None
    from wakeful.config.loading import load

    needs = ("defaults", "fleet", "include", "limits", "jobs", "agents")
    return place_beside(config, given_store(ctx, db), os.environ, Path.cwd()), load(config, needs=needs)


def setup_of(place: StoreLocation, loaded: Loaded | None) -> Setup:
    """The settings of the server that would run the store: those of its file."""
    from wakeful.foresight.question import Setup

    if loaded is None and place.config is not None:
        from wakeful.config.loading import load

        loaded = load(place.config, needs=("defaults", "limits"))
    zone = usable_zone(place)
    if loaded is None:
        return Setup(zone)
    known = loaded.config
    return Setup(
        known.defaults.timezone or zone,
        known.limits.max_running,
        known.limits.min_interval / 1000,
        known.defaults.job_options(),
    )


def copy_of(place: StoreLocation) -> Snapshot:
    """What the store holds now; nothing where there is none yet."""
    from wakeful.foresight.snapshot import empty_snapshot, take_snapshot

    async def work(scheduler: Scheduler) -> Snapshot:
        return await scheduler.read(take_snapshot)

    return read(place, work, empty_snapshot(now_ms()))


def applying(loaded: Loaded) -> Prepare:
    """What applies the jobs and budgets of a file to a copy."""
    from wakeful.domains.files.applying import apply_fleet, ready_fleet, terms_of
    from wakeful.surfaces.cli.applying import budget_of

    async def prepare(world: Scheduler) -> list[str]:
        fleet, terms = ready_fleet(world, loaded.jobs), terms_of(loaded.jobs, world.clock.now())
        over = await world.read(lambda tx: _over(tx, fleet, loaded.jobs.zone))
        fleet = fleet._replace(wanted=tuple(one for one in fleet.wanted if one.draft.name not in over))
        await world.transact(lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=True))
        for section in budget_of(loaded):
            await world.transact(section.apply)
        return over

    return prepare


def _over(tx: Transaction, fleet: Fleet, zone: str) -> list[str]:
    """New jobs of a file that have times to come now, and none any more when the simulation begins."""
    known, present = tx.jobs.names([one.draft.name for one in fleet.wanted]), now_ms()
    new = [(one.draft.name, one.draft.trigger) for one in fleet.wanted if one.draft.name not in known]
    ahead = [(name, trigger.resolved(present, zone)) for name, trigger in new if trigger.timed and not trigger.relative]
    return [name for name, trigger in ahead if trigger.next_slot(tx.now) is None and trigger.next_slot(present)]


# -- in words ---------------------------------------------------------------------------------------------------------


def _report(found: Simulation, zone: tzinfo) -> None:
    skipped = sum(sum(job.skipped.values()) for job in found.jobs)
    passed = f", {count(skipped, 'time')} skipped" if skipped else ""
    print_sentence(
        f"From {stamp(found.begins, zone)} to {stamp(found.ends, zone)}: {count(found.total, 'run')} of "
        f"{count(len(found.jobs), 'job')}{passed}."
    )
    if found.cost.high:
        say(f"Cost: about {money(found.cost.expected)} ({money(found.cost.low)} to {money(found.cost.high)}).")
    worst = sorted(found.jobs, key=lambda job: (-sum(job.skipped.values()), -job.longest_wait_ms, -job.runs, job.name))
    if worst:
        rows = [
            [job.name, str(job.runs), _skipped(job.skipped), length_of(job.longest_wait_ms)] for job in worst[:SHOWN]
        ]
        print_table(JOBS, rows)
    if len(worst) > SHOWN:
        say(f"and {count(len(worst) - SHOWN, 'more job')}: --json has them all")
    if found.lanes:
        lanes = [
            [lane.name, "-" if lane.size is None else str(lane.size), str(lane.busiest), length_of(lane.full_ms)]
            for lane in found.lanes[:SHOWN]
        ]
        print_table(LANES, lanes)
    for note in found.notes[:SHOWN]:
        say(f"! {note.text}")
    if len(found.notes) > SHOWN:
        say_note(f"and {count(len(found.notes) - SHOWN, 'more note')}: --json has them all")


def _skipped(reasons: dict[str, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in reasons.items()) or "-"


def _report_forecast(found: Forecast, zone: tzinfo) -> None:
    total, days = found.total, max(1.0, (found.ends - found.begins) / 86_400_000)
    if not found.jobs:
        say("No jobs: nothing to forecast.")
        return
    print_sentence(
        f"Until {stamp(found.ends, zone)}: {count(round(total.runs), 'run')} of {count(len(found.jobs), 'job')}, "
        f"about {money(total.cost)} ({money(total.cost / days)} a day)."
    )
    print_table(DAYS, [_day(day, one) for day, one in found.days()])
    new = [job for job in found.jobs if not job.past and job.agent is not None and job.sum.runs]
    if unknown := [job.name for job in new if not job.history.runs_cost]:
        say_note(f"no history, so no cost: {_named(unknown)}")
    if like_others := [job.name for job in new if job.history.runs_cost]:
        say_note(f"no history, so the costs of other jobs of the same agent: {_named(like_others)}")
    for budget in found.budgets:
        if budget.reached_at is not None:
            whose = "all agents together" if budget.agent is None else budget.agent
            first = stamp(budget.reached_at, zone)
            say_note(
                f"the budget of {whose} is used up for the first time at about {first}, and refuses starts of that day"
            )


def _day(day: str, one: Sum) -> list[str]:
    shown = one.to_dict()
    return [
        day,
        str(shown["runs"]),
        money(shown["cost"]),
        f"{money(shown['low'])} to {money(shown['high'])}",
        f"{shown['tokens']:,}",
    ]


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
