"""What a connector is: something that sends one message, or says why it did not.

A connector has a `type` and a coroutine `send(message)`. It returns when the target took the message. To say more than
an exception does it raises `Permanent` (no further attempt can help), `Temporary` (with `retry_after` where the target
said when) or `Unclear` (the message may have arrived; it is sent again with the same id). Any other exception counts as
`Temporary`. Its `secrets` are cut out of every error before it is stored. A send is given up after 30 seconds.

A connector that also receives has `begin(scheduler)` and `async end()`: it lives as long as the engine, records who
wrote with `scheduler.connectors.touch`, and sends to the `to` of a message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from wakeful.errors import SchedulerError
from wakeful.threads import LimitedThreadPool
from wakeful.triggers.moments import iso


class NotDelivered(SchedulerError):
    """A message was not taken; the message says why."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """`retry_after`: seconds that the target asked for."""
        super().__init__(message)
        self.retry_after = retry_after


class Permanent(NotDelivered):
    """No further attempt can help."""


class Temporary(NotDelivered):
    """The next attempt may work."""


class Unclear(Temporary):
    """It may have arrived all the same."""


def no_progress(_: str) -> None:
    """Of a message that is not stored."""


class Message(NamedTuple):
    """The message as sent: the same for every attempt, except `attempt` and `progress`."""

    id: str
    kind: str
    text: str
    title: str | None
    job: str | None
    run: str | None
    agent: str | None
    outcome: str | None
    to: str | None
    at: int
    attempt: int = 1
    extra: Mapping[str, Any] | None = None
    progress: str | None = None  # what earlier attempts have passed to `keep`
    keep: Callable[[str], None] = no_progress  # notes how far it is, from any thread; the next attempt gets it

    @property
    def type(self) -> str:
        return f"wakeful.{self.kind}"

    def data(self) -> dict[str, Any]:
        """What a webhook gets as `data`; with a message about an incident, also the incident."""
        names = ("id", "text", "title", "job", "run", "agent", "outcome")
        about = {"alert": self.extra["alert"]} if self.extra is not None and "alert" in self.extra else {}
        return {**{name: getattr(self, name) for name in names}, **about}

    def line(self) -> dict[str, Any]:
        """What a file or a program gets: the same, with its time, kind and recipient."""
        return {**self.data(), "kind": self.kind, "to": self.to, "at": iso(self.at)}


class Connector(Protocol):
    """Somewhere messages go."""

    @property
    def type(self) -> str: ...

    async def send(self, message: Message) -> None: ...


class Receiving(Connector, Protocol):
    """A connector that also listens."""

    def begin(self, scheduler: Any) -> None:
        """The engine runs."""

    async def end(self) -> None:
        """The engine is about to stop."""


class Arrived:
    """How many parts of a message have arrived, of messages that are tried again: they continue where they stopped.

    It is kept with the message, for the next process. What arrived at another `target` did not arrive here, and a text
    that is cut into another number of parts begins anew.
    """

    MOST = 200  # messages

    def __init__(self, target: str) -> None:
        self._target = hashlib.sha256(target.encode()).hexdigest()[:16]
        self._parts: dict[str, int] = {}

    def of(self, message: Message, parts: int) -> int:
        """How many of so many."""
        done, _, about = (message.progress or "").partition(" ")
        kept = int(done) if about == f"of {parts} at {self._target}" else 0
        return max(kept, self._parts.get(message.id, 0))

    def note(self, message: Message, done: int, parts: int) -> None:
        """One more has, also if whoever sent it was given up."""
        done = max(done, self._parts.pop(message.id, 0))
        while len(self._parts) >= self.MOST:
            self._parts.pop(next(iter(self._parts)))
        self._parts[message.id] = done
        if done < parts:
            message.keep(f"{done} of {parts} at {self._target}")

    def forget(self, message: Message) -> None:
        self._parts.pop(message.id, None)


THREADS = 4  # that a connector may keep busy: each call that does not return takes one away


def room_of(name: str) -> LimitedThreadPool:
    """Threads for one connector, of that name or type."""
    return LimitedThreadPool(f"connector {name}", THREADS)


def secrets_of(connector: object) -> Sequence[str]:
    """What must not appear in anything that is kept, the longest first."""
    found = {value for value in getattr(connector, "secrets", ()) if isinstance(value, str) and len(value) > 3}
    return sorted(found, key=len, reverse=True)


def scrubbed(text: str, connector: object) -> str:
    """A text without the connector's secrets."""
    for secret in secrets_of(connector):
        text = text.replace(secret, "***")
    return text
