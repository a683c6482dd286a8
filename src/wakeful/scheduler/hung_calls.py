"""Calls in threads that were given up and never returned: an alert for each kind of work, while there are any."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from wakeful import threads
from wakeful.counting import counted
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.services import Service

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

HUNG = "hung"
log = logging.getLogger("wakeful.threads")


class Look(Protocol):
    """Run `work` on a snapshot."""

    async def __call__(self, work: Callable[[Transaction], bool]) -> bool: ...


class Change(Protocol):
    """Run `work` in one durable transaction."""

    async def __call__(self, work: Callable[[Transaction, Context], None]) -> None: ...


class HungCalls(Service):
    """Alongside the engine of a scheduler: keeps the alerts `hung` of its node true."""

    def __init__(self, node: str, look: Look, change: Change) -> None:
        super().__init__("reporting calls that do not return", math.inf)
        self._node = node
        self._look = look
        self._change = change
        self._unwatch: Callable[[], None] | None = None

    def begin(self) -> None:
        """The engine runs; what an earlier process reported ended with it."""
        loop = asyncio.get_running_loop()
        if getattr(loop, "runs_inline", False):  # in virtual time nothing hangs
            return

        def notify() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.wake)

        self._unwatch = threads.watch(notify)
        super().begin()

    async def end(self) -> None:
        """The process may end: it waits for none of them."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
            await super().end()
            await self._report({})

    async def run_once(self) -> None:
        """Report how many there are now."""
        await self._report(threads.left_behind())

    async def _report(self, left: Mapping[str, int]) -> None:
        try:
            if await self._look(lambda tx: bool(_changes(tx, self._node, left))):
                await self._change(lambda tx, context: note_hung(tx, context, self._node, left))
        except SchedulerError as error:
            # Alerts that are over are closed by the next engine that looks.
            level = logging.WARNING if left else logging.DEBUG
            log.log(level, "calls that did not return could not be reported: %s", error)


def note_hung(tx: Transaction, context: Context, node: str, left: Mapping[str, int]) -> None:
    """Open an alert for each kind of work with calls that did not return; close those of this node that are over."""
    for subject, about in _changes(tx, node, left).items():
        if about is None:
            close_alert(tx, context, HUNG, subject)
            continue
        message = (
            f"{counted(about['calls'], 'call')} of {about['room']} did not return in time on {node}, and each keeps a "
            "thread. Find out what they wait for; a restart of the server ends them."
        )
        open_alert(tx, context, HUNG, subject, message, data=json.dumps(about))


def _changes(tx: Transaction, node: str, left: Mapping[str, int]) -> dict[str, dict[str, Any] | None]:
    """What to report by subject, None for what is over: of this node, and of those that are gone."""
    wanted = {f"{node}:{room}": {"node": node, "room": room, "calls": calls} for room, calls in left.items()}
    alive = {one.name for one in tx.members.alive()} - {node}
    known = {
        alert.key.partition(":")[2]: json.loads(alert.data or "{}")
        for alert in tx.alerts.all_open()
        if alert.kind == HUNG
    }
    over = [key for key, about in known.items() if key not in wanted and about.get("node") not in alive]
    return {**{key: about for key, about in wanted.items() if known.get(key) != about}, **dict.fromkeys(over)}
