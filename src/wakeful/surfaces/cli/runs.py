"""`runs`, `cancel` and `retry`: what was done, and doing it again. Here too: how a run is found and shown."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from datetime import tzinfo
from typing import Annotated, Any

import typer

from wakeful import Run, Scheduler, ids
from wakeful.clock import sleep
from wakeful.console.failures import say_note
from wakeful.console.finding import OPEN, Ref, offered_by_id, run_meant, run_with_id
from wakeful.console.following import pauses
from wakeful.console.humanize import ago, brief, need_seconds, plain, relative, span, stamp
from wakeful.console.opening import change, now_ms, read, rights_here, server_of, zones_of_runs
from wakeful.console.output import Yes, say, say_text
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, HowMany, Json, coloured, print_facts, print_json, print_table
from wakeful.errors import RunNotFound, ScheduleTriggerError
from wakeful.kernel.actions import authorized
from wakeful.kernel.rules.outcome import with_type
from wakeful.kernel.views.cut_off import CUT_OFF, cut_off_runs
from wakeful.surfaces.cli.app import RUNS, app
from wakeful.surfaces.cli.folding import folded_note, unfolded
from wakeful.triggers import to_ms

CANCEL_WAIT_S = 10.0
Zones = Mapping[str, tzinfo]  # by the id of a job


@app.command("runs", rich_help_panel=RUNS)
def list_runs(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only runs of this job.", show_default=False)
    ] = None,
    number: HowMany = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Also runs of agents that had nothing to do, and beats that only woke one.")
    ] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List the latest runs, newest first."""
    place = chosen(ctx, db)
    if place.server:
        from wakeful.surfaces.cli.remote_views import print_runs

        print_runs(place, name, number, as_json=as_json)
        return
    folds = name is None and not everything and not as_json
    nothing: tuple[list[Run], int, frozenset[str], Zones] = ([], 0, frozenset(), {})

    async def look(scheduler: Scheduler) -> tuple[list[Run], int, frozenset[str], Zones]:
        runs, folded = await scheduler.get_run_log(name, number) if not folds else [], 0
        if folds:
            runs, folded = await unfolded(lambda most, before: scheduler.get_run_log(None, most, before), number)
        return runs, folded, await cut_off_ids(scheduler), await zones_of_runs(scheduler, runs, place)

    log, folded, cut_off, zones = read(place, look, nothing) if name is None else change(place, look)
    if as_json:
        print_json([{**run.to_dict(), "trace": run.trace} for run in log])
    elif log or folded:
        print_table(*run_rows(log, now_ms(), zones, with_job=name is None, cut_off=cut_off))
    elif name is not None:
        say(f"{name} has not run yet (store: {place}).")
    else:
        say(f"No runs in {place}." if place.exists else f"No runs: there is no store at {place} yet.")
    if folded:
        say_note(folded_note(folded, "run", "of agents with nothing to do"))


def run_rows(
    runs: Sequence[Run], now: int, zones: Zones, *, with_job: bool = True, cut_off: Container[str] = ()
) -> tuple[list[Column], list[list[str | Cell]]]:
    """Columns and rows of a listing of runs, with times of the jobs' zones; `cut_off`: those whose server has ended."""
    with_sent = any(run.deliveries for run in runs)
    columns = [
        Column("RUN", 17),
        *([Column("JOB", 10)] if with_job else []),
        Column("OUTCOME", 9),
        Column("STARTED", 8),
        Column("AT", 8, spare=4),
        Column("TOOK", 6, spare=2),
        Column("WHY", 8, spare=3),
        *([Column("SENT", 7, spare=5)] if with_sent else []),
        Column("ERROR", 12, spare=1),
    ]
    exact = need_seconds(to_ms(run.started_at) if run.started_at is not None else None for run in runs)
    rows: list[list[str | Cell]] = []
    for run in runs:
        started = to_ms(run.started_at) if run.started_at is not None else None
        attempt = f" #{run.attempt}" if run.attempt > 1 else ""
        rows.append(
            [
                run.id,
                *([run.job] if with_job else []),
                how(run, cut_off),
                ago(started, now) if started is not None else "-",
                brief(started, zones[run.job_id], now, exact=exact) if started is not None else "",
                took(run, now),
                f"{run.reason}{attempt}",
                *([", ".join(item["status"] for item in run.deliveries)] if with_sent else []),
                Cell(run.error or "", "" if run.outcome == "success" else "dim"),
            ]
        )
    return columns, rows


