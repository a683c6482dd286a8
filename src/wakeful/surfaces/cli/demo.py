"""`demo`: a small fleet in a temporary store, to see what Wakeful does: with its dashboard, or in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import After, Cron, Every, Interval, NewJob, Noop, Once, Run, Scheduler, parse_interval
from wakeful.clock import sleep
from wakeful.console.humanize import zone_named
from wakeful.console.opening import now, now_ms
from wakeful.console.output import log_to, say
from wakeful.console.tables import console, table_lines
from wakeful.kernel.rules.outcome import Failed, Output
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.jobs import job_rows
from wakeful.surfaces.cli.runs import run_rows
from wakeful.surfaces.cli.serve_log import ServeLog, on_signals

if TYPE_CHECKING:
    from rich.console import Console, Group

REFRESH_S = 0.5
FEWEST_RUNS = 3


@app.command("demo", rich_help_panel=SERVER)
def demo(
    *,
    terminal: Annotated[bool, typer.Option("--terminal", help="Show jobs and runs here, without a dashboard.")] = False,
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="Port to listen on (default: any free one)."),
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    seconds: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End after this time.", show_default=False)
    ] = None,
) -> None:
    """Run a demo with its dashboard in a temporary store. Ctrl-C ends it and deletes the store."""
    limit = parse_interval(seconds).total_seconds() if seconds is not None else None
    if not terminal:
        from wakeful.demo.supervisor import run_demo

        run_demo(port, limit, opens=not no_open, say=say)
        return
    with tempfile.TemporaryDirectory(prefix="wakeful-demo-") as folder:
        asyncio.run(_demo(Path(folder), limit))


async def _demo(folder: Path, limit: float | None) -> None:
    scheduler = Scheduler(f"sqlite:///{folder / 'wakeful.db'}", node="demo")
    _register(scheduler, Random())
    over = asyncio.Event()
    on_signals(over.set, over.set)
    if limit is not None:
        asyncio.get_running_loop().call_later(limit, over.set)
    async with scheduler:
        await scheduler.add_jobs(fleet(folder))
        await scheduler.pause_job("spring-cleaning", "until it has been reviewed")
        await scheduler.start()
        show = _watch if sys.stdout.isatty() else _print
        await show(scheduler, over, folder)
        await scheduler.stop(wait_for_jobs=False)
    say("The demo is over; its store is gone.")


def fleet(folder: Path) -> list[NewJob]:
    """A handful of jobs of several kinds: grids, a calendar, a chain, a flaky one, a paused one, a line at a lane."""
    greeting = {"argv": ["sh", "-c", 'echo "Hello at $(date +%H:%M:%S)"'], "cwd": str(folder)}
    failing: dict[str, Any] = {"backoff": ["12s", "20s", "30s"], "max_errors": 0}
    jobs = [
        NewJob("greeting", Every("10s"), kind="command", payload=greeting),
        NewJob("inbox", Interval("15s"), kind="look"),
        NewJob("minute-report", Cron("* * * * *"), kind="work", payload={"seconds": 2}),
        NewJob("send-report", After("minute-report"), kind="work", payload={"seconds": 1}),
        NewJob("flaky-feed", Every("10s", anchor=now() + timedelta(seconds=4)), kind="flaky", **failing),
        NewJob("feed-watch", After("flaky-feed", on="failure"), kind="work", payload={"seconds": 0.2}),
        NewJob("one-shot", Once(now() + timedelta(seconds=3)), kind="work", payload={"seconds": 1}),
        NewJob("spring-cleaning", Cron("0 3 1 4 *"), kind="work", payload={"seconds": 1}),
    ]
    start = now() + timedelta(seconds=2)
    for name in ("render-a", "render-b", "render-c"):
        work = {"seconds": 3}
        jobs.append(NewJob(name, Every("20s", anchor=start), kind="work", payload=work, lanes={"studio": 1}))
    return jobs


def _register(scheduler: Scheduler, chance: Random) -> None:
    async def work(run: Run) -> dict[str, Any]:
        await sleep(run.payload["seconds"])
        return {"pages": chance.randint(1, 40)}

    async def look(_: Run) -> Any:
        found = chance.choice([0, 0, 1, 3])
        return {"letters": found} if found else Noop("nothing new")

    async def flaky(_: Run) -> str:
        if chance.random() < 0.6:
            raise Failed("the feed did not answer", Output(None))
        return "42 entries"

    for kind, handler in {"work": work, "look": look, "flaky": flaky}.items():
        scheduler.on_job_due(kind, handler)


# -- how it is shown --------------------------------------------------------------------------------------------------


async def _print(scheduler: Scheduler, over: asyncio.Event, folder: Path) -> None:
    """Without a terminal: a line for each run that ends."""
    log_to(sys.stdout, "%(asctime)s %(message)s", "%H:%M:%S")
    teller = ServeLog(scheduler)
    say(f"A demo fleet is at work in {folder}.")
    sys.stdout.flush()
    await over.wait()
    await teller.finish()


async def _watch(scheduler: Scheduler, over: asyncio.Event, folder: Path) -> None:
    """In a terminal: jobs and their latest runs, as they change."""
    from rich.live import Live

    out = console()
    with Live(console=out, auto_refresh=False, vertical_overflow="crop") as live:
        while not over.is_set():
            live.update(await _picture(scheduler, out, folder), refresh=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S):
                    await over.wait()


async def _picture(scheduler: Scheduler, out: Console, folder: Path) -> Group:
    from rich.console import Group
    from rich.text import Text

    present = now_ms()
    jobs = table_lines(*job_rows(await scheduler.list_jobs(), present, zone_named(None)), out.width)
    room = max(FEWEST_RUNS, out.height - len(jobs) - 5)
    log = await scheduler.get_run_log(limit=room)
    runs = table_lines(*run_rows(log, present, {run.job_id: zone_named(None) for run in log}), out.width)
    title = Text("Wakeful demo", "bold green").append(f"  store {folder}", "dim")
    title.truncate(out.width, overflow="ellipsis")
    return Group(title, Text(), *jobs, Text(), *runs[: room + 1], Text("Ctrl-C ends it", "dim"))
