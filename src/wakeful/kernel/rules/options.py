"""The options of a job beside its trigger and kind: time limit, retries, lanes, and so on.

`option_fields` describes each and reads it; `OptionValues` holds the validated values. In the store they are
JSON with only what differs from the defaults, so a default that changes reaches the jobs that never chose otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.kernel.rules.option_fields import INTERNAL, OPTIONS, RETRY_DELAYS
from wakeful.triggers.durations import format_interval

LADDER = (30_000, 60_000, 300_000, 900_000, 3_600_000)
STUCK_LIMIT_MS = 7_200_000
MAX_ERRORS = 5


class OptionValues(NamedTuple):
    """One job's choices; times in milliseconds."""

    timeout: int = STUCK_LIMIT_MS
    catch_up: str | int = "once"  # or how late a missed slot may still be run
    overlap: str = "skip"
    retry: tuple[int, ...] | None = None  # None: the trigger's own default (`once` retries, others do not)
    retry_on: str = "transient"
    backoff: tuple[int, ...] = LADDER
    max_errors: int = MAX_ERRORS  # 0: never disabled
    error_span: int = 0  # ... and not before they have gone on for so long
    on_crash: str = "recover"
    lanes: tuple[tuple[str, int], ...] = ()
    labels: tuple[str, ...] = ()
    approval: bool = False  # every start waits for a person
    priority: int = 0  # who starts first of what is due, and of what waits for a lane: the higher
    deliver: tuple[str, str] | None = None  # where its results are sent, and which of them
    bounded: bool = False  # its trigger came from outside, and obeys the server's minimum interval

    def retry_delays(self, trigger_type: str) -> tuple[int, ...]:
        """After how long each further attempt at the same slot is made."""
        if self.retry is not None:
            return self.retry
        return RETRY_DELAYS if trigger_type == "once" else ()


DEFAULTS = OptionValues()


def read_options(given: Mapping[str, Any], *, beside: Sequence[str] = ()) -> OptionValues:
    """Options as a user writes them; InvalidJob names the one that is wrong.

    `beside`: what else could be given in their place, and may be what a misspelt one means.
    """
    fields: dict[str, Any] = {}
    for key, value in given.items():
        reader = _READERS.get(key)
        if reader is None:
            from difflib import get_close_matches  # only when something is wrong

            near = get_close_matches(key, (*_READERS, *beside), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" Known options: {', '.join(sorted(_READERS))}."
            message = f"A job has no option {key!r:.80}.{hint}"
            raise InvalidJob(message)
        if value is not None:
            try:
                fields.update(reader(key, value))
            except IntervalParseError as error:
                message = f"{key}: {error}."
                raise IntervalParseError(message, error.interval) from error
    return OptionValues(**fields)


def changed(options: OptionValues, changes: Mapping[str, Any], *, beside: Sequence[str] = ()) -> OptionValues:
    """Some options changed, the others as they are; None puts one back to its default."""
    given = read_options(changes, beside=beside)
    names = [name for key in changes for name in (key, *_TOGETHER.get(key, ()))]
    return options._replace(**{name: getattr(given, name) for name in names})


def to_text(options: OptionValues) -> str:
    """JSON of what differs from the defaults."""
    pairs = zip(OptionValues._fields, options, DEFAULTS, strict=True)
    different = {name: value for name, value, default in pairs if value != default}
    return json.dumps(different, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=4096)
def from_text(text: str) -> OptionValues:
    """The options behind stored JSON. Cached by text: most jobs share a handful."""
    if text == "{}":
        return DEFAULTS
    data = json.loads(text)
    for name in ("retry", "backoff", "labels", "deliver"):
        if data.get(name) is not None:
            data[name] = tuple(data[name])
    if "lanes" in data:
        data["lanes"] = tuple((str(key), int(capacity)) for key, capacity in data["lanes"])
    return OptionValues(**data)


def as_written(options: OptionValues) -> dict[str, Any]:
    """Options as people write and read them."""
    if options == DEFAULTS:  # most are
        return {}
    data: dict[str, Any] = json.loads(to_text(options))
    for name in ("timeout", "catch_up", "error_span"):
        if isinstance(data.get(name), int):
            data[name] = _written(data[name])
    if isinstance(options.catch_up, int):
        data["catch_up"] = {"within": _written(options.catch_up)}
    if "retry" in data or "retry_on" in data:
        delays = [_written(ms) for ms in options.retry or ()]
        data["retry"] = {"delays": delays, "on": data.pop("retry_on", options.retry_on)}
    if "backoff" in data:
        data["backoff"] = [_written(ms) for ms in options.backoff]
    if "lanes" in data:
        data["lanes"] = dict(options.lanes)
    if options.deliver is not None:
        data["deliver"] = {"to": options.deliver[0], "on": options.deliver[1]}
    return data


def _written(ms: int) -> str | float:
    """A duration as people write it; a fraction of a second is a number of seconds."""
    return ms / 1000 if ms % 1000 else format_interval(ms)


_READERS = {field.name: field.read for field in (*OPTIONS, *INTERNAL)}

OPTION_NAMES = tuple(_READERS)

_TOGETHER = {"retry": ("retry_on",)}
