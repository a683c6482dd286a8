"""What the engine's loop knows about itself between two steps: one value, changed only by its named transitions; and
what it counts.

Besides it: how the loop waits until a moment or until something wakes it, and what is said when the store fails under a
running engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from wakeful.counting import counted
from wakeful.errors import StoreError, StoreGone
from wakeful.kernel.actions.runs import release_runs

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.kernel.loop.config import EngineConfig
    from wakeful.store.interface import Store, Transaction


class Counters:
    """What the engine has done since it started; they only inform."""

    def __init__(self) -> None:
        self.checks = 0
        self.starts = 0
        self.last_check: int | None = None
        self.lost = 0
        self.clock_steps = 0


class News(IntEnum):
    """What happened since the last turn began; the higher covers the lower."""

    NONE = 0
    CHANGED = 1  # there is something to look at
    RECHECK = 2  # and it may be about a run, or come from elsewhere


class AdmissionState(Enum):
    """Whether anything may be started here."""

    CLOSED = "our owner has us start nothing"
    BARRED = "our owner lets us, but the lease or a drain does not"
    OPEN = "due jobs are ours"


class Contact(Enum):
    """What is known of the store: whether it answers, and whether its claims of ours are those that we know."""

    SURE = "it answers, and we know our claims"
    UNSURE = "it answers, and may hold claims of ours that we never heard of"
    AWAY = "it does not answer, and may hold such claims"
    BACK = "it answered about our claims, and is still to do a turn"

    @property
    def in_trouble(self) -> bool:
        return self in (Contact.AWAY, Contact.BACK)


_LOSING = {Contact.SURE: Contact.UNSURE, Contact.BACK: Contact.AWAY}
_FINDING = {Contact.UNSURE: Contact.SURE, Contact.AWAY: Contact.BACK}
_RECOVERING = {Contact.AWAY: Contact.UNSURE, Contact.BACK: Contact.SURE}


@dataclass(slots=True)
class LoopState:
    """Belongs to the engine's loop. Read anywhere; written by the transitions below alone."""

    news: News = News.CHANGED
    admission: AdmissionState = AdmissionState.CLOSED
    contact: Contact = Contact.SURE
    trouble: str | None = None  # what is wrong with the store while it is in trouble
    turning: bool = False  # whether a turn is under way

    @property
    def admitting(self) -> bool:
        """Whether our owner lets us start anything."""
        return self.admission is not AdmissionState.CLOSED

    @property
    def admitted(self) -> bool:
        """Whether we might start anything when we last looked."""
        return self.admission is AdmissionState.OPEN

    @property
    def unsure(self) -> bool:
        """Whether the store may hold claims of ours that we never heard of."""
        return self.contact in (Contact.UNSURE, Contact.AWAY)

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.recover()
        self.admission = AdmissionState.OPEN
        self.note_change()

    def stop_admitting(self) -> None:
        self.admission = AdmissionState.CLOSED

    # -- what there is to do ------------------------------------------------------------------------------------------

    def note_change(self, *, recheck_store: bool = False) -> None:
        """There is something for the next turn to look at."""
        self.news = max(self.news, News.RECHECK if recheck_store else News.CHANGED)

    def note_admission(self, *, admitted: bool) -> None:
        """While we may start nothing, due jobs are others'; once we may again, look at what there is."""
        if not self.admitting:
            return
        if admitted and not self.admitted:
            self.note_change(recheck_store=True)
        self.admission = AdmissionState.OPEN if admitted else AdmissionState.BARRED

    # -- a turn -------------------------------------------------------------------------------------------------------

    def begin_turn(self) -> bool:
        """Whether this turn is to recheck the store.

        Cleared before the transaction: a change committed after it must not be covered up by its answer.
        """
        recheck_store = self.news is News.RECHECK
        self.news = News.NONE
        self.turning = True
        return recheck_store

    def end_turn(self) -> None:
        self.turning = False

    # -- trouble with the store ---------------------------------------------------------------------------------------

    def lose_claims(self) -> None:
        """The store may hold claims that are not going to be started here."""
        self.contact = _LOSING.get(self.contact, self.contact)

    def find_claims(self) -> None:
        """The store holds no claims but those that we know; what was released is due."""
        self.contact = _FINDING.get(self.contact, self.contact)
        self.note_change(recheck_store=True)

    def fail(self, trouble: str) -> bool:
        """The store did not answer as it should; whether that is new."""
        is_new = not self.contact.in_trouble
        self.contact, self.trouble = Contact.AWAY, trouble
        return is_new

    def recover(self) -> bool:
        """The store answers; whether that is new."""
        was_troubled = self.contact.in_trouble
        self.contact, self.trouble = _RECOVERING.get(self.contact, self.contact), None
        return was_troubled


class Sleeper:
    """One sleep at a time, which `wake` ends early."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        handle = loop.call_later(seconds, self.wake)
        try:
            await waiter
        finally:
            handle.cancel()
            self._waiter = None

    def wake(self) -> None:
        """End the sleep, if there is one."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class OtherProcesses:
    """Whether another process wrote: a job added or a run cancelled from the command line. Asked every so often."""

    def __init__(self, store: Store, clock: Clock, config: EngineConfig) -> None:
        self._store = store
        self._clock = clock
        self._config = config
        self._next = 0

    async def wrote(self) -> bool:
        now = self._clock.boot()
        if self._config.virtual or now < self._next:
            return False
        self._next = now + self._config.tuning.poll_ms
        return await self._store.changed_elsewhere()

    def delay(self, longest: float) -> float:
        """Seconds until it is asked again, where it is asked at all."""
        return longest if self._config.virtual else max(0.0, (self._next - self._clock.boot()) / 1000)


log = logging.getLogger("wakeful.engine")
_SAID = {False: "database unavailable, retrying: %s", True: "the engine stops: %s"}


def note_trouble(state: LoopState, error: StoreError, lost: Callable[[StoreGone], None]) -> None:
    """Say it once, not every second; `lost` is told if there is nothing to wait for."""
    gone = isinstance(error, StoreGone)
    if state.fail(str(error)):
        log.log(logging.ERROR if gone else logging.WARNING, _SAID[gone], error)
    if isinstance(error, StoreGone):
        lost(error)


def note_recovery(state: LoopState) -> None:
    if state.recover():
        log.warning("database available again")


async def release_unknown(store: Store, state: LoopState, context: Context, known: AbstractSet[int]) -> None:
    """A turn whose answer never came, or too late, may have been stored. What it claimed is released."""

    def work(tx: Transaction) -> int:
        # Every claim holds our node's row until it ends: one whose commit is still under way is waited for.
        tx.members.lives(context.id)
        unknown = [run for run in tx.runs.of_nodes([context.id]) if run.id not in known]
        release_runs(tx, context, unknown)
        return len(unknown)

    released = await store.write(work)
    if released:
        log.warning("released %s with an unknown commit result", counted(released, "claimed run"))
    state.find_claims()
