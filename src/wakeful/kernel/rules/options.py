"""The options of a job beside its trigger and kind: time limit, retries, lanes, and so on.

`JobOptions`, in `option_types`, is what users write; `OptionValues` holds the validated values. In the store they are
JSON with only what differs from the defaults, so a default that changes reaches the jobs that never chose otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.triggers.durations import format_interval, interval_ms

LADDER = (30_000, 60_000, 300_000, 900_000, 3_600_000)
RETRY_DELAYS = (30_000, 120_000)
STUCK_LIMIT_MS = 7_200_000
MAX_ERRORS = 5
MAX_WORD = 200
PRIORITIES = range(-100, 101)
MOST = 100  # entries of any list, and retries: each is stored, and read with every listing

Items = TypeVar("Items", bound=Sized)

CATCH_UP = ("once", "skip")
OVERLAP = ("skip", "queue", "cancel_other")
ON_CRASH = ("recover", "skip", "resume")
RETRY_ON = ("transient", "any")
DELIVER_ON = ("any", "success", "failure", "change")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
RESERVED_LANES = ("running", "crash-suspects")  # the engine's own
RESERVED_PREFIXES = ("kind:", "labels:")  # what a job waits for that is no lane


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


def _duration(key: str, value: Any) -> dict[str, Any]:
    return {key: interval_ms(value)}


def _catch_up(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping) and set(value) == {"within"}:
        return {key: interval_ms(value["within"])}
    return {key: _one_of(key, value, CATCH_UP, ' or {"within": "2h"}')}


def _overlap(key: str, value: Any) -> dict[str, Any]:
    return {key: _one_of(key, value, OVERLAP)}


def _on_crash(key: str, value: Any) -> dict[str, Any]:
    return {key: _one_of(key, value, ON_CRASH)}


def _retry(key: str, value: Any) -> dict[str, Any]:
    """`2`, `["30s", "2m"]` or `{"delays": [...], "on": "any"}` (also `times`)."""
    on = "any"
    if isinstance(value, Mapping):
        unknown = set(value) - {"times", "delays", "on"}
        if unknown:
            message = f"retry has no {min(unknown)!r}: it takes times, delays and on."
            raise InvalidJob(message)
        on = _one_of("retry.on", value.get("on", "any"), RETRY_ON)
        value = value.get("delays", value.get("times", len(RETRY_DELAYS)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {"retry": tuple(interval_ms(item) for item in _few(key, value)), "retry_on": on}
    times = _count(key, value, MOST)
    return {"retry": tuple(RETRY_DELAYS[min(i, len(RETRY_DELAYS) - 1)] for i in range(times)), "retry_on": on}


def _backoff(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        message = f'{key} is a list of delays such as ["30s", "5m"], not {value!r:.80}.'
        raise InvalidJob(message)
    return {key: tuple(interval_ms(item) for item in _few(key, value))}


def _max_errors(key: str, value: Any) -> dict[str, Any]:
    return {key: _count(key, value)}


def _lanes(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        message = f'{key} maps a lane to how many may run in it at once, such as {{"gpu": 1}}, not {value!r:.80}.'
        raise InvalidJob(message)
    for name, capacity in _few(key, value).items():
        if not isinstance(name, str) or not name or len(name) > MAX_WORD or not name.isprintable():
            message = f"{key}: a lane's name is a text of 1 to {MAX_WORD} printable characters, not {name!r:.80}."
            raise InvalidJob(message)
        if name in RESERVED_LANES or name.startswith(RESERVED_PREFIXES):
            message = f"{key}: {name!r:.80} is a name Wakeful uses itself: choose another."
            raise InvalidJob(message)
        if _count(f"{key}.{name}", capacity) < 1:
            message = f"{key}.{name} must let at least one run in."
            raise InvalidJob(message)
    return {key: tuple(sorted(value.items()))}


def _labels(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Sequence):
        message = f"{key} is a list of labels, not {value!r:.80}."
        raise InvalidJob(message)
    if any(isinstance(item, str) and len(item) > MAX_WORD for item in _few(key, value)):
        message = f"{key}: a label has {MAX_WORD} characters at most."
        raise InvalidJob(message)
    return {key: tuple(sorted(read_labels(key, value)))}


def read_labels(key: str, value: Iterable[Any]) -> frozenset[str]:
    """Labels of a job or a node: words without commas, which separate them on the command line."""
    items = [value] if isinstance(value, str) else list(value)
    if isinstance(value, str) or not all(isinstance(item, str) and item and item.isprintable() for item in items):
        message = f"{key} is a list of labels, not {value!r:.80}."
        raise InvalidJob(message)
    for item in items:
        if "," in item or item != item.strip():
            message = f"{key}: a label holds no comma and does not begin or end with a space: {item!r:.80}."
            raise InvalidJob(message)
    return frozenset(items)


def _priority(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        message = f"{key} is a whole number from {PRIORITIES[0]} to {PRIORITIES[-1]}, not {value!r:.80}."
        raise InvalidJob(message)
    return {key: value}


def _deliver(key: str, value: Any) -> dict[str, Any]:
    """`phone`, or `{"to": "phone", "on": "failure"}`."""
    given = {"to": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping) or "to" not in given:
        message = f'{key} is a connector such as "phone", or {{"to": "phone", "on": "failure"}}, not {value!r:.80}.'
        raise InvalidJob(message)
    unknown = set(given) - {"to", "on"}
    if unknown:
        message = f"{key} has no {min(map(str, unknown))!r:.80}: it takes to and on."
        raise InvalidJob(message)
    to = given["to"]
    if not isinstance(to, str) or NAME.fullmatch(to) is None:
        message = f"{key}: a connector's name is small letters, digits, - and _, 64 at most, not {to!r:.80}."
        raise InvalidJob(message)
    return {key: (to, _one_of(f"{key}.on", given.get("on", "any"), DELIVER_ON))}


def _flag(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, bool):
        message = f"{key} is true or false, not {value!r:.80}."
        raise InvalidJob(message)
    return {key: value}


_READERS = {
    "timeout": _duration,
    "catch_up": _catch_up,
    "overlap": _overlap,
    "retry": _retry,
    "backoff": _backoff,
    "max_errors": _max_errors,
    "error_span": _duration,
    "on_crash": _on_crash,
    "lanes": _lanes,
    "labels": _labels,
    "approval": _flag,
    "priority": _priority,
    "deliver": _deliver,
    "bounded": _flag,
}


OPTION_NAMES = tuple(_READERS)

_TOGETHER = {"retry": ("retry_on",)}


def _one_of(key: str, value: Any, allowed: Sequence[str], more: str = "") -> str:
    if value not in allowed:
        message = f"{key} is one of {', '.join(allowed)}{more}, not {value!r:.80}."
        raise InvalidJob(message)
    return str(value)


def _few(key: str, value: Items) -> Items:
    """A list or map as it is, if it is short enough to be kept."""
    if len(value) > MOST:
        message = f"{key} has {MOST} entries at most, not {len(value)}."
        raise InvalidJob(message)
    return value


def _count(key: str, value: Any, most: int = 1_000_000) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        message = f"{key} is a whole number from 0 to {most}, not {value!r:.80}."
        raise InvalidJob(message)
    return value
