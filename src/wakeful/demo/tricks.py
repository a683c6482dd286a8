"""What breaks the demo, and what is measured afterwards: a kill, an hour of sleep, a phone that refuses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from datetime import datetime
from typing import Any

from wakeful.clock import sleep
from wakeful.demo.fleet import INBOX
from wakeful.demo.moved_clock import MovedClock
from wakeful.demo.phone import PHONE
from wakeful.demo.place import DemoFolder
from wakeful.domains.delivery.tables import DeliveryFilter
from wakeful.domains.delivery.views import delivery_number, get_delivery, list_deliveries
from wakeful.errors import NotFound, SchedulerError, SchedulerShutdownError
from wakeful.kernel.model.run import Run, run_views
from wakeful.scheduler import Scheduler
from wakeful.store.interface import Transaction
from wakeful.store.runs import RunFilter
from wakeful.triggers.moments import iso, to_ms

HOUR_MS = 3_600_000
ANSWER_S = 0.1  # what the answer to a request is given to leave before the process is killed
STARTS_S = 0.05
LOOKS = 40
#: Starts that nobody asked for by hand: a slot has at most one success among them.
BY_ITSELF = ("schedule", "catch_up", "recovery", "retry", "after")
MOST_RUNS = 1_000
#: A message is shown as waiting while it has one of these.
WAITS = ("pending", "sending", "unknown")


class Tricks:
    """The three of them, on one server."""

    def __init__(self, scheduler: Scheduler, place: DemoFolder, clock: MovedClock) -> None:
        self._scheduler = scheduler
        self._place = place
        self._clock = clock
        self._sleeping = asyncio.Lock()

    # -- kill -9 ------------------------------------------------------------------------------------------------------

    async def kill(self) -> dict[str, Any]:
        """Kill this process in the middle of a run; the answer leaves just before."""
        run = await self._something_running()
        self._place.change(kills=self._place.read().kills + 1)
        asyncio.get_running_loop().call_later(ANSWER_S, os.kill, os.getpid(), signal.SIGKILL)
        return {"process": os.getpid(), "run": run.id, "job": run.job, "at": iso(self._clock.now())}

    async def _something_running(self) -> Run:
        """A run of the inbox that has begun; one is started if there is none."""
        for _ in range(LOOKS):
            found = next((run for run in await self._scheduler.read(_active) if run.job == INBOX), None)
            if found is not None:
                return found
            await self._start_inbox()
            await sleep(STARTS_S)
        raise SchedulerError("Nothing runs that could be cut off: resume inbox, and try again.")

    async def _start_inbox(self) -> None:
        with contextlib.suppress(SchedulerError):  # it is about to start, or somebody has paused it
            await self._scheduler.run_job(INBOX)

    async def after_kill(self, id: str) -> dict[str, Any]:  # noqa: A002
        """What became of a run that was cut off, and of the one in its place."""
        run = await self._scheduler.get_run(id)
        if run is None:
            raise NotFound(f"There is no run {id!r:.80}.")
        log = await self._scheduler.get_run_log(run.job, limit=20)
        again = next((one for one in log if one.retry_of == run.id), None)
        return {
            "outcome": run.outcome,
            "lasted_ms": _lasted(run),
            "again": None if again is None else {"run": again.id, "outcome": again.outcome, "reason": again.reason},
            **await self.proof(),
        }

    async def proof(self) -> dict[str, int]:
        """Slots of the last day that have no record, and slots with more than one success."""
        ledger = await self._scheduler.get_ledger(since="24h")
        log = await self._scheduler.get_run_log(limit=MOST_RUNS)
        ends = Counter(
            (run.job_id, run.slot)
            for run in log
            if run.slot is not None and run.outcome == "success" and run.reason in BY_ITSELF
        )
        return {"lost": ledger.total.unaccounted, "twice": sum(count > 1 for count in ends.values())}

    # -- sleep --------------------------------------------------------------------------------------------------------

    async def sleep_an_hour(self) -> dict[str, Any]:
        """The machine is off for an hour: the engine stops, the clock moves, the engine starts."""
        async with self._sleeping:
            since = self._clock.now()
            with contextlib.suppress(SchedulerShutdownError):  # what was cut off runs again, as after any stop
                await self._scheduler.stop(timeout=1.0)
            self._clock.ahead_ms = self._place.change(offset_ms=self._place.read().offset_ms + HOUR_MS).offset_ms
            await self._scheduler.start()
            return {"since": iso(since), "until": iso(self._clock.now())}

    async def after_sleep(self, since: datetime) -> dict[str, Any]:
        """What became of the slots since then; `open`: those that end without anybody's answer, and have not yet."""
        ledger = await self._scheduler.get_ledger(since=since)
        log = await self._scheduler.get_run_log(limit=MOST_RUNS)
        caught_up = Counter(run.job for run in log if run.reason == "catch_up" and run.due_at >= since)
        total = ledger.total
        asking = sum(run.phase == "approval" and run.due_at >= since for run in log if run.status == "waiting")
        return {
            "slots": total.due,
            "ran": total.ran,
            "merged": total.merged,
            "passed_over": sum(total.passed_over.values()),
            "missing": total.missing,
            "asking": asking,
            "open": total.running + sum(total.waiting.values()) - asking,
            "caught_up": dict(caught_up),
            **await self.proof(),
        }

    # -- the phone ----------------------------------------------------------------------------------------------------

    async def set_phone(self, *, broken: bool) -> dict[str, Any]:
        """Break the phone and send it something, or mend it; the id of the message."""
        self._place.change(broken=broken)
        if broken:
            text = "The backup is complete: 41 GB in 3 min."
            return {"delivery": await self._scheduler.deliver(text, to=PHONE, title="backup", agent="reporter")}
        registry: Any = self._scheduler.connectors
        await registry.test(PHONE, "The phone is mended.")  # what waits is then sent at once
        return {"delivery": None}

    async def message(self, id: str) -> dict[str, Any]:  # noqa: A002
        """A message as it stands, with its attempts."""
        number = delivery_number(id)
        return await self._scheduler.read(lambda tx: get_delivery(tx, number))

    async def phone(self) -> dict[str, Any]:
        """What the phone shows, and what waits for it."""
        latest = await self._scheduler.read(lambda tx: list_deliveries(tx, DeliveryFilter(connector=PHONE, limit=20)))
        return {
            "broken": self._place.read().broken,
            "messages": self._place.received(),
            "waiting": [one["text"] for one in latest if one["status"] in WAITS],
        }


def _active(tx: Transaction) -> list[Run]:
    return run_views(tx, tx.runs.matching(RunFilter(status="active", limit=100)))


def _lasted(run: Run) -> int | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return to_ms(run.finished_at) - to_ms(run.started_at)
