"""The kind `session`: each run sends one message to a session and is done when the session is.

A message that must be sent again because a crash came in between is sent under the same `Idempotency-Key` and the same
run id, so that a careful session server sees that it knows it; its call back, whenever it comes, ends whichever run
stands for that attempt by then. A try that comes after an answer is a new message with a new key.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from wakeful import ids
from wakeful.agents.answers import (
    Busy,
    Decision,
    Done,
    Failed,
    GoesOn,
    NoSession,
    Unwell,
    read_answer,
    same_origin,
    session_id,
)
from wakeful.agents.settings import SessionSettings
from wakeful.agents.sharing import replace_session
from wakeful.agents.tables import KeptSession, Sessions, Watch
from wakeful.agents.task import Task, read_task
from wakeful.errors import SchedulerError
from wakeful.kernel.actions.callbacks import callback_token
from wakeful.kernel.rules.outcome import Defer, TryAgain, Wait
from wakeful.kernel.views.models import Run
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.agents.client import SessionClient
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.reports import Report

log = logging.getLogger("wakeful.sessions")

MOST_TRIES = 48  # of one slot, half an hour apart: a day


class SessionFailed(SchedulerError):
    """The session, or the server it lives on, says that it did not work."""


class Attempt(NamedTuple):
    """What identifies a message: the first run that sent it, that run's token, and a report that came already."""

    run_id: int
    token: str
    kept: KeptSession | None
    report: Report | None


