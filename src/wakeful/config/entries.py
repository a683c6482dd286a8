"""One job as a file writes it, turned into what can be stored, or into everything that is wrong with it.

Keys are those of `wakeful add` in snake_case. Each is read by itself, so that one mistake does not hide another.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from wakeful.domains import fields_by_kind, finish_of
from wakeful.errors import InvalidTrigger, SchedulerError
from wakeful.fields import Field
from wakeful.kernel.actions.drafts import NewJob, check_flag, check_name, check_note
from wakeful.kernel.rules import option_fields
from wakeful.references import map_texts, may_refer, references_below, unescaped
from wakeful.triggers import Cron, Ping, Trigger, settled_zone, zone_name
from wakeful.triggers.active_hours import hours_of
from wakeful.triggers.fields import BESIDE, BY_WORD, OF_PINGS, Rhythm, refuse_beside, trigger_as_written
from wakeful.triggers.worded import Worded

RHYTHMS = tuple(word for word, rhythm in BY_WORD.items() if rhythm.field.flag is not None)
MODIFIERS = tuple(key for key in BESIDE if key not in ("tz", "grace"))  # here `timezone`, and besides `ping` alone
MOMENTS = ("at", "anchor", "start", "until")
OPTIONS = tuple(field.name for field in option_fields.OPTIONS)
COMMON = ("timezone", "enabled", "owner", "notes")
KEYS = (*RHYTHMS, *MODIFIERS, *COMMON, *OPTIONS)
"""What every job takes, of whatever kind."""
LATER = ("agent", "prompt", "webhook")
MEANT = {
    "tz": "timezone", "note": "notes", "lane": "lanes", "label": "labels", "argv": "command", "run": "command",
    "header": "headers", "follow_redirects": "redirects",
}  # fmt: skip
"""What people write who know the command line, or other tools."""

Place = tuple[str | int, ...]
T = TypeVar("T")


class EntryProblem(NamedTuple):
    """Something wrong with a job, and with which part of it."""

    where: Place
    message: str


class JobEntry(NamedTuple):
    """A job as its file wants it."""

    new: NewJob
    enabled: bool
    notes: str | None
    references: tuple[tuple[Place, str], ...]  # where each is, and what stands between its braces


class FleetFile(NamedTuple):
    """All jobs of a fleet as its files have them."""

    path: Path
    name: str
    entries: tuple[JobEntry, ...]
    defaults: Mapping[str, Any]  # default options of jobs
    hash: str
    references: tuple[str, ...]
    include: tuple[str, ...]
    env_files: tuple[Path, ...]  # none or one
    zone: str


class Form(NamedTuple):
    """How a job of a kind is written."""

    kind: str
    fields: tuple[Field, ...]
    finish: Callable[[dict[str, Any], Path], Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def referring(self) -> frozenset[str]:
        """The keys whose texts may hold `${NAME}`."""
        return frozenset(field.name for field in self.fields if field.refers)


def forms() -> dict[str, Form]:
    """How each kind is written that a file can write, by its first key."""
    found = [Form(kind, fields, finish_of(kind)) for kind, fields in fields_by_kind().items()]
    return {form.fields[0].name: form for form in found}


class Setting(NamedTuple):
    """What a job's text is read with."""

    folder: Path  # where its file is
    zone: str  # of jobs that name none
    forms: Mapping[str, Form]
    rhythms: tuple[str, ...] = RHYTHMS


def read_entry(name: str, data: Any, setting: Setting) -> tuple[JobEntry | None, list[EntryProblem]]:
    """The job, or None and everything that is wrong with it."""
    reader = _EntryReader(name, data, setting)
    entry = reader.entry()
    return (None, reader.problems) if reader.problems else (entry, [])


def references_of(name: str, data: Any, setting: Setting) -> tuple[tuple[Place, str], ...]:
    """What a job refers to, also where something else is wrong with it."""
    return tuple(_EntryReader(name, data, setting).references())


