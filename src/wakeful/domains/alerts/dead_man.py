"""The dead man's URL: called while this node's loop turns and its store answers, so that its silence means death.

It is a task of the loop it reports on, not a thread that would continue when the loop is stuck, and it asks the engine
before every call. A call that fails is tried again with the next one, is logged once, and becomes an alert; it never
holds anything up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from wakeful.domains.alerts import DEAD_MAN
from wakeful.domains.http import Poster
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.outbound import read_address
from wakeful.services import Service
from wakeful.triggers.moments import to_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler, SchedulerState
    from wakeful.store.interface import Transaction

EVERY_S = 30.0
UNWELL_S = 1.0
FIRST_S = 0.001  # the loop has looked once
PATIENCE_S = 20.0
STILL_MS = 75_000  # no loop that turns takes longer from one look to the next
FAILURES = 2  # in a row, before a person should know
log = logging.getLogger("wakeful.alerts")

Call = Callable[[str], Awaitable[int]]
"""Calls an address; the status it answered with."""


def is_healthy(state: SchedulerState, now: int) -> bool:
    """Whether the loop turns and the store answers."""
    if state.status != "running" or state.trouble is not None or state.last_check_at is None:
        return False
    return now - to_ms(state.last_check_at) < STILL_MS


def _open(tx: Transaction, context: Context, host: str, why: str) -> None:
    name = _own_name(tx, context)
    message = f"Node {name} cannot call the dead man's URL at {host}: {why}"
    open_alert(tx, context, DEAD_MAN, name, message)


def _close(tx: Transaction, context: Context) -> None:
    """It answers: close the alerts of nodes that could not call it and are gone."""
    others = {node.name for node in tx.members.alive()} - {_own_name(tx, context)}
    for alert in tx.alerts.open_of(DEAD_MAN):
        name = alert.key.partition(":")[2]
        if name not in others:
            close_alert(tx, context, DEAD_MAN, name)


def _own_name(tx: Transaction, context: Context) -> str:
    return tx.nodes.names_of([context.id]).get(context.id, "here")


class DeadMan(Service):
    """Begins and ends with the engine of a scheduler."""

    def __init__(self, scheduler: Scheduler, url: str | None, call: Call | None = None) -> None:
        """Without a URL nothing is called until `take` gives one."""
        super().__init__("calling the dead man's URL", EVERY_S, first=FIRST_S)
        self._scheduler = scheduler
        self._url = url or ""
        self._call = call if call is not None else self._post
        self._poster: Poster | None = None
        self._failed = 0  # in a row
        self._fresh = True  # no answer yet: open alerts are from an earlier process
        self._runs = False

    @property
    def _host(self) -> str:
        return read_address(self._url).host

    def begin(self) -> None:
        """The engine runs."""
        self._runs = True
        if self._url:
            super().begin()

    async def end(self) -> None:
        """No call from here on."""
        self._runs = False
        await super().end()

    async def take(self, url: str | None) -> None:
        """Call that address from here on, or none."""
        if (url or "") == self._url:
            return
        ran = self._runs
        await self.end()
        self._url, self._failed, self._fresh = url or "", 0, True
        if not self._url:
            await self._scheduler.transact(_close)
        log.info("the dead man's URL changed: %s", f"it is at {self._host}" if self._url else "none is called")
        if ran:
            self.begin()

    async def run_once(self) -> float:
        """Call the address, if all is well."""
        if not is_healthy(self._scheduler.get_state(), self._scheduler.clock.now()):
            return UNWELL_S
        await self._ping()
        return EVERY_S

    async def _ping(self) -> None:
        why: str | None = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                status = await self._call(self._url)
            if status >= 400:
                why = f"it answered {status}"
        except TimeoutError:
            why = f"no answer within {PATIENCE_S:g} s"
        except SchedulerError as error:
            why = self._without_secrets(str(error))
        except Exception as error:  # noqa: BLE001 - whatever happens to a call, the next one follows
            why = type(error).__name__
        await self._record(why)

    async def _record(self, why: str | None) -> None:
        if why is None:
            if self._fresh or self._failed >= FAILURES:
                await self._scheduler.transact(_close)
            self._failed, self._fresh = 0, False
            return
        self._failed += 1
        if self._failed == 1:
            log.warning("the dead man's URL at %s could not be called: %s", self._host, why)
        if self._failed == FAILURES:
            host = self._host
            await self._scheduler.transact(lambda tx, context: _open(tx, context, host, why))

    def _without_secrets(self, text: str) -> str:
        target = read_address(self._url).target
        for secret in (self._url, target):
            if len(secret) > 1:
                text = text.replace(secret, "***")
        return text

    async def _post(self, url: str) -> int:
        if self._poster is None:  # loads what it takes with the first call
            self._poster = Poster(self._scheduler.clock)
        return (await self._poster.post(url, {}, "")).status
