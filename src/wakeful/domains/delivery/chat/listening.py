"""Handing messages from people to the functions of a program that listen.

A message is marked as handed over when every listener has returned: after a crash in between it is handed over again,
with the same id. What must not happen twice belongs into `hears` of a domain, which is part of the transaction that
receives the message.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from wakeful.domains.delivery.chat.receiving import Incoming, incoming
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.errors import SchedulerError

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.delivery")

AT_ONCE = 100
Listener = Callable[[Incoming], Any]


def _handed(number: int, tx: Transaction, _: Context) -> None:
    tx.of(Chats).message_handed(number)


class Listeners:
    """Who listens in this process, to one connector or to all."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._listeners: list[tuple[Listener, str | None]] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def listen(self, listener: Listener, connector: str | None) -> Callable[[], None]:
        entry = (listener, connector)
        self._listeners.append(entry)

        def unlisten() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unlisten

    def hand_over(self, connector: str) -> None:
        """Hand over what came in and was not yet, in order; returns at once."""
        running = self._tasks.get(connector)
        if running is None or running.done():
            self._tasks[connector] = asyncio.get_running_loop().create_task(self._all(connector))

    async def end(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    async def _all(self, connector: str) -> None:
        try:
            while rows := await self._scheduler.read(lambda tx: tx.of(Chats).open_messages(connector, AT_ONCE)):
                for row in rows:
                    await self._one(incoming(row))
                    await self._scheduler.transact(partial(_handed, row.id))
        except SchedulerError as error:
            log.warning("%s: messages are handed over later: %s", connector, error)

    async def _one(self, message: Incoming) -> None:
        for listener, connector in list(self._listeners):
            if connector not in (None, message.connector):
                continue
            try:
                found = listener(message)
                if inspect.isawaitable(found):
                    await found
            except Exception:
                log.exception("a listener failed on message %s", message.id)
