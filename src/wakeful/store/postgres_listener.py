"""Hearing other processes: a connection of its own that waits for their notifications.

It only makes things faster. Where notifications never arrive, everything still works by looking once a second. Every
role of the database may send anything: it costs one look at most, and never ends the listening.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg

from wakeful.store.alarm_watermark import Watermark
from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_database import connect
from wakeful.store.postgres_session import CHANNEL

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("wakeful.store")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 10.0
_TOGETHER_S = 0.01  # after a look; what is announced meanwhile is one more look
_FEW = 3  # failures in a row that need no mention
_LONGEST_TIME = 16  # digits of a moment


class Listener:
    """Listens from its making until `stop`; connects again, with pauses, when the server went away."""

    def __init__(
        self, address: PostgresAddress, own_name: str, watermark: Watermark, on_heard: Callable[[], None]
    ) -> None:
        self._address = address
        self._own_name = own_name
        self._watermark = watermark
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
        failures, pauses = 0, _pauses()
        while not self._stopped:
            try:
                with connect(self._address) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    failures, pauses = 0, _pauses()
                    self._watermark.listen(listening=True)
                    self._notify()  # what was announced before we listened
                    self._listen(connection)
            except Exception as error:  # noqa: BLE001 - whatever it was, the next connection may do without
                failures += 1
                if not isinstance(error, psycopg.Error | OSError) or failures == _FEW:
                    log.warning("changes by other processes are noticed within a second, not at once: %s", error)
                self._watermark.listen(listening=False, in_vain=failures >= _FEW)
                self._wait(timeout=next(pauses))
        self._watermark.listen(listening=False)

    def _wait(self, *files: int, timeout: float | None = None) -> bool:
        """Until something can be read from one of the files, or this is to stop; whether it is the files."""
        with selectors.DefaultSelector() as selector:
            for file in (self._wake, *files):
                selector.register(file, selectors.EVENT_READ)
            return any(key.fd != self._wake for key, _ in selector.select(timeout))

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopped:
            if not self._wait(connection.fileno()):
                continue
            said = [notice.payload for notice in connection.notifies(timeout=0)]
            others = [payload for payload in said if not sent_by(self._own_name, payload)]
            for payload in others:
                self._watermark.heard(earliest(payload))
            if others:
                self._notify()
                self._wait(timeout=_TOGETHER_S)

    def _notify(self) -> None:
        self._heard.set()
        self._on_heard()


def announcement(name: str, due_at: int | None) -> str:
    """What a process of that name sends; `due_at` is the earliest alarm it has set."""
    return f"{name} {due_at}" if due_at is not None else name


def sent_by(name: str, payload: str) -> bool:
    return payload == name or payload.startswith(f"{name} ")


def earliest(payload: str) -> int | None:
    """The earliest alarm that was set; None where the sender does not say, or says what no node would."""
    number = payload.rpartition(" ")[2] if " " in payload else ""
    digits = number.removeprefix("-")
    is_time = len(digits) <= _LONGEST_TIME and digits.isascii() and digits.isdecimal()
    return int(number) if is_time else None


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE_S)