async def cut_off_ids(scheduler: Scheduler) -> frozenset[str]:
    """The runs whose server has ended: no process works on them."""
    seen = scheduler.host.seen
    found = await scheduler.read(lambda tx: cut_off_runs(tx, seen))
    return frozenset(map(ids.run_text, found))


def how(run: Run, cut_off: Container[str] = ()) -> Cell:
    """How it ended, or what it is doing; past its limit it counts as timed out although it continues."""
    if run.unstoppable is not None and run.phase == "timeout":
        return Cell("timed out", coloured("timeout").style)
    if run.id in cut_off:
        return Cell(CUT_OFF, "red")
    return coloured(run.outcome or run.status)


def took(run: Run, now: int) -> str:
    """How long it took, or has been running."""
    if run.started_at is None:
        return ""
    end = to_ms(run.finished_at) if run.finished_at is not None else now
    return span(max(0, end - to_ms(run.started_at)))


def print_run(run: Run, zone: tzinfo, cut_off: Container[str], *, as_json: bool) -> None:
    """One run in full."""
    if as_json:
        print_json({**run.to_dict(), "trace": run.trace, **_request(run)})
        return
    now = now_ms()
    facts: list[tuple[str, str | Cell]] = [("run", run.id), ("job", f"{run.job} ({run.job_id})")]
    facts += [("outcome", how(run, cut_off)), *([("phase", run.phase)] if run.phase else []), ("why", run.reason)]
    if found := _request(run):
        facts += [("request", _request_words(found))]
    if run.unstoppable is not None:
        facts += [("note", f"it {run.unstoppable} and cannot be stopped; its job is busy until it ends")]
    moments = [("scheduled", run.slot), ("due", run.due_at)]
    moments += [("started", run.started_at), ("finished", run.finished_at)]
    facts += [(name, f"{stamp(to_ms(at), zone)}, {relative(to_ms(at), now)}") for name, at in moments if at is not None]
    if run.started_at is not None:
        facts += [("took", took(run, now))]
    links = [("attempt", str(run.attempt) if run.attempt > 1 else None), ("continues", run.retry_of)]
    links += [("caused by", run.caused_by), ("node", run.node), ("error", error_text(run)), ("full log", run.log_file)]
    facts += [(name, text) for name, text in links if text]
    facts += [("step", _step(item)) for item in run.steps]
    facts += [("delivery", _delivery(item)) for item in run.deliveries]
    print_facts(facts)
    for text in (output_text(run), run.trace):
        if text:
            say()
            say_text(text.rstrip())


def _request(run: Run) -> dict[str, Any]:
    """The request from outside that a run works on, with its id at the sender."""
    payload = run.payload if isinstance(run.payload, dict) else {}
    if not isinstance(payload.get("request"), str):
        return {}
    return {key: payload.get(key) for key in ("request", "delivery_id", "replay_of")}


def _request_words(found: Mapping[str, Any]) -> str:
    named = f", delivery id {found['delivery_id']}" if found["delivery_id"] else ""
    again = f", a replay of {found['replay_of']}" if found["replay_of"] else ""
    return f"{found['request']}{named}{again}"


def _step(item: dict[str, Any]) -> str:
    """A step of the run, in one line."""
    tries = f", {item['attempts']} attempts" if item["attempts"] > 1 else ""
    why = f" ({item['error']})" if item["error"] else ""
    return f"{item['name']}: {item['status']}{tries}{why}"


