"""What was typed for a field of a job, as it is written elsewhere. Pure: the present is given.

`none` puts a field back to its default; a repeatable one replaces all its former values.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.console.failures import WrongUse
from wakeful.errors import IntervalParseError
from wakeful.fields import Field
from wakeful.surfaces.cli.when import read_when
from wakeful.triggers import iso, parse_interval, to_ms

NONE = "none"


class ParseContext(NamedTuple):
    """What texts are read with: the time, the zone of times, the job's own zone, where paths begin, and the input."""

    now: datetime | None = None
    zone: tzinfo | None = None
    place: str | None = None
    here: Path = Path()
    read_input: Callable[[], str] = lambda: ""


def typed(field: Field, value: Any, terms: ParseContext) -> Any:
    """The field as a file would have it; None where it is to be at its default."""
    flag = field.flag
    if flag is None or flag.metavar is None or value in (NONE, [NONE]):
        return None if value in (NONE, [NONE]) else value
    read = FORMS[flag.form]
    if not flag.many:
        return read(field.option, value, terms)
    values = [read(field.option, text, terms) for text in value]
    if values and isinstance(values[0], tuple):
        return dict(values)
    return [one for part in values for one in part] if values and isinstance(values[0], list) else values


def typed_fields(fields: tuple[Field, ...], wanted: Mapping[str, Any], terms: ParseContext) -> dict[str, Any]:
    """Those of the fields that were typed, by the names they are stored under."""
    return {
        field.stored or field.name: typed(field, wanted[field.name], terms) for field in fields if field.name in wanted
    }


def duration(option: str, text: str, _: ParseContext | None = None) -> str:
    """The text, if it is a duration."""
    try:
        parse_interval(text)
    except IntervalParseError as error:
        raise WrongUse(f"{option} {text!r}: {error}.") from None
    return text


def _moment(option: str, text: str, terms: ParseContext) -> str:
    assert terms.now is not None and terms.zone is not None  # noqa: S101, PT018 - given with every schedule
    return iso(to_ms(read_when(text, now=terms.now, zone=terms.zone, option=option)))


def _words(option: str, text: str, terms: ParseContext) -> dict[str, Any]:
    """The schedule that words say, as plain data."""
    from wakeful.triggers.sentences import read_sentence

    assert terms.now is not None and terms.zone is not None  # noqa: S101, PT018 - given with every schedule
    meant = read_sentence(text, to_ms(terms.now), str(terms.zone))
    if meant.type in ("ping", "webhook", "chat"):
        raise WrongUse(f"{option} {text!r} is not a schedule of a job that runs something: see --ping for monitors.")
    return meant.to_data()


def _cron(_: str, text: str, __: ParseContext) -> str:
    if text.lower().startswith("@every "):
        raise WrongUse(f"--cron {text!r} is not a cron expression: write --every {shlex.quote(text[7:].strip())}.")
    return text


def _hours(option: str, text: str, terms: ParseContext) -> dict[str, str]:
    start, dash, end = (part.strip() for part in text.partition("-"))
    if not dash:
        raise WrongUse(f"{option} {text!r} is not a span of hours: write 09:00-17:00.")
    return {"start": start, "end": end} | ({"timezone": terms.place} if terms.place is not None else {})


def _catch_up(option: str, text: str, _: ParseContext) -> str:
    """`once`, `skip`, or how late a start may be."""
    if text in ("once", "skip"):
        return text
    if not text[:1].isdigit():
        raise WrongUse(f"{option} {text!r} is no policy: write once, skip, or how late a start may be, such as 2h.")
    return duration(option, text)


def _retry(option: str, text: str, terms: ParseContext) -> int | list[str]:
    """`2`, or the delays `30s,2m`."""
    if text.isdigit():
        return _whole(option, text, terms)
    if not all(part.strip()[:1].isdigit() for part in text.split(",")):
        raise WrongUse(f"{option} {text!r} is neither a number nor delays: write how often, such as 2, or 30s,2m.")
    return _delays(option, text, terms)


def _delays(option: str, text: str, _: ParseContext) -> list[str]:
    return [duration(option, part.strip()) for part in text.split(",")]


def _kept(option: str, text: str, terms: ParseContext) -> dict[str, Any]:
    """`7d`, `100`, or both as `7d,100`."""
    found = dict[str, Any]()
    for part in (one.strip() for one in text.split(",")):
        key = "runs" if part.isdigit() else "age"
        if key in found or not part[:1].isdigit():
            raise WrongUse(f"{option} {text!r} is not how long or how many: write 7d, 100, or 7d,100.")
        found[key] = _whole(option, part, terms) if key == "runs" else duration(option, part)
    return found


def _lane(option: str, text: str, terms: ParseContext) -> tuple[str, int]:
    key, found, capacity = text.rpartition("=")
    if not found or not key:
        raise WrongUse(f"{option} {text!r} lacks a capacity: write {option} gpu=1.")
    return key, _whole(option, capacity, terms)


def _whole(option: str, text: str, _: ParseContext) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise WrongUse(f"{option} {text!r} is not a whole number.")
    return int(text)


def _signed(option: str, text: str, _: ParseContext) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 1000):  # the interpreter reads so many
        raise WrongUse(f"{option} {text!r} is not a whole number.")
    return int(text)


def _percent(option: str, text: str, _: ParseContext) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        raise WrongUse(f"{option} {text.removesuffix('%')!r} is not a number.") from None


def _path(_: str, text: str, terms: ParseContext) -> str:
    return str(terms.here / Path(text).expanduser())


def _pair(option: str, text: str, _: ParseContext) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise WrongUse(
            f"{option} {text!r} is not NAME=VALUE; to pass a variable on without storing it: --pass-env NAME."
        )
    return name, value


def _header(option: str, text: str, _: ParseContext) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise WrongUse(f"{option} {name!r} is not a header: write --header 'Accept: text/html'.")
    return name.strip(), value.strip()


def _codes(option: str, text: str, _: ParseContext) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) < 4 and int(word) < 256):
            raise WrongUse(f"{option} {text!r} is not a list of exit codes: write 0,3.")
    return [int(word) for word in words]


def _statuses(_: str, text: str, __: ParseContext) -> list[int | str]:
    words = [word.strip() for word in text.split(",")]
    return [int(word) if word.isascii() and word.isdecimal() and len(word) < 4 else word for word in words]


def _redirects(option: str, text: str, _: ParseContext) -> bool | None:
    known = {"follow": None, "refuse": False}
    if text not in known:
        raise WrongUse(f"{option} is follow or refuse, not {text!r}.")
    return known[text]


FORMS: Mapping[str, Callable[[str, str, ParseContext], Any]] = {
    "text": lambda _, text, __: text,
    "word": lambda _, text, __: text.replace("-", "_"),
    "capitals": lambda _, text, __: text.upper(),
    "input": lambda _, text, terms: terms.read_input() if text == "-" else text,
    "duration": duration,
    "moment": _moment,
    "cron": _cron,
    "words": _words,
    "hours": _hours,
    "percent": _percent,
    "delays": _delays,
    "count": _whole,
    "number": _signed,
    "catch_up": _catch_up,
    "retry": _retry,
    "lane": _lane,
    "kept": _kept,
    "path": _path,
    "pair": _pair,
    "header": _header,
    "codes": _codes,
    "statuses": _statuses,
    "redirects": _redirects,
}
"""How the text of a flag is read, by the form that its field names."""
