"""One message to a session, and what the answer means for the run: for schedules of sessions and for agents with `url`.

| decision (`answers.py`) | the run |
|---|---|
| `Done` | ends with the answer |
| `GoesOn` | waits for a call back, is polled if there is a status address, and is `unknown` after its deadline |
| `NoSession` | continues in a new session, once |
| `Busy` | is deferred by an hour, which counts toward nothing |
| `Unwell` | is an error, and the same slot is tried again in half an hour, for a day |
| `Failed` | is an error |

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
from wakeful.domains.agents.answers import (
    Busy,
    Decision,
    Done,
    GoesOn,
    NoSession,
    RequestRejected,
    Unwell,
    read_answer,
    same_origin,
    session_id,
)
from wakeful.domains.agents.settings import SessionSettings
from wakeful.domains.agents.tables import Sessions, Watch
from wakeful.errors import SchedulerError
from wakeful.kernel.actions.callbacks import callback_token
from wakeful.kernel.rules.outcome import Defer, TryAgain, Wait
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.domains.agents.client import SessionClient
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.reports import ReportedEnd

log = logging.getLogger("wakeful.sessions")

MOST_TRIES = 48  # of one slot, half an hour apart: a day


class SessionFailed(SchedulerError):
    """The session, or the server it lives on, says that it did not work."""

    traced = False


class MessageAttempt(NamedTuple):
    """What identifies a message: the first run that sent it, that run's token, and a report that came already."""

    run_id: int
    token: str
    report: ReportedEnd | None


def find_attempt(tx: Transaction, number: int) -> MessageAttempt:
    """The attempt a run belongs to: after a crash, the one that was cut off."""
    first, run = number, tx.runs.get(number)
    while run is not None and run.reason == "recovery" and run.retry_of is not None:
        first, run = run.retry_of, tx.runs.get(run.retry_of)
    return MessageAttempt(first, callback_token(tx, first), tx.reports.of([number]).get(number))


def reported(report: ReportedEnd) -> Any:
    """What was reported while the run waited for its turn is how it ends; nothing is sent."""
    if report.outcome != "success":
        raise SessionFailed(report.error or "it failed")
    return json.loads(report.output) if report.output is not None else None


class Talk:
    """Talks to one session server for runs. Times come from the scheduler's clock, facts go through its store."""

    def __init__(self, scheduler: Scheduler, settings: SessionSettings, client: SessionClient) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._client = client
        self.on_watch: Callable[[Watch], None] = lambda _: None

    async def make(self, run: Run, model: str | None, attempt: MessageAttempt, *, again: bool = False) -> str:
        """A new session; `again`: in place of one that is gone."""
        key = f"{ids.run_text(attempt.run_id)}-session" + ("-2" if again else "")
        answer = await self._client.create(model, key)
        decision = read_answer(answer, key=self._settings.name)
        if not isinstance(decision, (Done, GoesOn)):
            self.fail(run, decision, "no session could be made")
        session = session_id(answer)
        if session is None:
            self.fail(run, RequestRejected("the session server did not say what it is called"), "a session was made")
        return session

    async def send(self, run: Run, prompt: str, attempt: MessageAttempt, session: str) -> Decision:
        """Send the prompt; what the answer means."""
        run_id = ids.run_text(attempt.run_id)
        message = {"prompt": prompt, "source": "scheduler", "schedule": run.job, "runId": run_id}
        if self._settings.callback_url:
            base = self._settings.callback_url.rstrip("/")
            message["callbackUrl"] = f"{base}/api/runs/{run_id}/complete?token={attempt.token}"
        answer = await self._client.send(session, message, f"{run_id}-{session}")
        return read_answer(answer, reports=self._settings.done == "report", key=self._settings.name)

    async def conclude(self, run: Run, session: str, decision: Decision, deadline_ms: int | None = None) -> Done | Wait:
        """What the run ends with, or waits for; raises what the decision means else."""
        if isinstance(decision, GoesOn):
            return await self._wait(run, session, decision, deadline_ms or self._settings.deadline_ms)
        if not isinstance(decision, Done):
            self.fail(run, decision, f"session {session}")
        return decision

    async def _wait(self, run: Run, session: str, decision: GoesOn, deadline_ms: int) -> Wait:
        """The work continues there; the run waits, and is polled if its status address is known."""
        now = self._scheduler.clock.now()
        why = f"{decision.why} (session {session})"
        if decision.status_url is not None:
            url = same_origin(decision.status_url, self._client.base, self._client.messages_url(session))
            if url is None:
                why += (
                    f"; its status address {decision.status_url[:200]} was refused: "
                    f"it must be on the server of {self._settings.name}"
                )
                log.warning("%s of %s: %s", run.id, run.job, why)
            else:
                watch = Watch(number_of(run.id), url, now)
                await self._scheduler.transact(lambda tx, _: tx.of(Sessions).watch(watch))
                self.on_watch(watch)
        return Wait(from_ms(now + deadline_ms), why)

    def fail(self, run: Run, decision: Busy | Unwell | RequestRejected | NoSession, about: str) -> NoReturn:
        """Raise what the decision means for the run."""
        now = self._scheduler.clock.now()
        if isinstance(decision, Busy):
            raise Defer(from_ms(now + self._settings.busy_ms), f"{about} is busy: {decision.why}")
        why = f"{about}: {decision.why}"
        if isinstance(decision, (RequestRejected, NoSession)) or run.attempt >= MOST_TRIES:
            raise SessionFailed(why)
        raise TryAgain(from_ms(now + self._settings.retry_ms), why)


def number_of(text: str) -> int:
    found = ids.decode(text)
    assert found is not None  # noqa: S101 - the kernel made it
    return found[1]
