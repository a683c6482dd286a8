"""`next` and `explain`: when, and why."""

from __future__ import annotations

from datetime import datetime, tzinfo
from heapq import merge
from itertools import islice, repeat
from operator import itemgetter
from typing import Annotated, Any

import typer

from wakeful import Every, Explanation, Job, Scheduler, Trigger
from wakeful.console import humanize
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.finding import Ref, offered_by_id
from wakeful.console.humanize import ahead, need_seconds, relative, stamp, zone_named, zone_of
from wakeful.console.opening import change, default_zone, now, now_ms, read, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Column, HowMany, Json, print_json, print_sentence, print_table
from wakeful.errors import IntervalParseError, InvalidTrigger
from wakeful.kernel.model.job import next_jobs
from wakeful.kernel.rules.policy import spaced_slots, thinned_note
from wakeful.surfaces.cli.app import TIME, app
from wakeful.surfaces.cli.when import read_when
from wakeful.triggers import iso, parse_interval, settled_zone, system_zone, to_ms, zone_name


@app.command("next", rich_help_panel=TIME)
def next_times(
    ctx: typer.Context,
    *,
    expression: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPR]",
            help='A schedule in words, a cron expression or a duration, such as "weekdays at 9am" or 90m; or a job.',
            show_default=False,
        ),
    ] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The time zone (default: that of new jobs).")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TIME", help="Times after this one (default: now).")
    ] = None,
    number: HowMany = 5,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show the next times of an expression, of a job, or of all jobs."""
    place = chosen(ctx, db)
    zone = default_zone(place) if tz is None else settled_zone(zone_name(tz), system_zone())
    begin = now() if after is None else read_when(after, now=now(), zone=zone_named(zone), option="--after")
    of_jobs = expression is None or (job := _job_meant(place, expression, zone)) is not None
    if of_jobs and (tz is not None or after is not None):
        raise WrongUse('--tz and --after go with an expression: wakeful next "0 9 * * *" --tz Europe/Berlin')
    if expression is None:
        _print_starts(place, number, as_json=as_json)
    elif job is not None:
        _print_job(job, zone_of(job, shown_zone(place)), number, as_json=as_json)
    else:
        _print_expression(expression, zone, begin, number, as_json=as_json)


def _job_meant(place: StoreLocation, text: str, zone: str) -> Job | None:
    """The job of that name or id, where the text is no expression; an expression needs no store.

    One word that is also a schedule, such as "daily", is the job of that name where there is one.
    """
    try:
        trigger = _trigger(text, zone)
    except InvalidTrigger as error:
        job = _job_named(place, text)
        if job is None and _is_word(text):
            store = f"a job in {place}" if place.exists else f"a job (there is no store at {place} yet)"
            near = str(error).partition("did you mean ")[2]
            hint = f" Did you mean {near}" if near else ""
            raise WrongUse(f"{text!r} is not a schedule, a cron expression, a duration or {store}.{hint}") from None
        if job is None:
            raise error from None
        return job
    is_amount = isinstance(trigger, Every) and text[:1].isdigit()
    return _job_named(place, text) if _is_word(text) and not is_amount else None


def _job_named(place: StoreLocation, text: str) -> Job | None:
    nothing: Job | None = None
    return read(place, lambda scheduler: scheduler.get_job(text), nothing)


def _is_word(text: str) -> bool:
    """Whether the text may be a job's name: nothing in it is specific to expressions."""
    return len(text.split()) == 1 and not set("*/,?#@") & set(text) and any(letter.isalpha() for letter in text)


def _print_job(job: Job, zone: tzinfo, number: int, *, as_json: bool) -> None:
    times = humanize.next_times(job, number)
    if as_json:
        print_json([_start(job, ms) for ms in times])
        return
    say(f"{job.name}: {job.schedule}")
    present, exact = now_ms(), need_seconds(times)
    for ms in times:
        say(f"  {stamp(ms, zone, exact=exact)}  {ahead(ms, present)}")
    if job.passed_over is not None:
        say_note(f"{job.passed_over}.")
    if not times:
        say(f"  no next time: it is {job.status}" if job.status in ("paused", "disabled", "done") else "  no next time")


