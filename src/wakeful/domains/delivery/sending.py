"""Sending what waits for one connector, in order: the handler of the internal kind `delivery`.

An attempt is on record before it is made, and its end right after it. A process that dies in between leaves an attempt
without an end: the next run finds it, records it as unknown, and sends the message again with the same id. The end of
one attempt and the beginning of the next are one transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.delivery.chat import CHAT_TYPES, pairing
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.connector import Message, NotDelivered, Permanent, Unclear, scrubbed
from wakeful.domains.delivery.digests import release
from wakeful.domains.delivery.outbox import (
    arm,
    armed_at,
    attempt_at,
    emit,
    free_at,
    hasten,
    hold_for_pairing,
    next_look,
)
from wakeful.domains.delivery.rules import (
    BUDGET_MS,
    ERROR_MOST,
    SEND_LIMIT_S,
    Tried,
    after_attempt,
    quiet_until,
    rules_of,
)
from wakeful.domains.delivery.tables import AttemptRow, ConnectorRow, DeliveryRow, Outbox
from wakeful.errors import SchedulerError, ThreadsBusy
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.rules.outcome import FAILURES, Noop, clean
from wakeful.triggers.durations import format_interval

if TYPE_CHECKING:
    from wakeful.domains.delivery.connector import Connector
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.run import Run
    from wakeful.kernel.rules.outcome import Result
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

log = logging.getLogger("wakeful.delivery")

FAILED = "delivery_failed"
MOST_CUT_OFF = 10  # attempts in a row that the end of the process cuts off before they count
DIED = "the process ended while it was being sent: it may have arrived"
MOST_AT_ONCE = 1_000  # that one transaction expires


class ClaimedDelivery(NamedTuple):
    """A delivery that is on record as being sent."""

    row: DeliveryRow
    attempt: int


class DeliverySender:
    """Runs the jobs of kind `delivery`."""

    def __init__(self, scheduler: Scheduler, find: Callable[[str], Connector | None]) -> None:
        self._scheduler = scheduler
        self._find = find
        self._keeping: set[asyncio.Task[None]] = set()

    async def __call__(self, run: Run) -> dict[str, int]:
        """Send due messages, oldest first, until none is left, the budget is used up, or the scheduler stops."""
        name = str(run.payload["connector"])
        connector = self._find(name)
        if connector is None:  # unregistered since it was claimed
            raise Noop(f"{name} is not registered here")
        clock = self._scheduler.clock
        begun, sent, failed, serves = clock.boot(), 0, 0, self._scheduler.is_running()  # not where it runs alone
        taken = await self._scheduler.transact(lambda tx, context: begin(tx, context, name, run.job_id))
        while taken is not None:
            connector = self._find(name) or connector  # it may have been changed since
            message = message_of(taken.row)._replace(keep=self._keeper(taken.row.id))
            tried, ms = await attempt(connector, message, clock.boot)
            await self._kept()
            sent, failed = sent + tried.ok, failed + (not tried.ok)
            goes_on = self._find(name) is not None and self._scheduler.is_running() == serves
            more = goes_on and clock.boot() - begun < BUDGET_MS
            taken = await self._scheduler.transact(_step(name, taken, tried, ms, more=more))
        if not sent and not failed:
            raise Noop("nothing is due")
        return {"sent": sent, "failed": failed}

    def _keeper(self, number: int) -> Callable[[str], None]:
        """What stores how much of a message has arrived, also when a thread says so that was given up."""
        loop, ours = asyncio.get_running_loop(), threading.get_ident()

        def keep(progress: str) -> None:
            if threading.get_ident() == ours:
                begin_keeping(progress)
                return
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(begin_keeping, progress)

        def begin_keeping(progress: str) -> None:
            task = loop.create_task(self._keep(number, progress))
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)

        return keep

    async def _keep(self, number: int, progress: str) -> None:
        with contextlib.suppress(SchedulerError):  # then what has arrived is sent again after a crash, and only then
            await self._scheduler.transact(lambda tx, _: tx.of(Outbox).keep_progress(number, progress))

    async def _kept(self) -> None:
        if self._keeping:
            await asyncio.wait(self._keeping)


def _step(
    name: str, taken: ClaimedDelivery, tried: Tried, ms: int, *, more: bool
) -> Callable[[Any, Any], ClaimedDelivery | None]:
    def work(tx: Transaction, context: Context) -> ClaimedDelivery | None:
        record(tx, context, taken, tried, ms)
        return take(tx, context, name) if more else None

    return work


async def attempt(connector: Connector, message: Message, boot: Callable[[], int]) -> tuple[Tried, int]:
    """Send one message, whatever the connector does; how that ended, and how long it took."""
    begun = boot()
    limit = asyncio.timeout(SEND_LIMIT_S)
    try:
        async with limit:
            await connector.send(message)
        tried = Tried(ok=True)
    except NotDelivered as error:
        wait = None if error.retry_after is None else round(error.retry_after * 1000)
        permanent, unclear = isinstance(error, Permanent), isinstance(error, Unclear)
        tried = Tried(False, _said(error, connector), permanent, wait, unclear)  # noqa: FBT003
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():  # the run is to end
            raise
        tried = Tried(ok=False, error=_said(error, connector), unclear=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a connector raises is a failed attempt
        if limit.expired():
            tried = Tried(ok=False, error=f"no answer within {SEND_LIMIT_S:g} s: it may have arrived", unclear=True)
        else:  # a time limit of its own may have been over with the message under way
            tried = Tried(ok=False, error=_said(error, connector), unclear=isinstance(error, TimeoutError))
    return tried, max(0, boot() - begun)


def _said(error: BaseException, connector: Connector) -> str:
    text = str(error) if isinstance(error, NotDelivered | ThreadsBusy) else f"{type(error).__name__}: {error}"
    return clean(scrubbed(text, connector))[:ERROR_MOST]


def message_of(row: DeliveryRow) -> Message:
    """A delivery as its connector gets it."""
    return Message(
        ids.encode("dlv", row.id),
        row.kind,
        row.text,
        row.title,
        row.job,
        ids.run_text(row.run_id) if row.run_id is not None else None,
        row.agent,
        row.outcome,
        row.recipient,
        row.created_at,
        row.attempts,
        json.loads(row.extra) if row.extra is not None else None,
        row.progress,
    )


# -- transactions ------------------------------------------------------------------------------------------------------


def begin(tx: Transaction, context: Context, name: str, job: str) -> ClaimedDelivery | None:
    """What an earlier process left in the middle is unknown; then as every other time.

    Only the connector's own job sends: two at a time would take each other's messages for left behind.
    """
    connector = find_connector(tx, name)
    if connector is None or ids.job_text(connector.job_id) != job:
        return None
    for row in tx.of(Outbox).in_flight(name):
        rest = tx.of(Outbox).open_attempt(row.id)
        tried = Tried(ok=False, error=DIED, unclear=True, cut_off=True)
        record(tx, context, ClaimedDelivery(row, rest.id if rest is not None else 0), tried, None)
    return take(tx, context, name)


def _keeps_dying(outbox: Outbox, row: DeliveryRow) -> bool:
    """Whether so many attempts in a row were cut off that sending it may be what ends the process."""
    latest = outbox.attempts(row.id)[-MOST_CUT_OFF:]
    return len(latest) == MOST_CUT_OFF and all(item.error == DIED for item in latest)


def find_connector(tx: Transaction, name: str) -> ConnectorRow | None:
    return next((row for row in tx.of(Outbox).connectors(removed=True) if row.name == name), None)


def take(tx: Transaction, context: Context, name: str) -> ClaimedDelivery | None:
    """The head of the queue, on record as being sent; None where nothing may be sent now."""
    connector = find_connector(tx, name)
    if connector is None:
        return None
    outbox, rules, now, expired = tx.of(Outbox), rules_of(connector.rules), tx.now, False
    release(tx, context, connector, rules)
    for _ in range(MOST_AT_ONCE):
        row = outbox.head(name)
        if row is None:
            return None
        if rules.max_age is not None and row.since + rules.max_age <= now:
            why = row.last_error or f"it waited for longer than {format_interval(rules.max_age)}"
            _expire(tx, row, why)
            if not expired:  # one incident, however many there are
                message = f"A message to {name} expired before it could be delivered: {why}"
                open_alert(tx, context, FAILED, name, message, job_id=row.job_id)
            expired = True
            continue
        if connector.type in CHAT_TYPES and not _addressed(tx, context, row):
            continue
        until = None if row.urgent else quiet_until(rules, now)
        if until is not None:
            outbox.hold_waiting(name, until)
            continue
        if attempt_at(tx, row) > now or free_at(outbox, name, rules, now) > now:
            return None
        early = row.regular_at if (row.regular_at or 0) > now else None
        row = row._replace(status="sending", attempts=row.attempts + 1, next_at=None, regular_at=early)
        outbox.save(row)
        number = context.new_id()
        outbox.begin_attempt(AttemptRow(
            id=number, delivery_id=row.id, connector=name, at=now, ms=None, ok=None, error=None,
        ))  # fmt: skip
        return ClaimedDelivery(row, number)
    return None


def _addressed(tx: Transaction, context: Context, row: DeliveryRow) -> bool:
    """Whether the head of a chat's queue is for a person who is paired; else it is over, or waits for one."""
    name = row.connector or ""
    people = tx.of(Chats).people(name) if row.recipient is None else []
    if row.recipient is None and not people:
        hold_for_pairing(tx, context, name)
        return False
    if row.recipient is None:
        tx.of(Outbox).save(row._replace(recipient=people[0].sender))
        return False  # it is the head again
    if tx.of(Chats).person(name, row.recipient) is None:
        _expire(tx, row, pairing.no_longer(name, row.recipient))
        return False
    return True


