"""How handlers with steps are written: one function per event, keys of events, retries, and what follows a failure."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidJob
from wakeful.kernel.rules.outcome import clean
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Event, Function

MAX_PLACES = 100
MAX_RETRIES = 100
MAX_KEY = 1_000
ON_FAILURE = ("stop", "park")
DEFAULT_LIMIT_MS = 3_600_000  # of the whole function
STEP_LIMIT_MS = 300_000


class StepHandler:
    """A handler that is called once per event, and whose steps are recorded: `@workflow.on("orders")`."""

    type = "steps"

    def __init__(
        self,
        name: str,
        topic: str,
        run: Function,
        *,
        publishes: Sequence[str] | None,
        key: Callable[[Event], Any] | None,
        concurrency: int,
        retry: Sequence[int] | None,
        on_failure: str,
        timeout: int,
    ) -> None:
        self.name = name
        self.subscribes: tuple[str, ...] = (topic,)
        self.run = run
        self.publishes = publishes
        self.key = key
        self.concurrency = concurrency
        self.retry = retry
        self.on_failure = on_failure
        self.timeout = timeout

    @property
    def beside(self) -> bool:
        """Whether its runs are active alongside each other, and alongside those of other handlers."""
        return self.concurrency > 1

    def functions(self) -> dict[str, tuple[Function, int]]:
        """Its function, with the number of arguments it gets."""
        return {"steps": (self.run, 2)}

    def declared(self) -> tuple[Any, ...]:
        """What makes it another version besides the code of its function."""
        return (self.concurrency, None if self.retry is None else tuple(self.retry), self.on_failure)

    def key_of(self, event: Event) -> str:
        """The key of an event, as a text; what the author's function raises."""
        if self.key is None:
            return event.id if self.beside else ""
        text = json.dumps(self.key(event), separators=(",", ":"), sort_keys=True, allow_nan=False)
        if clean(text) != text or len(text.encode()) > MAX_KEY:
            message = f"A key has at most {MAX_KEY} bytes, and is {text!r:.80}."
            raise ValueError(message)
        return text


def read_concurrency(given: Any) -> int:
    """How many runs are active at a time, or InvalidJob."""
    if type(given) is not int or not 1 <= given <= MAX_PLACES:
        message = f"concurrency is a whole number from 1 to {MAX_PLACES}, not {given!r:.80}."
        raise InvalidJob(message)
    return given


def read_retry(given: Any) -> tuple[int, ...] | None:
    """The delays before further attempts, in milliseconds, or InvalidJob."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > MAX_RETRIES:
        message = f'retry is a list of at most {MAX_RETRIES} delays, such as ["10s", "1m"], not {given!r:.80}.'
        raise InvalidJob(message)
    return tuple(interval_ms(delay) for delay in given)


def read_on_failure(given: Any) -> str:
    """What follows when an event has failed for good, or InvalidJob."""
    if given not in ON_FAILURE:
        message = f"on_failure is 'stop' or 'park', not {given!r:.80}."
        raise InvalidJob(message)
    return str(given)


def read_key(given: Any) -> Any:
    """The function that gives an event's key, or InvalidJob."""
    if given is not None and not callable(given):
        message = f'key is a function of an event, such as lambda event: event.payload["customer"], not {given!r:.80}.'
        raise InvalidJob(message)
    if inspect.iscoroutinefunction(given):
        raise InvalidJob("key is a plain function, without async: the key of an event follows from the event alone.")
    return given


def read_limit(given: str | float | timedelta | None, default: int) -> int:
    """A time limit in milliseconds."""
    return default if given is None else interval_ms(given)
