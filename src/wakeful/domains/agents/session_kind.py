"""The kind `session`: each run sends one message to a session and is done when the session is."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.answers import Decision, NoSession, RequestRejected
from wakeful.domains.agents.fencing import holds
from wakeful.domains.agents.settings import SessionSettings
from wakeful.domains.agents.sharing import replace_session
from wakeful.domains.agents.tables import KeptSession, Sessions
from wakeful.domains.agents.talking import MessageAttempt, SessionFailed, Talk, find_attempt, number_of, reported
from wakeful.domains.agents.task import Task, read_task
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.outcome import Wait

if TYPE_CHECKING:
    from wakeful.domains.agents.client import SessionClient
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.sessions")


class SessionKind:
    """The handler. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler, settings: SessionSettings, client: SessionClient) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._client = client
        self.talk = Talk(scheduler, settings, client)

    async def __call__(self, run: Run) -> Any:
        """Send the message, make a session for it where there is none, and say what the answer means."""
        task = read_task(run.payload)
        _ = self._client.base  # said first: without a server there is nothing to do
        number, job_id = number_of(run.id), number_of(run.job_id)
        attempt, kept = await self._scheduler.transact(lambda tx, _: _find(tx, number, job_id))
        if attempt.report is not None:
            return reported(attempt.report)
        session = await self._session(run, task, attempt, kept)
        decision = await self._send(run, task, attempt, session)
        if isinstance(decision, NoSession):
            session = await self._another(run, task, attempt, session, decision)
            decision = await self._send(run, task, attempt, session)
        end = await self.talk.conclude(run, session, decision, task.deadline_ms)
        return end if isinstance(end, Wait) else {"sessionId": session, "answer": end.output}

    # -- the session --------------------------------------------------------------------------------------------------

    async def _session(self, run: Run, task: Task, attempt: MessageAttempt, kept: KeptSession | None) -> str:
        """The session this run continues, or a new one."""
        if task.session is not None:
            return task.session
        if task.persist and kept is not None and kept.model == (task.model or ""):
            return kept.session
        if kept is not None:  # another model, or no session at all any more
            await self._forget(kept.job_id, kept.session, discard=True)
        return await self._create(run, task, attempt)

    async def _another(self, run: Run, task: Task, attempt: MessageAttempt, old: str, gone: NoSession) -> str:
        """Replace a session that is gone, also for all schedules that share it; only if we created it."""
        if task.session is None:
            await self._forget(number_of(run.job_id), old)
            return await self._create(run, task, attempt, again=True)
        kept = await self._scheduler.read(lambda tx: tx.of(Sessions).called(old))
        if kept is None:
            why = "it was not made here, so no other one is put in its place: name another session, or none"
            self.talk.fail(run, RequestRejected(f"{gone.why}; {why}"), f"session {old}")
        new = await self.talk.make(run, kept.model or None, attempt, again=True)
        zone = self._scheduler.host.default_zone

        def work(tx: Transaction, context: Context) -> None:
            _check_holds(tx, run)
            replace_session(tx, context, old, new, zone)

        await self._scheduler.transact(work)
        return new

    async def _create(self, run: Run, task: Task, attempt: MessageAttempt, *, again: bool = False) -> str:
        """A new session, kept if the task asks for that."""
        session = await self.talk.make(run, task.model, attempt, again=again)
        if task.persist:
            await self._keep(run, session, task.model)
        return session

    async def _keep(self, run: Run, session: str, model: str | None) -> None:
        """Store the session before anything is sent to it, and drop those beyond the limit."""

        def work(tx: Transaction, _: Context) -> list[str]:
            _check_holds(tx, run)
            tx.of(Sessions).keep(KeptSession(number_of(run.job_id), session, model or "", tx.now, tx.now))
            return tx.of(Sessions).crowd_out(self._settings.max_kept)

        for old in await self._scheduler.transact(work):
            await self._discard(old)

    async def _forget(self, job_id: int, session: str, *, discard: bool = False) -> None:
        def work(tx: Transaction, _: Context) -> bool:
            tx.of(Sessions).forget(job_id, session)
            return discard and session not in tx.of(Sessions).named()

        if await self._scheduler.transact(work):
            await self._discard(session)

    async def _discard(self, session: str) -> None:
        answer = await self._client.discard(session)
        if answer.problem is not None or answer.status >= 300:
            log.info(
                "session %s is no longer kept, but its server did not delete it: %s", session, answer.problem or answer
            )

    # -- the message --------------------------------------------------------------------------------------------------

    async def _send(self, run: Run, task: Task, attempt: MessageAttempt, session: str) -> Decision:
        return await self.talk.send(run, f"[scheduler:{run.job}] {task.prompt}", attempt, session)


def _find(tx: Transaction, number: int, job_id: int) -> tuple[MessageAttempt, KeptSession | None]:
    """The attempt a run belongs to, and the session that its job keeps."""
    tx.of(Sessions).touch(job_id, tx.now)
    return find_attempt(tx, number), tx.of(Sessions).of(job_id)


def _check_holds(tx: Transaction, run: Run) -> None:
    """Nothing is kept, and nothing sent, by a run that another node took over."""
    if not holds(tx, number_of(run.id)):
        message = "the run was taken over while a session was made for it"
        raise SessionFailed(message)