def _expire(tx: Transaction, row: DeliveryRow, why: str) -> None:
    row = row._replace(status="expired", open=0, next_at=None, last_error=why)
    tx.of(Outbox).save(row)
    tx.of(Outbox).end_digest(row.id, "expired", row.last_error, None)
    emit(tx, "expired", row)


def record(tx: Transaction, context: Context, taken: ClaimedDelivery, tried: Tried, ms: int | None) -> None:
    """Record how an attempt ended. If its delivery is no longer being sent, or is sent again, nothing else changes."""
    outbox = tx.of(Outbox)
    row = outbox.get(taken.row.id)
    connector = find_connector(tx, taken.row.connector or "")
    if row is None or connector is None or (row.status, row.attempts) != ("sending", taken.row.attempts):
        return
    known = None if tried.unclear else tried.ok
    outbox.end_attempt(taken.attempt, ok=known, error=tried.error, ms=ms)
    early = row.regular_at
    spared = early is not None or (tried.cut_off and not _keeps_dying(outbox, row))
    row = row._replace(spared=row.spared + spared, regular_at=None)
    verdict = after_attempt(tried, row.counted, rules_of(connector.rules), tx.now, spared=spared, regular_at=early)
    is_open = verdict.status in ("pending", "unknown")
    row = row._replace(
        status=verdict.status,
        open=int(is_open),
        next_at=verdict.next_at,
        last_error=tried.error,
        sent_at=tx.now if tried.ok else None,
        not_before=tx.now + tried.retry_after if tried.retry_after is not None else None,
    )
    outbox.save(row)
    if not is_open and row.kind == "digest":
        outbox.end_digest(row.id, row.status, row.last_error, row.sent_at)
    if row.status == "failed":
        tries = counted(row.attempts, "attempt")
        message = f"A message could not be delivered to {connector.name} after {tries}: {tried.error}"
        open_alert(tx, context, FAILED, connector.name, message, job_id=row.job_id)
    elif row.status == "sent":
        close_alert(tx, context, FAILED, connector.name)
    emit(tx, "retrying" if is_open else row.status, row)


