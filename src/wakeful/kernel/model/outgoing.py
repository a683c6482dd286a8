"""What a run sends: messages that its handler asks for, and what became of those that were stored with its end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidJob
from wakeful.kernel.rules.option_reading import NAME
from wakeful.kernel.rules.outcome import Outgoing, clean

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

Source = Callable[["Transaction", Sequence[int]], Mapping[int, list[dict[str, Any]]]]

#: Who knows what was sent about runs; domains add themselves.
SOURCES: dict[str, Source] = {}
#: Who knows how many messages made from an id on were given up; domains add themselves.
GIVEN_UP: dict[str, Callable[[Transaction, int], int]] = {}
#: Who knows how many messages wait to be sent, and since when the first of them does; domains add themselves.
UNSENT: dict[str, Callable[[Transaction], tuple[int, int | None]]] = {}

MAX_TEXT = 100_000
MAX_MESSAGES = 100
MAX_TITLE = 300


def check_message(text: object, to: object, title: object = None) -> Outgoing:
    """A message as it can be stored, or InvalidJob with what is wrong with it."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        message = f"A message is a text of 1 to {MAX_TEXT} characters, not {text!r:.80}."
        raise InvalidJob(message)
    if not isinstance(to, str) or NAME.fullmatch(to) is None:
        message = f"to is the name of a connector, last or none, not {to!r:.80}."
        raise InvalidJob(message)
    if title is not None and (not isinstance(title, str) or len(title) > MAX_TITLE):
        message = f"A title is a text of at most {MAX_TITLE} characters, not {title!r:.80}."
        raise InvalidJob(message)
    return Outgoing(clean(text), to, clean(" ".join(title.split())) if title else None)


class Accepted:
    """A message was taken. Async handlers may await it; there is nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class Outbox:
    """The part of a run that sends."""

    __slots__ = ("_deliveries", "_outgoing")

    def __init__(self) -> None:
        self._outgoing: list[Outgoing] = []
        self._deliveries: list[dict[str, Any]] = []

    @property
    def outgoing(self) -> tuple[Outgoing, ...]:
        """What `deliver` was given so far."""
        return tuple(self._outgoing)

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        """What was sent about this run, and what became of it: `id`, `connector`, `status`, `last_error`."""
        return self._deliveries

    def deliver(self, text: str, *, to: str = "last", title: str | None = None) -> Accepted:
        """Send a message with the end of this run: stored only if the run ends as success or noop.

        `to` is a connector, or `last`: the connector through which a person last wrote.
        """
        if len(self._outgoing) >= MAX_MESSAGES:
            message = f"A run sends {MAX_MESSAGES} messages at most."
            raise InvalidJob(message)
        self._outgoing.append(check_message(text, to, title))
        return Accepted()


def with_deliveries(tx: Transaction, runs: Sequence[tuple[int, Outbox]]) -> None:
    """Give each run, beside its number, what was sent about it."""
    numbers = [number for number, _ in runs]
    for source in SOURCES.values() if numbers else ():
        found = source(tx, numbers)
        for number, run in runs:
            run._deliveries += found.get(number, [])  # noqa: SLF001 - filled in here alone
