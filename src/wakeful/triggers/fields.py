"""Every way to say when a job is due: the rhythms, and what may be said besides each. One entry per field.

The triggers read and refuse what is written; the long form of `to_data` and the short one of `written` are loops over
this table, as the surfaces are.

    {"type": "every", "interval": "6h"}      {"every": "6h"}
    {"type": "cron", "expression": "0 9 * * 1-5", "tz": "Europe/Berlin"}      {"cron": "0 9 * * 1-5", "tz": …}
    {"ping": true, "every": "24h", "grace": "1h"}
    {"interval": "5m"}      {"at": "2026-01-01T09:00:00Z"}      {"manual": true}
    {"after": "backup", "on": "failure"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from wakeful.errors import InvalidTrigger
from wakeful.fields import DURATION, LASTING, NUMBER, TIME, Field, Flag, Reader, Schema, list_of, map_of, one_of
from wakeful.triggers.base import Trigger
from wakeful.triggers.cron import Cron
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.every import Every
from wakeful.triggers.external import ENDS, After, Chat, Manual, Webhook
from wakeful.triggers.interval import Interval
from wakeful.triggers.modifiers import Modifiers
from wakeful.triggers.moments import read_moment
from wakeful.triggers.once import Once
from wakeful.triggers.ping import Ping
from wakeful.triggers.worded import Worded
from wakeful.triggers.zones import zone_name

MOST_RUNS = 1_000_000_000
MOMENT: Schema = {"type": "string", "format": "date-time", "maxLength": 100, "examples": ["2030-01-01T09:00:00Z"]}
ZONE: Schema = {"type": "string", "maxLength": 100, "examples": ["Europe/Berlin"]}
_DAY: Schema = {"type": "string", "format": "date", "examples": ["2026-12-25"]}
_HOUR: Schema = {"type": "string", "pattern": r"^([01][0-9]|2[0-4]):[0-5][0-9]$", "examples": ["09:00"]}
HOURS = map_of({"start": _HOUR, "end": _HOUR}, {"timezone": {"anyOf": [ZONE, {"type": "null"}]}})
_TRUE: Schema = {"const": True}
_NOW, _LATER = "2026-01-29T09:00:00Z", "2026-01-30T09:00:00Z"


def keyword(key: str) -> str:
    """What a field is called in Python, where `except` is a word of the language."""
    return "except_dates" if key == "except" else key


def _checked(check: Callable[[str, Any], object]) -> Reader:
    """Kept as it is written, if `check` has nothing against it."""

    def read(key: str, value: Any) -> Mapping[str, Any]:
        check(key, value)
        return {key: value}

    return read


def _made(make: Callable[[Any], object]) -> Reader:
    return _checked(lambda _, value: make(value))


_moment = _checked(lambda key, value: read_moment(value, key))
_modifier = _checked(lambda key, value: Modifiers(**{keyword(key): value}))
_on = _checked(lambda _, value: After("another", value))
_duration, _zone = _made(interval_ms), _made(zone_name)


def _is_true(key: str, value: Any) -> None:
    if value is not True:
        raise InvalidTrigger(f"{key} is written {key}: true, not {value!r:.40}.", key)


_true = _checked(_is_true)
# fmt: off
MODIFIERS = (
    Field("tz", _zone, ZONE, "The time zone of the schedule.", "Europe/Berlin", Flag("ZONE")),
    Field("anchor", _moment, MOMENT, "With `every`: count from this time (default: now).", _NOW, TIME),
    Field("start", _modifier, MOMENT, "No start before this time.", _NOW, TIME),
    Field("until", _modifier, MOMENT, "No start after this time.", _LATER, TIME),
    Field("max_runs", _modifier, {"type": "integer", "minimum": 1, "maximum": MOST_RUNS},
          "Stop after this many runs.", 10, NUMBER),
    Field("except", _modifier, list_of(_DAY, most=1000),
          "No start on these dates.", ["2026-12-25"], Flag("DATE", many=True)),
    Field("active_hours", _modifier, HOURS,
          "Start only in these hours of the day, such as 09:00-17:00.",
          {"start": "09:00", "end": "17:00"}, Flag("HOURS", "hours")),
    Field("jitter", _modifier, {"type": "number", "minimum": 0, "maximum": 10},
          "Start up to this much later: 0 to 10 percent of the interval.", 5, Flag("PERCENT", "percent")),
    Field("stagger", _modifier, {"anyOf": [DURATION, {"const": 0}]},
          "Spread jobs of one schedule over this time.", "10m", LASTING),
    Field("on", _on, one_of(*ENDS),
          "With `after`: which end of the other job counts, `success` (default), `failure` or `any`.",
          "failure", Flag("END")),
    Field("grace", _duration, DURATION, "With `ping`: how late a ping may be (default: 1h).", "30m", LASTING),
)
# fmt: on
"""What may be said besides a rhythm."""
BESIDE: Mapping[str, Field] = {field.name: field for field in MODIFIERS}
TIMED = tuple(name for name in BESIDE if name not in ("anchor", "on", "grace"))
"""What every rhythm takes that has times of its own."""


class Rhythm(NamedTuple):
    """One way to be due."""

    field: Field
    make: type[Trigger]
    value: str | None = None  # the name of its value in the long form; None: it has none, and is written `true`
    beside: tuple[str, ...] = ()  # the modifiers it takes

    @property
    def word(self) -> str:
        return self.field.name

    @property
    def type(self) -> str:
        return self.make.type


# fmt: off
RHYTHMS = (
    Rhythm(Field("when", _made(Worded), {"type": "string", "minLength": 1, "maxLength": 1000},
                 "In words, such as weekdays at 9am.", "weekdays at 09:00", Flag("WORDS", "words")),
           Worded, "words", TIMED),
    Rhythm(Field("cron", _made(Cron), {"type": "string", "maxLength": 1000, "examples": ["0 9 * * 1-5"]},
                 "A cron expression, such as 0 9 * * 1-5.", "0 9 * * 1-5", Flag("EXPR", "cron")),
           Cron, "expression", TIMED),
    Rhythm(Field("every", _made(Every), DURATION, "At a fixed rate: every 30s, 5m, 6h, 7d.", "6h", LASTING),
           Every, "interval", ("anchor", *TIMED)),
    Rhythm(Field("interval", _made(Interval), DURATION, "This long after each run ends.", "6h", LASTING),
           Interval, "interval", TIMED),
    Rhythm(Field("at", _made(Once), MOMENT, "Once, at this time: 2026-12-24T18:00.", _LATER, TIME),
           Once, "at", TIMED),
    Rhythm(Field("after", _made(After), {"type": "string", "minLength": 1, "maxLength": 200},
                 "When another job ends.", "backup", Flag("JOB")),
           After, "job", ("on",)),
    Rhythm(Field("manual", _true, _TRUE, "Only when it is started by hand.", example=True, flag=Flag()), Manual),
    Rhythm(Field("webhook", _true, _TRUE, "When its webhook is called.", example=True), Webhook),
    Rhythm(Field("chat", _true, _TRUE, "When a chat message arrives.", example=True), Chat),
)
# fmt: on
"""What says when; exactly one of them. The order is that of the docs and the help."""
PING = Field(
    "ping",
    _true,
    _TRUE,
    "A monitor: a job that runs elsewhere and pings. Nothing runs here, and silence past its schedule is an alert.",
    example=True,
    flag=Flag(),
)
"""Besides a rhythm that repeats: pings are expected then."""
OF_PINGS = (PING, BESIDE["grace"])
BY_WORD: Mapping[str, Rhythm] = {rhythm.word: rhythm for rhythm in RHYTHMS}
BY_TYPE: Mapping[str, Rhythm] = {rhythm.type: rhythm for rhythm in RHYTHMS} | {
    "ping": Rhythm(PING, Ping, None, ("schedule", "grace"))
}
FIELDS = (*(rhythm.field for rhythm in RHYTHMS), PING, *MODIFIERS)
"""All of them, each by its short word."""


_ALSO = {"at": "once"}


def trigger_from_data(data: dict[str, Any]) -> Trigger:
    """The trigger of `{"type": "every", "interval": "5m"}` and the like; unknown keys are refused by name."""
    kind = _kind(data)
    rhythm = BY_TYPE[_ALSO.get(kind, kind)]
    value, beside = rhythm.value, rhythm.beside
    if value is not None and value not in data:
        raise InvalidTrigger(f'A trigger of type "{kind}" needs "{value}".', value)
    options: dict[str, Any] = {}
    for name, said in data.items():
        if name == value or name in beside:
            options[keyword(name)] = said
        elif name != "type":
            refuse_beside(rhythm, str(name), kind)
    if isinstance(options.get("schedule"), dict):
        options["schedule"] = trigger_from_data(options["schedule"])
    made = rhythm.make(**options)
    return made.plain() if isinstance(made, Worded) else made


def refuse_beside(rhythm: Rhythm, name: str, kind: str = "") -> NoReturn:
    """InvalidTrigger: the rhythm does not take this."""
    known = [*([rhythm.value] if rhythm.value is not None else []), *rhythm.beside]
    raise InvalidTrigger(f'A trigger of type "{kind or rhythm.type}" has no "{name:.40}"{_nearest(name, known)}', name)


def _kind(data: object) -> str:
    kind = data.get("type") if isinstance(data, dict) else None
    if isinstance(kind, str) and (kind in BY_TYPE or kind in _ALSO):
        return kind
    raise InvalidTrigger(f'A trigger needs a "type", one of {", ".join(BY_TYPE)}; not {kind!r:.40}.', "type")


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only when something is wrong

    near = get_close_matches(name, known, 1)
    return f': did you mean "{near[0]}"?' if near else f": it takes {', '.join(known) or 'nothing else'}."


def trigger_as_written(data: object) -> Trigger:
    """The trigger of either form; InvalidTrigger says what is missing or too much."""
    if not isinstance(data, Mapping):
        raise InvalidTrigger(f'A trigger is a map such as {{"every": "6h"}}, not {data!r:.40}.')
    given: dict[str, Any] = {str(key): value for key, value in data.items() if value is not None}
    if "type" in given:
        if given["type"] == "ping" and isinstance(given.get("schedule"), Mapping):
            given["schedule"] = trigger_as_written(given["schedule"])
        return trigger_from_data(given)
    if "ping" in given:
        return _ping(given)
    words = [word for word in BY_WORD if word in given]
    if len(words) != 1:
        several = f"{words[0]} and {words[1]} are two triggers: give one" if words else "A trigger says when: give one"
        raise InvalidTrigger(f"{several} of {', '.join((*BY_WORD, 'ping'))}.")
    rhythm = BY_WORD[words[0]]
    value = given.pop(rhythm.word)
    if rhythm.value is not None:
        return trigger_from_data({"type": rhythm.type, rhythm.value: value, **given})
    rhythm.field.read(rhythm.word, value)
    return trigger_from_data({"type": rhythm.type, **given})


def _ping(given: dict[str, Any]) -> Trigger:
    """A schedule that says when pings are expected."""
    PING.read("ping", given["ping"])
    grace = {"grace": given["grace"]} if "grace" in given else {}
    rest = {key: value for key, value in given.items() if key not in ("ping", "grace")}
    return trigger_from_data({"type": "ping", **({"schedule": trigger_as_written(rest)} if rest else {}), **grace})