def _delivery(item: dict[str, Any]) -> str:
    """A message about the run, in one line."""
    why = f" ({item['last_error']})" if item["last_error"] else ""
    return f"{item['id']} to {item['connector'] or 'nowhere yet'}: {item['status']}{why}"


def error_text(run: Run) -> str | None:
    """What went wrong, with the name of the exception where there was one."""
    return run.error if run.error is None or run.trace is None else with_type(run.error_type, run.error)


def output_text(run: Run) -> str:
    """What a run said: a command's output as it printed it, an answer's body, else the handler's value as JSON."""
    output: Any = run.output
    if isinstance(output, dict) and isinstance(output.get("output"), str) and run.kind == "command":
        return str(output["output"])
    if isinstance(output, dict) and isinstance(output.get("body"), str) and run.kind == "http":
        return str(output["body"])
    if output is None:
        return ""
    return output if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)


@app.command("cancel", rich_help_panel=RUNS)
def cancel(ctx: typer.Context, *, ref: Ref, yes: Yes = False, as_json: Json = False, db: Db = None) -> None:
    """Cancel a run, the current run of a job, or a delivery that waits. A run may be queued, running or waiting.

    It cannot be undone. A message that is cancelled is not sent any more; at a terminal you are asked before.
    """
    place = chosen(ctx, db)
    if (cancel_it := offered_by_id("cancel", ref)) is not None:
        cancel_it(place, ref, yes=yes, as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> tuple[Run, bool]:
        run = await run_meant(scheduler, ref, OPEN)
        if run is None:
            raise ScheduleTriggerError(f"{ref} is not running.", {"job": ref, "reason": "not_running"})
        await scheduler.transact(
            lambda tx, context: authorized.cancel_run(tx, context, run.id), rights=rights_here(), cancels=True
        )
        served = scheduler.engine_holder() is not None
        return await _until_done(scheduler, run, CANCEL_WAIT_S if served else 0), served

    run, served = change(place, work)
    if as_json:
        print_json(run.to_dict())
    elif run.status == "done":
        say(f"{run.id} of {run.job} ended as {run.outcome}")
    elif served:
        say(f"{run.id} of {run.job} is being cancelled")
        say_note(f"It has not ended after {CANCEL_WAIT_S:.0f} s: wakeful explain {run.id}")
    else:
        say(f"{run.id} of {run.job} is marked as cancelled")
        say_note("Its server has ended, and the run with it: the next server records it as cancelled.")


async def _until_done(scheduler: Scheduler, run: Run, seconds: float) -> Run:
    """The run as it is when it is done or that time has passed."""
    left = seconds
    for pause in pauses():
        latest = await scheduler.get_run(run.id)
        run = latest if latest is not None else run
        if run.status == "done" or left <= 0:
            break
        await sleep(pause)
        left -= pause
    return run


@app.command("retry", rich_help_panel=RUNS)
def retry(ctx: typer.Context, *, ref: Ref, as_json: Json = False, db: Db = None) -> None:
    """Try a finished run again, the latest run of a job, or a delivery.

    It cannot be undone.
    """
    place = chosen(ctx, db)
    if (try_again := offered_by_id("retry", ref)) is not None:
        try_again(place, ref, as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> tuple[Run, Run, bool]:
        run = await run_meant(scheduler, ref, ("done",))
        if run is None:
            raise RunNotFound(f"{ref} has no run that has ended.")
        again = await scheduler.transact(
            lambda tx, context: authorized.retry_run(tx, context, run.id), rights=rights_here()
        )
        return await run_with_id(scheduler, again.id), run, server_of(scheduler) is not None

    again, run, served = change(place, work)
    if as_json:
        print_json(again.to_dict())
    else:
        hint = f"; follow it with wakeful logs -f {again.id}" if served else ""
        say(f"{again.id} tries {run.id} of {plain(run.job)} again{hint}")
    if not served:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")
