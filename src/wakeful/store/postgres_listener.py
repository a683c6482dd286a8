"""Hearing other processes: a connection of its own that waits for their notifications.

It only makes things faster. Where notifications never arrive, everything still works by looking once a second.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg

from wakeful.errors import SchedulerError
from wakeful.store.floor import Floor
from wakeful.store.postgres_address import Address
from wakeful.store.postgres_database import connect
from wakeful.store.postgres_session import CHANNEL

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0


class Listener:
    """Listens from its making until `stop`; connects again, with pauses, when the server went away."""

    def __init__(self, address: Address, own_name: str, floor: Floor, on_heard: Callable[[], None]) -> None:
        self._address = address
        self._own_name = own_name
        self._floor = floor
        self._on_heard = on_heard
        self._heard = threading.Event()
        self._wake, self._waker = os.pipe()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop, name="wakeful-listen", daemon=True)
        self._thread.start()

    def heard(self) -> bool:
        """Whether anything was announced since this was asked last."""
        heard = self._heard.is_set()
        self._heard.clear()
        return heard

    def stop(self) -> None:
        """End it; returns when it has ended, which is at once unless it is just connecting."""
        self._stopped = True
        os.write(self._waker, b".")
        self._thread.join()
        os.close(self._wake)
        os.close(self._waker)

    def _loop(self) -> None:
        pauses = _pauses()
        while not self._stopped:
            try:
                with connect(self._address) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    pauses = _pauses()
                    self._floor.listen(listening=True)
                    self._notify()  # what was announced before we listened
                    self._listen(connection)
            except (psycopg.Error, SchedulerError, OSError):
                self._floor.listen(listening=False)
                select.select([self._wake], [], [], next(pauses))
        self._floor.listen(listening=False)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopped:
            ready, _, _ = select.select([connection.fileno(), self._wake], [], [])
            if connection.fileno() not in ready:
                continue
            said = [notice.payload for notice in connection.notifies(timeout=0)]
            others = [payload for payload in said if not sent_by(self._own_name, payload)]
            for payload in others:
                self._floor.heard(earliest(payload))
            if others:
                self._notify()

    def _notify(self) -> None:
        self._heard.set()
        self._on_heard()


def announcement(name: str, due_at: int | None) -> str:
    """What a process of that name sends; `due_at` is the earliest alarm it has set."""
    return f"{name} {due_at}" if due_at is not None else name


def sent_by(name: str, payload: str) -> bool:
    return payload == name or payload.startswith(f"{name} ")


def earliest(payload: str) -> int | None:
    """The earliest alarm that was set; None where the sender does not say."""
    number = payload.rpartition(" ")[2]
    return int(number) if number.removeprefix("-").isdecimal() else None


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE_S)
