"""How options of jobs are read and written: what users write is kept, or refused with a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, TypeVar

from wakeful.errors import InvalidJob
from wakeful.fields import Reader
from wakeful.triggers.durations import format_interval, interval_ms

RETRY_DELAYS = (30_000, 120_000)
MAX_WORD = 200
PRIORITIES = range(-100, 101)
MOST = 100  # entries of any list, and retries: each is stored, and read with every listing

Items = TypeVar("Items", bound=Sized)

CATCH_UP = ("once", "skip")
RETRY_ON = ("transient", "any")
DELIVER_ON = ("any", "success", "failure", "change")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
RESERVED_LANES = ("running", "crash-suspects")  # the engine's own
RESERVED_PREFIXES = ("kind:", "labels:")  # what a job waits for that is no lane


def read_duration(key: str, value: Any) -> dict[str, Any]:
    """Milliseconds of a duration."""
    return {key: interval_ms(value)}


def write_duration(ms: int) -> str | float:
    """A duration as people write it; a fraction of a second is a number of seconds."""
    return ms / 1000 if ms % 1000 else format_interval(ms)


def read_catch_up(key: str, value: Any) -> dict[str, Any]:
    """`once`, `skip`, or how late a missed start may be made up for: `2h`, `{"within": "2h"}`."""
    if isinstance(value, Mapping) and set(value) == {"within"}:
        return {key: interval_ms(value["within"])}
    if isinstance(value, str) and value[:1].isdigit():
        return {key: interval_ms(value)}
    return {key: _one_of(key, value, CATCH_UP, ' or {"within": "2h"}')}


def read_word(*allowed: str) -> Reader:
    """One of these words."""
    return lambda key, value: {key: _one_of(key, value, allowed)}


def write_catch_up(value: str | int) -> Any:
    """The policy, or how late a start may be."""
    return {"within": write_duration(value)} if isinstance(value, int) else value


def read_retry(key: str, value: Any) -> dict[str, Any]:
    """`2`, `["30s", "2m"]` or `{"delays": [...], "on": "any"}` (also `times`)."""
    on = "any"
    if isinstance(value, Mapping):
        unknown = set(value) - {"times", "delays", "on"}
        if unknown:
            message = f"retry has no {min(unknown)!r}: it takes times, delays and on."
            raise InvalidJob(message)
        on = _one_of("retry.on", value.get("on", "any"), RETRY_ON)
        times = _count("retry.times", value.get("times", len(RETRY_DELAYS)), MOST)
        given, value = value, value.get("delays", times)
        if "delays" in given and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise InvalidJob(f'retry.delays is a list of delays such as ["30s", "2m"], not {value!r:.80}.')
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {"retry": tuple(interval_ms(item) for item in _few(key, value)), "retry_on": on}
    if isinstance(value, str):
        raise InvalidJob(
            f'{key} is how often to try again (2), or the delays, such as ["30s", "2m"], not {value!r:.80}.'
        )
    times = _count(key, value, MOST)
    return {"retry": tuple(RETRY_DELAYS[min(i, len(RETRY_DELAYS) - 1)] for i in range(times)), "retry_on": on}


def read_delays(key: str, value: Any) -> dict[str, Any]:
    """A list of durations that is not empty."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        message = f'{key} is a list of delays such as ["30s", "5m"], not {value!r:.80}.'
        raise InvalidJob(message)
    return {key: tuple(interval_ms(item) for item in _few(key, value))}


def read_count(key: str, value: Any) -> dict[str, Any]:
    """A whole number."""
    return {key: _count(key, value)}


def read_lanes(key: str, value: Any) -> dict[str, Any]:
    """How many may run at once in each lane."""
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


def read_label_list(key: str, value: Any) -> dict[str, Any]:
    """The labels that a node needs."""
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


def read_priority(key: str, value: Any) -> dict[str, Any]:
    """A whole number in bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in PRIORITIES:
        message = f"{key} is a whole number from {PRIORITIES[0]} to {PRIORITIES[-1]}, not {value!r:.80}."
        raise InvalidJob(message)
    return {key: value}


def read_deliver(key: str, value: Any) -> dict[str, Any]:
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


def read_retention(key: str, value: Any) -> dict[str, Any]:
    """`{"age": "7d", "runs": 100}`, or one of the two."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidJob(f'{key} is how long ended runs are kept, and how many: {{"age": "7d", "runs": 100}}.')
    unknown = set(value) - {"age", "runs"}
    if unknown:
        raise InvalidJob(f"{key} has no {min(map(str, unknown))!r:.80}: it takes age and runs.")
    age = interval_ms(value["age"]) if "age" in value else None
    runs = _count(f"{key}.runs", value["runs"]) if "runs" in value else None
    if runs == 0:
        raise InvalidJob(f"{key}.runs is at least 1: the last run of a job is always kept.")
    return {key: (age, runs)}


def write_retention(kept: tuple[int | None, int | None] | None) -> dict[str, Any] | None:
    """As it is written in a file."""
    if kept is None:
        return None
    age, runs = kept
    return ({} if age is None else {"age": write_duration(age)}) | ({} if runs is None else {"runs": runs})


def read_flag(key: str, value: Any) -> dict[str, Any]:
    """True or false."""
    if not isinstance(value, bool):
        message = f"{key} is true or false, not {value!r:.80}."
        raise InvalidJob(message)
    return {key: value}


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
