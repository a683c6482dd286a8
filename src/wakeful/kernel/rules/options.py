"""The options of a job besides its trigger and kind: time limit, retries, lanes, and so on.

`option_fields` describes each and reads it; `OptionValues` holds the validated values. In the store they are
JSON with only what differs from the defaults, so a default that changes reaches the jobs that never chose otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.kernel.rules.option_fields import INTERNAL, OPTIONS, OptionValues
from wakeful.kernel.rules.option_reading import write_duration
from wakeful.spelling import did_you_mean

__all__ = ["DEFAULTS", "OPTION_NAMES", "OptionValues", "as_written", "changed", "from_text", "read_options", "to_text"]

DEFAULTS = OptionValues()


def read_options(given: Mapping[str, Any], *, beside: Sequence[str] = ()) -> OptionValues:
    """Options as a user writes them; InvalidJob names the one that is wrong.

    `beside`: what else could be given in their place, and may be what a misspelt one means.
    """
    fields: dict[str, Any] = {}
    for key, value in given.items():
        reader = _READERS.get(key)
        if reader is None:
            hint = did_you_mean(key, (*_READERS, *beside), f"Known options: {', '.join(sorted(_READERS))}.")
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
    return OptionValues(**{name: _tuples(value) for name, value in json.loads(text).items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def as_written(options: OptionValues) -> dict[str, Any]:
    """Options as people write and read them."""
    if options == DEFAULTS:  # most are
        return {}
    found = {field.name: field.write(getattr(options, field.name)) for field in _ALL if _is_chosen(options, field.name)}
    if _is_chosen(options, "retry") or _is_chosen(options, "retry_on"):
        found["retry"] = {"delays": [write_duration(ms) for ms in options.retry or ()], "on": options.retry_on}
    return dict(sorted(found.items()))


def _is_chosen(options: OptionValues, name: str) -> bool:
    return bool(getattr(options, name) != getattr(DEFAULTS, name))


_ALL = (*OPTIONS, *INTERNAL)
_READERS = {field.name: field.read for field in _ALL}

OPTION_NAMES = tuple(_READERS)

_TOGETHER = {"retry": ("retry_on",)}