class _EntryReader:
    def __init__(self, name: str, data: Any, setting: Setting) -> None:
        self.problems: list[EntryProblem] = []
        self._name = name
        self._folder, self._zone, self._forms, self._rhythms = setting
        self._meant: set[str] = set()  # keys that were probably meant by unknown ones, which are reported already
        if not isinstance(data, dict):
            self._add((), "must be a section with keys of its own, such as every and command.")
            data = {}
        self._data: dict[str, Any] = {key: value for key, value in data.items() if value is not None}
        self._form = self._choose()

    def entry(self) -> JobEntry | None:
        if self.problems and not self._data:
            return None
        self._try((), lambda: check_name("name", self._name))
        self._refuse_unknown()
        references = tuple(self.references())
        self._unescape()
        self._zone = self._try(("timezone",), self._own_zone) or self._zone
        payload = self._payload()
        trigger = self._trigger()
        options = self._options()
        enabled = self._try(("enabled",), lambda: check_flag("enabled", self._data.get("enabled", True)))
        owner, notes = self._owner(), self._notes()
        if self.problems or trigger is None or self._form is None:
            return None
        new = NewJob(self._name, trigger, kind=self._form.kind, payload=payload, owner=owner, **options)
        return JobEntry(new, bool(enabled), notes, references)

    # -- which keys ---------------------------------------------------------------------------------------------------

    def _choose(self) -> Form | None:
        given = [key for key in self._forms if key in self._data]
        for key in given[1:]:
            self._add((key,), f"is a second thing to do besides {given[0]}: give one of them.")
        return self._forms[given[0]] if given else None

    def _known(self, forms: Iterable[Form]) -> list[str]:
        return list(dict.fromkeys([*KEYS, *self._rhythms, *(key for form in forms for key in form.names)]))

    def _refuse_unknown(self) -> None:
        every = self._known(self._forms.values())
        known = every if self._form is None else self._known([self._form])
        for key in self._data:
            if key in known or key in self._forms:  # a second thing to do was reported as such
                continue
            if key in LATER:
                self._meant.add(key)
                self._add((key,), "is not supported by this version yet: remove it, or use a later one.")
                continue
            near = [MEANT[key]] if key in MEANT else difflib.get_close_matches(key, every, n=1)
            self._meant.update(near)
            others = " or ".join(mark for mark, form in self._forms.items() if key in form.names)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(known))}."
            hint = f"It is for jobs with {others}." if others else hint
            self.problems.append(EntryProblem((key,), f"There is no key {key!r} in jobs.{self._name}. {hint}"))

    def references(self) -> Iterator[tuple[Place, str]]:
        if not may_refer(self._data):
            return
        allowed = self._form.referring if self._form is not None else frozenset()
        for where, reference in references_below(self._data):
            if where[0] in allowed:
                yield where, reference
            else:
                only = " or ".join(sorted(allowed)) or "the server's own sections"
                self._add(
                    where,
                    f"has ${{{reference}}}, which a job may have in {only} alone, where it is not stored: "
                    f"write $${{{reference}}} where the text itself is meant.",
                )

    def _unescape(self) -> None:
        if not may_refer(self._data):
            return
        allowed = self._form.referring if self._form is not None else frozenset()
        self._data = {
            key: value if key in allowed else map_texts(value, unescaped) for key, value in self._data.items()
        }

    # -- when ---------------------------------------------------------------------------------------------------------

    def _own_zone(self) -> str:
        zone = self._data.get("timezone")
        return self._zone if zone is None else settled_zone(zone_name(zone), self._zone)

    def _trigger(self) -> Trigger | None:
        given = [key for key in self._rhythms if key in self._data]
        if not given and not self._meant & set(self._rhythms):
            self._add((), f"does not say when: give {_either(list(self._rhythms))}.")
        for key in given[1:]:
            self._add((key,), f"is a second schedule besides {given[0]}: give one of them.")
        before, beside = len(self.problems), [key for key in MODIFIERS if key in self._data]
        fields = [*(BY_WORD[word].field for word in given[:1]), *(BESIDE[key] for key in beside)]
        # Each alone, so that all mistakes are reported.
        written = {key: value for field in fields for key, value in self._written(field).items()}
        if not given:
            return None
        rhythm = BY_WORD[given[0]]
        for key in beside:
            if key not in rhythm.beside and not self._is_wrong(key):
                self._try((key,), lambda key=key: refuse_beside(rhythm, key))  # type: ignore[misc]
        if len(self.problems) > before or len(given) > 1:
            return None
        return self._made(rhythm, written)

    def _made(self, rhythm: Rhythm, written: dict[str, Any]) -> Trigger | None:
        where = (rhythm.word,)
        if "tz" in rhythm.beside and (rhythm.type == "cron" or {"timezone", "except"} & set(self._data)):
            written["tz"] = self._zone
        made = self._try(where, lambda: self._in_zone(trigger_as_written({**written, **self._expected()}), written))
        if isinstance(made, Cron):
            self._try(where, lambda: _refuse_never(made))
        return made

    def _in_zone(self, made: Trigger, written: dict[str, Any]) -> Trigger:
        """A schedule in words in the zone of the file. What counts from now would be another one at every reading."""
        if "when" not in written:
            return made
        inner = made.schedule if isinstance(made, Ping) else made
        if isinstance(inner, Worded) and isinstance(inner.plain(zone=self._zone), Worded):
            raise InvalidTrigger(f'"{written["when"]:.60}" counts from now: give a date and a time in a file.', "when")
        if "tz" not in written and (isinstance(inner, Worded) or (isinstance(inner, Cron) and inner.tz is None)):
            return trigger_as_written({**written, "tz": self._zone, **self._expected()})
        return made

    def _expected(self) -> dict[str, Any]:
        """What makes a monitor of the schedule. What is wrong with it is reported by its own reader."""
        if self._form is None or self._form.fields != OF_PINGS:
            return {}
        found = {key: self._data[key] for key in self._form.names if key in self._data and not self._is_wrong(key)}
        return {**found, "ping": True}

    def _is_wrong(self, key: str) -> bool:
        return any(problem.where[:1] == (key,) for problem in self.problems)

    def _written(self, field: Field) -> Mapping[str, Any]:
        """A field as triggers take it: times and hours of the job's own zone."""
        key, value = field.name, self._data[field.name]
        if key in MOMENTS and isinstance(value, str):
            value = self._try((key,), lambda: _moment(key, self._data[key], self._zone))
        elif key == "jitter" and isinstance(value, str):
            value = _number(value.removesuffix("%"))
        elif key == "active_hours":
            value = self._hours(value)
        return {} if value is None else self._read(field, value)

    def _read(self, field: Field, value: Any) -> Mapping[str, Any]:
        """What the field makes of a value; each part that it complains about is a problem of its own."""
        left, place, parts = value, self._shown((field.name,)), set[str]()
        while True:
            try:
                found = field.read(field.name, left)
            except SchedulerError as error:
                part = _part(field.name, str(error), left)
                if part in parts or (part is None and parts):
                    return {}
                where = (field.name,) if part is None else (field.name, part)
                self.problems.append(EntryProblem(where, _placed(place, str(error))))
                if part is None:
                    return {}
                parts.add(part)
                right = field.example if isinstance(field.example, Mapping) else {}
                left = {key: right.get(key) if key == part else one for key, one in left.items()}
                left = {key: one for key, one in left.items() if one is not None}
            except (TypeError, ValueError):
                self._add((field.name,), "cannot be read.")
                return {}
            else:
                return {} if parts else found

    def _hours(self, value: Any) -> Any:
        value = hours_of(value)
        return {"timezone": self._zone, **value} if isinstance(value, dict) else value

    # -- how and what -------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        given = [field for field in option_fields.OPTIONS if field.name in self._data]
        for field in given:
            self._read(field, self._data[field.name])
        return {field.name: self._data[field.name] for field in given}

    def _payload(self) -> Mapping[str, Any] | None:
        form = self._form
        if form is None:
            if not self._meant & {*self._forms, *LATER}:
                self._add((), f"does not say what to do: give {_either(list(self._forms))}.")
            return None
        before, payload = len(self.problems), dict[str, Any]()
        for field in form.fields:
            if field.name in self._data:
                payload.update(self._read(field, self._data[field.name]))
        if form.fields == OF_PINGS:
            return {}
        return form.finish(payload, self._folder) if len(self.problems) == before else None

    def _owner(self) -> str | None:
        owner = self._data.get("owner")
        return None if owner is None else self._try(("owner",), lambda: check_name("owner", owner))

    def _notes(self) -> str | None:
        notes = self._data.get("notes")
        if notes is not None and not isinstance(notes, str):
            self._add(("notes",), "must be a text.")
            return None
        return self._try(("notes",), lambda: check_note(notes))

    # -- problems -----------------------------------------------------------------------------------------------------

    def _add(self, where: Place, message: str) -> None:
        self.problems.append(EntryProblem(where, f"{self._shown(where)} {message}"))

    def _shown(self, where: Place) -> str:
        return ".".join(map(str, ("jobs", self._name, *where)))

    def _try(self, where: Place, read: Callable[[], T]) -> T | None:
        """What `read` gives; what it complains about is a problem there, or at another key that it names."""
        try:
            return read()
        except SchedulerError as error:
            named = getattr(error, "field", None)
            place = (named,) if named in self._data else where
            self.problems.append(EntryProblem(place, _placed(self._shown(place), str(error))))
        except (TypeError, ValueError):
            self._add(where, "cannot be read.")
        return None