class SessionKind:
    """The handler. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler, settings: SessionSettings, client: SessionClient) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._client = client
        self.on_watch: Callable[[Watch], None] = lambda _: None

    async def __call__(self, run: Run) -> Any:
        """Send the message, make a session for it where there is none, and say what the answer means."""
        task = read_task(run.payload)
        _ = self._client.base  # said first: without a server there is nothing to do
        number, job_id = _number(run.id), _number(run.job_id)
        attempt = await self._scheduler.transact(lambda tx, _: _find(tx, number, job_id))
        if attempt.report is not None:
            return _reported(attempt.report)
        session = await self._session(run, task, attempt)
        decision = await self._send(run, task, attempt, session)
        if isinstance(decision, NoSession):
            session = await self._another(run, task, attempt, session, decision)
            decision = await self._send(run, task, attempt, session)
        return await self._conclude(run, task, session, decision)

    # -- the session --------------------------------------------------------------------------------------------------

    async def _session(self, run: Run, task: Task, attempt: Attempt) -> str:
        """The session this run continues, or a new one."""
        if task.session is not None:
            return task.session
        kept = attempt.kept
        if task.persist and kept is not None and kept.model == (task.model or ""):
            return kept.session
        if kept is not None:  # another model, or no session at all any more
            await self._forget(kept.job_id, kept.session, discard=True)
        return await self._create(run, task, attempt)

    async def _another(self, run: Run, task: Task, attempt: Attempt, old: str, gone: NoSession) -> str:
        """Replace a session that is gone, also for all schedules that share it; only if we created it."""
        if task.session is None:
            await self._forget(_number(run.job_id), old)
            return await self._create(run, task, attempt, again=True)
        kept = await self._scheduler.look(lambda tx: tx.of(Sessions).called(old))
        if kept is None:
            why = "it was not made here, so no other one is put in its place: name another session, or none"
            self._fail(run, Failed(f"{gone.why}; {why}"), f"session {old}")
        new = await self._make(run, kept.model or None, attempt, again=True)
        zone = self._scheduler.default_zone
        await self._scheduler.transact(lambda tx, context: replace_session(tx, context, old, new, zone))
        return new

    async def _create(self, run: Run, task: Task, attempt: Attempt, *, again: bool = False) -> str:
        """A new session, kept if the task asks for that."""
        session = await self._make(run, task.model, attempt, again=again)
        if task.persist:
            await self._keep(_number(run.job_id), session, task.model)
        return session

    async def _make(self, run: Run, model: str | None, attempt: Attempt, *, again: bool) -> str:
        key = f"{ids.run_text(attempt.run_id)}-session" + ("-2" if again else "")
        answer = await self._client.create(model, key)
        decision = read_answer(answer)
        if not isinstance(decision, (Done, GoesOn)):
            self._fail(run, decision, "no session could be made")
        session = session_id(answer)
        if session is None:
            self._fail(run, Failed("the session server did not say what it is called"), "a session was made")
        return session

    async def _keep(self, job_id: int, session: str, model: str | None) -> None:
        """Store the session before anything is sent to it, and drop those beyond the limit."""

        def work(tx: Transaction, _: Context) -> list[str]:
            tx.of(Sessions).keep(KeptSession(job_id, session, model or "", tx.now, tx.now))
            return tx.of(Sessions).crowd_out(self._settings.max_kept)

        for old in await self._scheduler.transact(work):
            await self._discard(old)

    async def _forget(self, job_id: int, session: str, *, discard: bool = False) -> None:
        await self._scheduler.transact(lambda tx, _: tx.of(Sessions).forget(job_id, session))
        if discard:
            await self._discard(session)

    async def _discard(self, session: str) -> None:
        answer = await self._client.discard(session)
        if answer.problem is not None or answer.status >= 300:
            log.info(
                "session %s is no longer kept, but its server did not delete it: %s", session, answer.problem or answer
            )

    # -- the message --------------------------------------------------------------------------------------------------

    async def _send(self, run: Run, task: Task, attempt: Attempt, session: str) -> Decision:
        run_id = ids.run_text(attempt.run_id)
        message = {
            "prompt": f"[scheduler:{run.job}] {task.prompt}",
            "source": "scheduler",
            "schedule": run.job,
            "runId": run_id,
        }
        if self._settings.callback_url:
            base = self._settings.callback_url.rstrip("/")
            message["callbackUrl"] = f"{base}/api/runs/{run_id}/complete?token={attempt.token}"
        answer = await self._client.send(session, message, f"{run_id}-{session}")
        return read_answer(answer, reports=self._settings.done == "report")

    async def _conclude(self, run: Run, task: Task, session: str, decision: Decision) -> Any:
        if isinstance(decision, GoesOn):
            return await self._wait(run, task, session, decision)
        if not isinstance(decision, Done):
            self._fail(run, decision, f"session {session}")
        return {"sessionId": session, "answer": decision.output}

    async def _wait(self, run: Run, task: Task, session: str, decision: GoesOn) -> Wait:
        """The work goes on there; the run waits, and is polled if its status address is known."""
        now = self._scheduler.clock.now()
        why = f"{decision.why} (session {session})"
        if decision.status_url is not None:
            url = same_origin(decision.status_url, self._client.base, self._client.messages_url(session))
            if url is None:
                why += (
                    f"; its status address {decision.status_url[:200]} was refused: "
                    "it must be on the server of server.sessions.url"
                )
                log.warning("%s of %s: %s", run.id, run.job, why)
            else:
                watch = Watch(_number(run.id), url, now)
                await self._scheduler.transact(lambda tx, _: tx.of(Sessions).watch(watch))
                self.on_watch(watch)
        deadline = task.deadline_ms or self._settings.deadline_ms
        return Wait(from_ms(now + deadline), why)

    def _fail(self, run: Run, decision: Busy | Unwell | Failed | NoSession, about: str) -> NoReturn:
        """Raise what the decision means for the run."""
        now = self._scheduler.clock.now()
        if isinstance(decision, Busy):
            raise Defer(from_ms(now + self._settings.busy_ms), f"{about} is busy: {decision.why}")
        why = f"{about}: {decision.why}"
        if isinstance(decision, (Failed, NoSession)) or run.attempt >= MOST_TRIES:
            raise SessionFailed(why)
        raise TryAgain(from_ms(now + self._settings.retry_ms), why)


def _find(tx: Transaction, number: int, job_id: int) -> Attempt:
    """The attempt a run belongs to: after a crash, the one that was cut off."""
    first, run = number, tx.runs.get(number)
    while run is not None and run.reason == "recovery" and run.retry_of is not None:
        first, run = run.retry_of, tx.runs.get(run.retry_of)
    tx.of(Sessions).touch(job_id, tx.now)
    return Attempt(first, callback_token(tx, first), tx.of(Sessions).of(job_id), tx.reports.of([number]).get(number))


def _reported(report: Report) -> Any:
    """What was reported while the run waited for its turn is how it ends; nothing is sent."""
    if report.outcome != "success":
        raise SessionFailed(report.error or "it failed")
    return json.loads(report.output) if report.output is not None else None


def _number(text: str) -> int:
    found = ids.decode(text)
    assert found is not None  # noqa: S101 - the kernel made it
    return found[1]
