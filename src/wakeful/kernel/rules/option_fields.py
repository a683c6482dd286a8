"""Every option of a job: what it means, how it is read, and how each surface writes it. One entry per option.

What users write is read here and refused with a sentence where it is wrong; `options` keeps the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, TypeVar

from wakeful.errors import InvalidJob
from wakeful.fields import COUNT, DURATION, Field, Flag, list_of, map_of, one_of
from wakeful.triggers.durations import interval_ms

RETRY_DELAYS = (30_000, 120_000)
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
        times = _count("retry.times", value.get("times", len(RETRY_DELAYS)), MOST)
        given, value = value, value.get("delays", times)
        if "delays" in given and (isinstance(value, str) or not isinstance(value, Sequence)):
            raise InvalidJob(f'retry.delays is a list of delays such as ["30s", "2m"], not {value!r:.80}.')
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


_CONNECTOR = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9_-]{0,63}$"}
_LABEL = {
    "type": "string",
    "pattern": r"^[^,\s]([^,]*[^,\s])?$",
    "maxLength": MAX_WORD,
    "description": "a word without commas",
}
_TIMES = {**COUNT, "maximum": MOST}
_DELAYS = list_of(DURATION, most=MOST)
_RETRY = map_of({}, {"times": _TIMES, "delays": _DELAYS, "on": one_of(*RETRY_ON)})

OPTIONS = (
    Field(
        "timeout",
        _duration,
        DURATION,
        "End a run that takes longer (default: 2h).",
        "30m",
        Flag("--timeout", "DURATION", "duration"),
    ),
    Field(
        "catch_up",
        _catch_up,
        one_of(*CATCH_UP, or_else=map_of({"within": DURATION})),
        "What missed starts get: one run for all (`once`, default), none (`skip`), or one if no later than 2h (`2h`).",
        "once",
        Flag("--catch-up", "POLICY", "catch_up"),
    ),
    Field(
        "overlap",
        _overlap,
        one_of(*OVERLAP),
        "If it is due while it runs: `skip` (default), `queue` or `cancel_other`.",
        "skip",
        Flag("--overlap", "POLICY", "word"),
    ),
    Field(
        "retry",
        _retry,
        {"anyOf": [{**_TIMES, "description": "how often"}, _DELAYS, _RETRY]},
        "Retries of a failed run: how many, or the delay before each.",
        2,
        Flag("--retry", "N", "retry"),
    ),
    Field(
        "backoff",
        _backoff,
        list_of(DURATION, least=1, most=MOST),
        "How long the next start waits after one error, two in a row, and so on (default: 30s,1m,5m,15m,1h).",
        ["1m", "5m", "15m"],
        Flag("--backoff", "DELAYS", "delays"),
    ),
    Field(
        "max_errors",
        _max_errors,
        COUNT,
        "Disable the job after this many errors in a row (default: 5; 0: never).",
        5,
        Flag("--max-errors", "N", "count"),
    ),
    Field(
        "error_span",
        _duration,
        DURATION,
        "Disable the job only if the errors in a row have gone on for this long, too.",
        "1d",
        Flag("--error-span", "DURATION", "duration"),
    ),
    Field(
        "on_crash",
        _on_crash,
        one_of(*ON_CRASH),
        "What follows a run that a crash cut off: `recover` (default) or `resume` runs it again, `skip` does not.",
        "recover",
        Flag("--on-crash", "POLICY", "word"),
    ),
    Field(
        "lanes",
        _lanes,
        {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1_000_000},
            "propertyNames": {"minLength": 1, "maxLength": MAX_WORD},
            "maxProperties": MOST,
        },
        "Limits shared with other jobs: at most so many runs at once in each lane.",
        {"gpu": 1},
        Flag("--lane", "KEY=N", "lane", many=True),
    ),
    Field(
        "labels",
        _labels,
        list_of(_LABEL, most=MOST),
        "Run only on nodes that have all of these labels.",
        ["gpu"],
        Flag("--label", "LABEL", many=True),
    ),
    Field(
        "approval",
        _flag,
        {"type": "boolean"},
        "Every start waits for a person.",
        example=True,
        flag=Flag("--approval/--no-approval"),
    ),
    Field(
        "priority",
        _priority,
        {"type": "integer", "minimum": PRIORITIES[0], "maximum": PRIORITIES[-1]},
        "From -100 to 100 (default: 0): of what is due, the higher starts first. Above 0 is for admins.",
        0,
        Flag("--priority", "N", "number"),
    ),
    Field(
        "deliver",
        _deliver,
        {"anyOf": [_CONNECTOR, map_of({"to": _CONNECTOR}, {"on": one_of(*DELIVER_ON)})]},
        "Where results are sent: a connector, or where and which of them.",
        {"to": "phone", "on": "failure"},
        Flag("--deliver", "CONNECTOR"),
    ),
)
"""What users may write. The order is that of the docs and the help."""
INTERNAL = (Field("bounded", _flag, {}, "Whether the minimum interval applies; set by the server.", example=True),)
"""What is stored like an option, and is the server's to say."""