def _placed(place: str, message: str) -> str:
    """A message with the place it is about, named once: most messages begin with the last word of it."""
    key = place.rpartition(".")[2]
    said = message if message.endswith("?") else f"{message.rstrip('.')}."
    for name in (key, "except_dates") if key == "except" else (key,):
        if said.startswith((f"{name} ", f"{name}: ", f"{name}.")):
            return f"{place}{said[len(name) :]}"
    return f"{place}: {said}"


def _part(key: str, message: str, value: Any) -> str | None:
    """The part of a map that a message is about, where it names one."""
    for part in value if isinstance(value, Mapping) else ():
        if message.startswith((f"{key}.{part} ", f"{key}.{part}:", f"{key} {part} ")):
            return str(part)
    return None


def _refuse_never(trigger: Cron) -> None:
    """The 31st of February does not come, whenever the file is applied."""
    if Cron(trigger.expression, tz="UTC").next_slot(0) is None:
        raise InvalidTrigger(f"{trigger.expression!r} never comes: there is no such date", "cron")


def _moment(key: str, text: str, zone: str) -> str:
    """A time with an offset as it is; another one is what the clock on the wall of the job's zone shows."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidTrigger(
            f"{text!r:.60} is not a time: write 2026-12-24T18:00, with or without an offset.", key
        ) from None
    if moment.tzinfo is not None:
        return text
    there = ZoneInfo(zone)
    at = moment.replace(tzinfo=there).astimezone(UTC)
    if at.astimezone(there).replace(tzinfo=None, fold=0) != moment.replace(fold=0):
        raise InvalidTrigger(f"{text!r:.60} does not exist in {zone}, the clock moves forward then.", key)
    return at.isoformat()


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _either(words: list[str]) -> str:
    return " or ".join([*([", ".join(words[:-1])] if words[:-1] else []), words[-1]])
