"""Asking how work continues that a session server accepted: for servers that do not call back, or whose call was lost.

Everything needed is in the store, so a restart continues asking. On a store that several nodes share, a run is polled
by the node that started it, and by anybody once that node is gone. Two answers to one question are harmless: the first
settles the run, the second finds it settled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents.answers import Done, read_status
from wakeful.domains.agents.tables import Sessions, Watch
from wakeful.errors import RunNotFound, ScheduleTriggerError, StoreError
from wakeful.services import Service

if TYPE_CHECKING:
    from wakeful.domains.agents.answers import ServerResponse
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.sessions")

AT_ONCE = 8  # questions under way
LOOK_MS = 60_000  # how often the store is read for runs to poll
RETRY_S = 1.0  # after trouble with it


class PolledRun:
    """One watched run: where to ask, and when next (boot time)."""

    __slots__ = ("asked", "at", "watch")

    def __init__(self, watch: Watch, at: int) -> None:
        self.watch = watch
        self.at = at
        self.asked = 0


class Polling(Service):
    """Lives alongside the engine: begins with it, ends with it."""

    def __init__(
        self,
        scheduler: Scheduler,
        kind: str,
        poll_s: tuple[float, float],
        ask: Callable[[Watch], Awaitable[ServerResponse]],
        close: Callable[[], Awaitable[None]],
        *,
        look_ms: int = LOOK_MS,
    ) -> None:
        """Polls runs of one kind of job: `ask` makes one request, `close` is called at the end."""
        super().__init__("the polling of waiting runs", look_ms / 1000, retry=RETRY_S)
        self._scheduler = scheduler
        self._kind = kind
        self._poll_s = poll_s
        self._status = ask
        self._close = close
        self._look_ms = look_ms
        self._clock = scheduler.clock
        self._questions: dict[int, PolledRun] = {}
        self._next_look = 0

    def begin(self) -> None:
        self._next_look = 0
        super().begin()

    async def end(self) -> None:
        await super().end()
        await self._close()

    def watch(self, watch: Watch) -> None:
        """A run has begun to be worth asking about."""
        wait = max(0, watch.since + self._pause(0) - self._clock.now())  # nothing, after a restart
        self._questions[watch.run_id] = PolledRun(watch, self._clock.boot() + min(wait, self._pause(0)))
        self.wake()

    def _pause(self, asked: int) -> int:
        first, longest = self._poll_s
        return int(min(longest, first * 1.5 ** min(asked, 40)) * 1000)

    async def run_once(self) -> float:
        """Ask what is due; until when then is the next question, or the next look at the store."""
        if self._clock.boot() >= self._next_look:
            await self._look()
        now = self._clock.boot()
        due = sorted((question for question in self._questions.values() if question.at <= now), key=lambda one: one.at)
        if due:
            await asyncio.gather(*[self._ask(question) for question in due[:AT_ONCE]])
        at = min([self._next_look, *(question.at for question in self._questions.values())])
        return max(0.01, (at - self._clock.boot()) / 1000)

    async def _look(self) -> None:
        """Compare what we ask about with what the store says there is to ask about."""
        node_id, kind = self._scheduler.host.node_id, self._kind
        known = set(self._questions)
        mine, over = await self._scheduler.read(lambda tx: _sorted(tx, node_id, kind))
        if over:
            await self._scheduler.transact(lambda tx, _: tx.of(Sessions).unwatch(over))
        for watch in mine:
            if watch.run_id not in self._questions:
                self.watch(watch)
        for run_id in known.difference(watch.run_id for watch in mine):  # ended here, or another node sees to it
            self._questions.pop(run_id, None)
        self._next_look = self._clock.boot() + self._look_ms

    async def _ask(self, question: PolledRun) -> None:
        watch = question.watch
        question.asked += 1
        question.at = self._clock.boot() + self._pause(question.asked)  # also if asking fails: it is not due at once
        answer = await self._status(watch)
        found = read_status(answer)
        question.at = self._clock.boot() + self._pause(question.asked)
        if found is None:
            if answer.problem is not None or answer.status >= 300:
                log.debug("%s: %s", ids.run_text(watch.run_id), answer.problem or answer.status)
            return
        output, error = (found.output, None) if isinstance(found, Done) else (None, found.why)
        try:
            await self._report(watch.run_id, output, error)
        except StoreError as trouble:
            log.warning("database unavailable, the end of %s is stored later: %s", ids.run_text(watch.run_id), trouble)

    async def _report(self, run_id: int, output: Any, error: str | None) -> None:
        try:
            await self._scheduler.server_side.report_run(ids.run_text(run_id), output, error=error)
        except (ScheduleTriggerError, RunNotFound) as late:
            log.debug("%s", late)
        await self._scheduler.transact(lambda tx, _: tx.of(Sessions).unwatch([run_id]))
        self._questions.pop(run_id, None)


def _sorted(tx: Transaction, node_id: int, kind: str) -> tuple[list[Watch], list[int]]:
    """The runs of a kind that this node polls, and those that need no more polling."""
    watched = [found for found in tx.of(Sessions).watched() if found.kind in (kind, None)]
    alive = {row.id for row in tx.members.alive()} if watched and not tx.exclusive else set()
    mine = [
        found.watch
        for found in watched
        if found.status in ("active", "waiting") and (found.node == node_id or found.node not in alive)
    ]
    over = [found.watch.run_id for found in watched if found.status in (None, "done")]
    return mine, over
