"""The options of `add` and `edit`, turned into what the library stores. Pure: the present is given.

`edit` changes what is named and leaves the rest. "none" puts an option back to its default; a repeatable option
replaces all its former values.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, tzinfo
from typing import Annotated, Any, get_type_hints

import typer

from wakeful.cli.failures import WrongUse
from wakeful.cli.when import is_on_the_wall, read_when
from wakeful.cli.words import zone_named
from wakeful.errors import IntervalParseError
from wakeful.fields import Field, Flag
from wakeful.kernel.rules.option_fields import OPTIONS
from wakeful.triggers import iso, parse_interval, settled_zone, system_zone, to_ms, zone_name

NONE = "none"
RHYTHMS = ("cron", "every", "interval", "at", "after", "manual")
_TIMED_KEYS = ("tz", "jitter", "stagger", "active_hours", "start", "until", "max_runs", "except")
_UNTIMED = ("after", "manual")
_WHEN, _HOW, _WHAT = "When it runs", "How it runs", "What it runs"


def _option(flag: str, help: str, panel: str, metavar: str | None = None) -> Any:  # noqa: A002 - typer's own word
    return typer.Option(flag, help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


@dataclass(frozen=True)
class Definition:
    """The options of `add` and `edit`, as they were typed."""

    cron: Annotated[str | None, _option("--cron", 'A cron expression, such as "0 9 * * 1-5".', _WHEN, "EXPR")] = None
    every: Annotated[str | None, _option("--every", "At a fixed rate: every 30s, 5m, 6h, 7d.", _WHEN, "DURATION")] = (
        None
    )
    interval: Annotated[str | None, _option("--interval", "This long after each run ends.", _WHEN, "DURATION")] = None
    ping: Annotated[
        bool | None,
        typer.Option("--ping", help="A monitor: a job that runs elsewhere and pings.", rich_help_panel=_WHEN),
    ] = None
    grace: Annotated[str | None, _option("--grace", "With --ping: how late a ping may be (1h).", _WHEN, "DURATION")] = (
        None
    )
    at: Annotated[str | None, _option("--at", "Once, at 2026-12-24T18:00, in 20m, tomorrow 09:00.", _WHEN, "TIME")] = (
        None
    )
    after: Annotated[str | None, _option("--after", "When another job ends.", _WHEN, "JOB")] = None
    manual: Annotated[bool | None, _option("--manual", "Only when started: wakeful run NAME.", _WHEN)] = None
    on: Annotated[str | None, _option("--on", "With --after: success (default), failure or any.", _WHEN, "END")] = None
    anchor: Annotated[
        str | None, _option("--anchor", "With --every: count from this time (default: now).", _WHEN, "TIME")
    ] = None
    tz: Annotated[str | None, _option("--tz", "The time zone, such as Europe/Berlin.", _WHEN, "ZONE")] = None
    start: Annotated[str | None, _option("--start", "No start before this time.", _WHEN, "TIME")] = None
    until: Annotated[str | None, _option("--until", "No start after this time.", _WHEN, "TIME")] = None
    max_runs: Annotated[str | None, _option("--max-runs", "Stop after this many runs.", _WHEN, "N")] = None
    except_dates: Annotated[
        list[str] | None, _option("--except", "No start on this date (repeatable).", _WHEN, "DATE")
    ] = None
    active_hours: Annotated[
        str | None, _option("--active-hours", "Start only in these hours: 09:00-17:00.", _WHEN, "HOURS")
    ] = None
    jitter: Annotated[
        str | None, _option("--jitter", "Start up to this much later: 0 to 10 percent.", _WHEN, "PERCENT")
    ] = None
    stagger: Annotated[
        str | None, _option("--stagger", "Spread jobs of one schedule over this time.", _WHEN, "DURATION")
    ] = None
    options: Mapping[str, Any] = field(default_factory=dict)
    deliver_on: Annotated[
        str | None, _option("--deliver-on", "Which results: any (default), success, failure, change.", _HOW, "WHICH")
    ] = None
    cwd: Annotated[str | None, _option("--cwd", "Directory to run in (default: this one).", _WHAT, "DIR")] = None
    env: Annotated[
        list[str] | None, _option("--env", "A variable, stored with the job (repeatable).", _WHAT, "K=V")
    ] = None
    env_file: Annotated[
        str | None, _option("--env-file", "NAME=value lines, read at every run, not stored.", _WHAT, "FILE")
    ] = None
    pass_env: Annotated[
        list[str] | None, _option("--pass-env", "Pass a variable of the server on (repeatable).", _WHAT, "NAME")
    ] = None
    stdin: Annotated[str | None, _option("--stdin", "Standard input; - reads it now, from here.", _WHAT, "TEXT")] = None
    success_codes: Annotated[
        str | None, _option("--success-codes", "Exit codes that mean success: 0,3 (default: 0).", _WHAT, "CODES")
    ] = None
    url: Annotated[
        str | None, _option("--url", "Send an HTTP request instead of running a command.", _WHAT, "ADDRESS")
    ] = None
    method: Annotated[str | None, _option("--method", "With --url: GET (default), POST, ...", _WHAT, "METHOD")] = None
    header: Annotated[
        list[str] | None, _option("--header", "With --url: 'NAME: VALUE' (repeatable).", _WHAT, "HEADER")
    ] = None
    body: Annotated[str | None, _option("--body", "With --url: the request body.", _WHAT, "TEXT")] = None
    expect: Annotated[
        list[str] | None, _option("--expect", "With --url: status codes that mean success (2xx).", _WHAT, "CODE")
    ] = None
    redirects: Annotated[
        str | None, _option("--redirects", "With --url: follow (default) or refuse.", _WHAT, "POLICY")
    ] = None
    agent: Annotated[str | None, _option("--agent", "Ask this agent instead of running a command.", _WHAT, "AGENT")] = (
        None
    )
    prompt: Annotated[str | None, _option("--prompt", "With --agent: the prompt.", _WHAT, "TEXT")] = None


def takes_definition(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of Definition; it gets them as one value, `definition`."""
    own = inspect.signature(function, eval_str=True).parameters
    options = dict(_parameters())
    names = [name for name in options if name not in _OPTIONS]

    def command(**given: Any) -> None:
        how = {name: given.pop(name) for name in _OPTIONS}
        definition = Definition(options=how, **{name: given.pop(name) for name in names})
        function(definition=definition, **given)

    kept = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in own.values() if part.name != "definition"]
    parameters = [*kept[:2], *options.values(), *kept[2:]]  # context and name first, so that help reads well
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {part.name: part.annotation for part in parameters}
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command


