"""What a running engine says on the terminal, and what Ctrl-C does to it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful import Event, Run, Scheduler
from wakeful.console.humanize import count, plain, span
from wakeful.kernel.rules.outcome import with_type

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger("wakeful.serve")

MOST_NAMES = 10_000  # remembered, so that a busy job is looked up once
MOST_STARTED = 10_000  # remembered, to log how long they took
MOST_BEHIND = 1_000  # ends that wait to be logged in full
BEAT = ".heartbeat"  # a name that nobody can give
UNWELL = ("error", "timeout", "crashed", "unknown")


NOTHING = ("noop", "skipped")


def _level(name: str, outcome: str | None) -> int:
    """A run that had nothing to do is no news, and neither is a beat: the run of the agent that it wakes is."""
    if outcome in UNWELL:
        return logging.WARNING
    return logging.DEBUG if outcome in NOTHING or name.endswith(BEAT) else logging.INFO


def on_signals(first: Callable[[], None], second: Callable[[], None]) -> None:
    """What Ctrl-C and SIGTERM do. The third one ends the process; the next start recovers what ran."""
    received = 0

    def on_signal() -> None:
        nonlocal received
        received += 1
        if received > 2:
            os._exit(1)
        (first if received == 1 else second)()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


SENT = ("sent", "failed", "expired", "retrying")


class ServeLog:
    """Logs what happened, from events alone and one after the other: it cannot hold up the engine."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._started: dict[str, datetime] = {}
        self._names: dict[str, str] = {}
        self._inner: dict[str, bool] = {}
        self._ended: asyncio.Queue[Event] = asyncio.Queue()
        self._worker = asyncio.get_running_loop().create_task(self._work())
        scheduler.subscribe(self._on_event)

    async def finish(self) -> None:
        """Log what is left; nothing after that."""
        await self._ended.join()
        self._worker.cancel()
        await asyncio.wait({self._worker})

    def _on_event(self, event: Event) -> None:
        data = event.data
        if event.stream == "alert":
            level = logging.WARNING if event.type == "opened" else logging.INFO
            log.log(level, "alert %s: %s", event.type, plain(str(data.get("message", ""))), extra=_about(event))
        elif event.stream == "job" and "job_id" in data:
            self._keep_name(data["job_id"], data["job"])
            log.info("job %s was %s", data["job"], event.type, extra=_about(event))
        elif event.stream == "job" and "count" not in data:
            self._log_hold(event)
        elif event.stream == "job":
            were = "was" if data["count"] == 1 else "were"
            what = event.type.removesuffix("_many")
            log.info("%s %s %s", count(data["count"], "job"), were, what, extra=_about(event))
        elif event.stream == "delivery" and event.type in SENT:
            about = f" about {data['job']}" if data.get("job") is not None else ""
            level = logging.INFO if event.type == "sent" else logging.WARNING
            where = data.get("connector")
            log.log(level, "delivery %s to %s%s: %s", data["delivery"], where, about, event.type, extra=_about(event))
        elif event.stream == "workflow" and event.type == "deployed":
            log.info("workflow %s was deployed, version %s", data["workflow"], data["version"], extra=_about(event))
        elif event.stream == "run" and event.type == "started":
            if len(self._started) >= MOST_STARTED:  # what others ended is not logged here
                del self._started[next(iter(self._started))]
            self._started[data["run"]] = event.at
        elif event.stream == "run":
            self._ended.put_nowait(event)

    def _log_hold(self, event: Event) -> None:
        if event.type == "held":
            by = event.data["by"]
            log.warning(
                "everything was paused by %s: nothing starts until wakeful resume --all", by, extra=_about(event)
            )
        elif event.type == "released":
            log.info("everything was resumed", extra=_about(event))

    async def _work(self) -> None:
        while True:
            event = await self._ended.get()
            try:
                await self._log_end(event)
            except Exception:
                log.exception("%s has ended; its details could not be read", event.data["run"])
            finally:
                self._ended.task_done()

    async def _log_end(self, event: Event) -> None:
        run_id, outcome = event.data["run"], event.data.get("outcome")
        started = self._started.pop(run_id, None)
        took = f" after {span(max(0, int((event.at - started).total_seconds() * 1000)))}" if started is not None else ""
        behind = self._ended.qsize() > MOST_BEHIND  # then without asking the store: what waits must not pile up
        name, error, trace = await self._name(event.data["job_id"], ask=not behind), "", None
        if outcome not in UNWELL and not behind and await self._is_inner(event.data["job_id"]):
            return  # what it did is logged by itself
        if outcome in UNWELL and not behind:
            run = await self._scheduler.get_run(run_id)
            error = f": {_error(run)}" if run is not None and run.error else ""
            trace = run.trace if run is not None else None
        extra = {**_about(event), "job": name, "trace": trace}
        if event.type == "approval_needed":
            what = "%s waits for approval: wakeful approve %s, or wakeful reject %s"
            log.warning(what, name, run_id, run_id, extra=extra)
            return
        log.log(_level(name, outcome), "%s %s %s%s%s", name, run_id, outcome or event.type, took, error, extra=extra)

    async def _name(self, job_id: str, *, ask: bool) -> str:
        known = self._names.get(job_id)
        if known is not None or not ask:
            return known or job_id
        job = await self._scheduler.get_job(job_id)
        name = job.name if job is not None else job_id
        self._keep_name(job_id, name)
        return name

    async def _is_inner(self, job_id: str) -> bool:
        """Whether the job is part of the machinery."""
        known = self._inner.get(job_id)
        if known is None:
            job = await self._scheduler.get_job(job_id)
            known = job is not None and job.kind in self._scheduler.host.hidden_kinds
            if len(self._inner) >= MOST_NAMES:
                self._inner.clear()
            self._inner[job_id] = known
        return known

    def _keep_name(self, job_id: str, name: str) -> None:
        if len(self._names) >= MOST_NAMES:
            self._names.clear()
        self._names[job_id] = name


def _about(event: Event) -> dict[str, Any]:
    """What programs are told that read the log: which event it was, and what it was about."""
    return {"event": f"{event.stream}.{event.type}", "job": event.data.get("job"), "run": event.data.get("run")}


def _error(run: Run) -> str:
    """The error on one line, with its type where a trace follows."""
    text = plain(run.error or "")
    return with_type(run.error_type, text) if run.trace is not None else text