def rearm(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """A run of a connector's job ends: the next one comes when its queue's head is due."""
    del context, run
    connector = _connector_of(tx, job)
    state = tx.jobs.states([job.id]).get(job.id)
    if connector is None or state is None or not state.enabled or state.paused or state.run_id is not None:
        return
    at = next_look(tx, connector)
    if at is not None and result.outcome in FAILURES:
        at = max(at, tx.now + 5_000)  # what cannot be recorded must not be tried in a loop
    if at is not None and (state.next_at is None or at < state.next_at):
        tx.jobs.save([armed_at(state, max(at, tx.now))])


def _connector_of(tx: Transaction, job: JobDef) -> ConnectorRow | None:
    """The connector that this job sends for. Another that names it sends nothing, and is not armed by its queue."""
    connector = find_connector(tx, str(json.loads(job.payload).get("connector")))
    return connector if connector is not None and connector.job_id == job.id else None


def look_now(tx: Transaction, job: JobDef, state: JobState) -> JobState:
    """The times of what waits may be of another clock, or long past: the head is tried now."""
    connector = _connector_of(tx, job)
    if connector is None:
        return state
    hasten(tx, connector.name, tx.now)
    at = next_look(tx, connector)
    sooner = at is not None and (state.next_at is None or at < state.next_at)
    return armed_at(state, max(at or 0, tx.now)) if sooner else state


__all__ = ["DeliverySender", "arm", "attempt", "message_of", "rearm", "record", "take"]
