"""Messages: how soon a webhook has the result of a run, how many a second a target gets, what a dead one costs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from bench.figures import Run, spread
from bench.measures import Column, Entry, Plan, Table, interleave
from wakeful import Manual, Scheduler
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.rules import Rules
from wakeful.domains.delivery.webhook import WebhookConnector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_PEERS: tuple[str, ...] = ()
PATIENCE_S = 300
SECRET = "whsec_d2FrZWZ1bC10ZXN0LXNlY3JldC0wMTIzNDU2Nzg5"  # noqa: S105 - a published test vector
DEAD = "http://127.0.0.1:9/"
BATCH = 1_000


class Hook:
    """A target that takes every message and notes when it came."""

    def __init__(self) -> None:
        self.came: dict[str, float] = {}  # by text, or by run where there is one
        self.changed = threading.Condition()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["data"]
                with hook.changed:
                    hook.came[data["run"] or data["text"]] = time.time()
                    hook.changed.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
                """Nothing: a line for each message is what is not measured."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def until(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.came) >= count, PATIENCE_S), "messages did not arrive"


@contextmanager
def listening() -> Iterator[Hook]:
    made = Hook()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()


def _scheduler(folder: Path, hook: Hook, *, dead: bool = False) -> Scheduler:
    scheduler = Scheduler(f"sqlite:///{folder}/bench.db")
    add: Any = scheduler.connectors.add  # type: ignore[attr-defined]
    add("hook", WebhookConnector(hook.url, scheduler.clock, secret=SECRET), Rules(), "file")
    if dead:
        add("dead", WebhookConnector(DEAD, scheduler.clock), Rules(attempts=100), "file")
    return scheduler


async def _fill(scheduler: Scheduler, to: str, count: int) -> None:
    for start in range(0, count, BATCH):

        def work(tx: Any, context: Any, start: int = start) -> None:
            for number in range(start, min(count, start + BATCH)):
                enqueue(tx, context, Post(f"message {number}", to))

        await scheduler.transact(work)


# -- the end of a run -------------------------------------------------------------------------------------------------


def run_end(samples: int, pending: int, folder: Path) -> Run:
    """One run after the other on an idle scheduler: from the stored end of each to the webhook's request."""

    async def main(hook: Hook) -> Run:
        async with _scheduler(folder, hook, dead=pending > 0) as scheduler:
            scheduler.on_job_due("job", lambda _: "done")
            await scheduler.start()
            await _fill(scheduler, "dead", pending)
            await scheduler.deliver("warm-up: loads what sending takes", to="hook")
            await asyncio.to_thread(hook.until, 1)
            await scheduler.add_job("a", Manual(), deliver="hook")
            ended = {}
            for number in range(samples):
                run = await scheduler.run_job("a")
                await asyncio.to_thread(hook.until, number + 2)
                found = await scheduler.get_run(run)
                assert found.finished_at is not None
                ended[run] = found.finished_at.timestamp()
            await scheduler.stop()
        return spread([(hook.came[run] - at) * 1000 for run, at in ended.items()])

    with listening() as hook:
        return asyncio.run(main(hook))


def _run_end(plan: Plan) -> Table:
    samples, pending = (50, 5_000) if plan.quick else (300, 100_000)
    table = Table(
        "run_end",
        f"From the end of a run to its webhook, {samples} runs (milliseconds)",
        [Column("p50_ms", "p50"), Column("p99_ms", "p99"), Column("max_ms", "max")],
        notes=["One run at a time on an idle scheduler. Ends are stored to the millisecond."],
        peers_in=NO_PEERS,
    )
    entries: list[Entry] = [
        ("Wakeful", partial(run_end, samples, 0)),
        (f"Wakeful, {pending:,} messages pending for a dead target", partial(run_end, samples, pending)),
    ]
    interleave(plan, table, entries)
    return table


# -- a full queue ------------------------------------------------------------------------------------------------------


def drain(count: int, pending: int, folder: Path) -> Run:
    """Messages that wait for one fast target, sent in order, one at a time."""

    async def main(hook: Hook) -> Run:
        async with _scheduler(folder, hook, dead=pending > 0) as scheduler:
            await scheduler.start()
            await _fill(scheduler, "dead", pending)
            await scheduler.stop()
        async with _scheduler(folder, hook, dead=pending > 0) as scheduler:
            await _fill(scheduler, "hook", count)
            cpu = time.process_time()
            await scheduler.start()
            await asyncio.to_thread(hook.until, count)
            cpu = time.process_time() - cpu
            await scheduler.stop()
        took = max(hook.came.values()) - min(hook.came.values())
        return {"per_s": (count - 1) / took, "cpu_ms": 1000 * cpu / count}

    with listening() as hook:
        return asyncio.run(main(hook))


def _drain(plan: Plan) -> Table:
    count, pending = (500, 5_000) if plan.quick else (5_000, 100_000)
    table = Table(
        "deliveries",
        f"{count:,} messages that wait for a fast webhook",
        [Column("per_s", "deliveries /s"), Column("cpu_ms", "CPU ms per delivery")],
        notes=["Each attempt is stored before it is made. The target is in the same process and shares its CPU time."],
        peers_in=NO_PEERS,
    )
    entries: list[Entry] = [
        ("Wakeful", partial(drain, count, 0)),
        (f"Wakeful, {pending:,} messages pending for a dead target", partial(drain, count, pending)),
    ]
    interleave(plan, table, entries)
    return table


def measure(plan: Plan) -> list[Table]:
    return [_run_end(plan), _drain(plan)]