def _parameters() -> Iterator[tuple[str, inspect.Parameter]]:
    """Those of Definition, with one for each option of jobs."""
    hints = get_type_hints(Definition, include_extras=True)
    for one in fields(Definition):
        found = _OPTIONS if one.name == "options" else {one.name: hints[one.name]}
        for name, hint in found.items():
            yield name, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)


def _flag(option: Field, flag: Flag) -> Any:
    """The annotation of an option of jobs."""
    text = option.help.replace("`", "") + (" Repeatable." if flag.many else "")
    kind = list[str] if flag.many else str if flag.metavar is not None else bool
    return Annotated[kind | None, _option(flag.name, text, _HOW, flag.metavar)]


_OPTIONS = {option.name: _flag(option, option.flag) for option in OPTIONS if option.flag is not None}


# -- when -------------------------------------------------------------------------------------------------------------


def trigger_data(
    wanted: Definition, now: datetime, default: str, old: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The trigger as plain data, or None if no option about it was given.

    `default` is the zone of a job that names none, `old` what is stored already.
    """
    given = [name for name in RHYTHMS if getattr(wanted, name) not in (None, False)]
    if len(given) > 1:
        raise WrongUse(f"--{given[0]} and --{given[1]} are two schedules: give one of them.")
    if old is None and not given:
        raise WrongUse("Give a schedule: --cron, --every, --interval, --at, --after, --ping or --manual.")
    place = _zone(wanted, old)
    zone = zone_named(place if place is not None else default)
    changes = _modifiers(wanted, now, zone, place)
    rhythm = _rhythm(given[0], wanted, now, zone) if given else {}
    if not rhythm and not changes and wanted.on is None and wanted.anchor is None:
        return None
    kept = dict(old or {})
    if rhythm and kept:
        kept = {key: value for key, value in kept.items() if key in _TIMED_KEYS and rhythm["type"] not in _UNTIMED}
    if rhythm.get("type") == "manual" and changes:
        raise WrongUse(f"--{next(iter(changes)).replace('_', '-')} is about times, and --manual has none.")
    merged = {**kept, **rhythm, **changes}
    if wanted.tz is not None and "active_hours" in kept and "active_hours" not in changes:
        merged["active_hours"] = {**kept["active_hours"], "timezone": place or default}  # a job has one zone
    if merged.get("tz") is None and _needs_zone(wanted, merged):
        merged["tz"] = place or default
    _add_companions(merged, wanted, now, zone)
    return {key: value for key, value in merged.items() if value is not None}


def _zone(wanted: Definition, old: Mapping[str, Any] | None) -> str | None:
    """The job's own zone, if it has one."""
    if wanted.tz == NONE:
        return None
    if wanted.tz is not None:
        return settled_zone(zone_name(wanted.tz), system_zone())
    kept = old or {}
    return kept.get("tz") or (kept.get("active_hours") or {}).get("timezone")


def _needs_zone(wanted: Definition, merged: Mapping[str, Any]) -> bool:
    """Whether the default zone is stored with the job: a time on its clock was given, or its zone taken away."""
    if merged["type"] in ("after", "manual", "webhook", "chat"):
        return False
    given = (wanted.at, wanted.start, wanted.until, wanted.anchor)
    if any(text is not None and text != NONE and is_on_the_wall(text) for text in given):
        return True
    return wanted.tz == NONE and (merged["type"] == "cron" or bool(merged.get("except")))


def _rhythm(name: str, wanted: Definition, now: datetime, zone: tzinfo) -> dict[str, Any]:
    text = str(getattr(wanted, name))
    if name == "cron":
        if text.lower().startswith("@every "):
            raise WrongUse(f"--cron {text!r} is not a cron expression: write --every {shlex.quote(text[7:].strip())}.")
        return {"type": "cron", "expression": text}
    if name == "after":
        return {"type": "after", "job": text}
    if name == "manual":
        return {"type": "manual"}
    if name == "at":
        return {"type": "once", "at": _moment("--at", text, now, zone)}
    return {"type": name, "interval": duration(f"--{name}", text)}


def _add_companions(merged: dict[str, Any], wanted: Definition, now: datetime, zone: tzinfo) -> None:
    """--on and --anchor mean something beside one kind of trigger only."""
    if wanted.on is not None:
        if merged["type"] != "after":
            raise WrongUse("--on goes with --after JOB.")
        merged["on"] = None if wanted.on == NONE else wanted.on
    if wanted.anchor is not None:
        if merged["type"] != "every":
            raise WrongUse("--anchor goes with --every DURATION.")
        merged["anchor"] = None if wanted.anchor == NONE else _moment("--anchor", wanted.anchor, now, zone)


def _modifiers(wanted: Definition, now: datetime, zone: tzinfo, place: str | None) -> dict[str, Any]:
    """Only the given options; None removes one."""
    read: dict[str, Callable[[str], Any]] = {
        "tz": lambda text: text,
        "start": lambda text: _moment("--start", text, now, zone),
        "until": lambda text: _moment("--until", text, now, zone),
        "max_runs": lambda text: _whole("--max-runs", text),
        "active_hours": lambda text: _hours(text, place),
        "jitter": lambda text: _number("--jitter", text.removesuffix("%")),
        "stagger": lambda text: duration("--stagger", text),
    }
    said = {name: getattr(wanted, name) for name in read if getattr(wanted, name) is not None}
    found = {name: None if text == NONE else read[name](text) for name, text in said.items()}
    if wanted.except_dates is not None:
        found["except"] = None if wanted.except_dates == [NONE] else wanted.except_dates
    return found


def _hours(text: str, place: str | None) -> dict[str, str]:
    start, dash, end = (part.strip() for part in text.partition("-"))
    if not dash:
        raise WrongUse(f"--active-hours {text!r} is not a span of hours: write 09:00-17:00.")
    hours = {"start": start, "end": end}
    return {**hours, "timezone": place} if place is not None else hours


# -- how and what -----------------------------------------------------------------------------------------------------


def job_options(wanted: Definition, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The given options; None resets one to its default. `old` are the stored ones."""
    found = {option.name: _read(option, wanted.options.get(option.name)) for option in OPTIONS}
    said = {name: value for name, value in found.items() if wanted.options.get(name) is not None}
    return said | _deliver(wanted, (old or {}).get("deliver") or {})


def _read(option: Field, typed: Any) -> Any:
    """What was typed as it is written elsewhere; None where it is to be the default."""
    if typed in (None, NONE, [NONE]) or option.flag is None:
        return None
    if option.flag.many:
        values = [_FORMS[option.flag.form](option.flag.name, text) for text in typed]
        return dict(values) if option.flag.form == "lane" else values
    return typed if option.flag.metavar is None else _FORMS[option.flag.form](option.flag.name, typed)


def _deliver(wanted: Definition, old: Mapping[str, Any]) -> dict[str, Any]:
    to = wanted.options.get("deliver")
    if to == NONE or (to is None and wanted.deliver_on is None):
        return {}
    said = {name: value for name, value in (("to", to), ("on", wanted.deliver_on)) if value is not None}
    if "to" not in {**old, **said}:
        raise WrongUse("--deliver-on goes with --deliver CONNECTOR.")
    return {"deliver": {**old, **said}}


def _catch_up(option: str, text: str) -> str | dict[str, str]:
    """`once`, `skip`, or how late a start may be."""
    if text in ("once", "skip"):
        return text
    if not text[:1].isdigit():
        raise WrongUse(f"{option} {text!r} is no policy: write once, skip, or how late a start may be, such as 2h.")
    return {"within": duration(option, text)}


def _retry(option: str, text: str) -> int | list[str]:
    """`2`, or the delays `30s,2m`."""
    if text.isdigit():
        return _whole(option, text)
    if not all(part.strip()[:1].isdigit() for part in text.split(",")):
        raise WrongUse(f"{option} {text!r} is neither a number nor delays: write how often, such as 2, or 30s,2m.")
    return _delays(option, text)


def _delays(option: str, text: str) -> list[str]:
    return [duration(option, part.strip()) for part in text.split(",")]


def _lane(option: str, text: str) -> tuple[str, int]:
    key, found, capacity = text.rpartition("=")
    if not found or not key:
        raise WrongUse(f"{option} {text!r} lacks a capacity: write {option} gpu=1.")
    return key, _whole(option, capacity)


# -- single values ----------------------------------------------------------------------------------------------------


def _moment(option: str, text: str, now: datetime, zone: tzinfo) -> str:
    return iso(to_ms(read_when(text, now=now, zone=zone, option=option)))


def duration(option: str, text: str) -> str:
    """The text, if it is a duration."""
    try:
        parse_interval(text)
    except IntervalParseError as error:
        raise WrongUse(f"{option} {text!r}: {error}.") from None
    return text


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise WrongUse(f"{option} {text!r} is not a whole number.")
    return int(text)


def _signed(option: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 1000):  # the interpreter reads so many
        raise WrongUse(f"{option} {text!r} is not a whole number.")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise WrongUse(f"{option} {text!r} is not a number.") from None


_FORMS: dict[str, Callable[[str, str], Any]] = {
    "text": lambda _option, text: text,
    "word": lambda _option, text: text.replace("-", "_"),
    "duration": duration,
    "delays": _delays,
    "count": _whole,
    "number": _signed,
    "catch_up": _catch_up,
    "retry": _retry,
    "lane": _lane,
}
"""How the text of an option of jobs is read, by the form that its field names."""