def _print_expression(expression: str, zone: str, begin: datetime, number: int, *, as_json: bool) -> None:
    meant = _trigger(expression, zone, begin)
    zone = meant.own_zone or zone
    trigger = meant.resolved(to_ms(begin), zone)
    times = list(islice(spaced_slots(trigger, to_ms(begin)), number))
    words = meant.describe()
    if as_json:
        print_json({"expression": expression, "tz": zone, "description": words, "times": [iso(ms) for ms in times]})
        return
    say(words if zone in words else f"{words} ({zone})")
    shown, present, exact = zone_named(zone), now_ms(), need_seconds(times)
    for ms in times:
        say(f"  {stamp(ms, shown, exact=exact)}  {relative(ms, present)}")
    if note := thinned_note(trigger):
        say_note(f"{expression} {note}.")
    if len(times) < number:
        say("  and never after that" if times else "  never" if trigger.timed else "  not by time")


def _trigger(expression: str, zone: str, begin: datetime | None = None) -> Trigger:
    """A duration where it is one, else what the words say."""
    words = expression.strip().removeprefix("@").removeprefix("every ").strip()
    try:
        parse_interval(words)
    except IntervalParseError:
        from wakeful.triggers.sentences import read_sentence  # loads the grammar

        return read_sentence(expression, to_ms(begin or now()), zone)
    return Every(words)


def _print_starts(place: StoreLocation, number: int, *, as_json: bool) -> None:
    nothing: list[tuple[Job, int]] = []
    starts = read(place, lambda scheduler: next_starts(scheduler, number), nothing)
    if as_json:
        print_json([_start(job, ms) for job, ms in starts])
    elif starts:
        present, zone, exact = now_ms(), shown_zone(place), need_seconds(ms for _, ms in starts)
        rows = [
            [ahead(ms, present), stamp(ms, zone_of(job, zone), exact=exact), job.name, job.schedule]
            for job, ms in starts
        ]
        print_table([Column("WHEN", 8), Column("TIME", 20), Column("JOB", 10), Column("SCHEDULE", 16, spare=1)], rows)
        for why in dict.fromkeys(job.passed_over for job, _ in starts if job.passed_over is not None):
            say_note(f"{why}.")
    elif not place.exists:
        say(f"Nothing will start: there is no store at {place} yet.")
    else:
        say(f"Nothing in {place} will start by time.")


def _start(job: Job, ms: int) -> dict[str, Any]:
    return {"job": job.name, "job_id": job.id, "at": iso(ms), "schedule": job.schedule}


async def next_starts(scheduler: Scheduler, number: int) -> list[tuple[Job, int]]:
    """The next starts of everything stored, in order of time; only jobs that could be among them are read."""
    jobs = await scheduler.read(lambda tx: next_jobs(tx, number, scheduler.host.hidden_kinds))
    return merged_starts(jobs, number)


def merged_starts(jobs: list[Job], number: int) -> list[tuple[Job, int]]:
    """The next starts of all jobs together, in order of time."""
    each = [zip(job.starts(), repeat(job.id), repeat(job)) for job in jobs]  # lazily: a job may have no end of them
    return [(job, ms) for ms, _, job in islice(merge(*each, key=itemgetter(0, 1)), number)]


async def _explained(scheduler: Scheduler, ref: str, place: StoreLocation) -> Explanation:
    explained = None if place.server else offered_by_id("explain", ref)
    if explained is None:
        return await scheduler.explain(ref)
    zone = shown_zone(place)
    found: Explanation = await scheduler.read(lambda tx: explained(tx, ref, zone))
    return found


@app.command("explain", rich_help_panel=TIME)
def explain(ctx: typer.Context, *, ref: Ref, as_json: Json = False, db: Db = None) -> None:
    """Explain why a job ran or did not run, and when it runs next.

    A run, a delivery, and an event or an input of a workflow are explained, too.
    """
    place = chosen(ctx, db)
    explanation = change(place, lambda scheduler: _explained(scheduler, ref, place))
    if as_json:
        print_json(explanation.to_dict())
        return
    for sentence in explanation.sentences:
        print_sentence(sentence)
