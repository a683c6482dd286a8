"""One job as a file writes it, turned into what can be stored, or into everything that is wrong with it.

Keys are those of `wakeful add` in snake_case. Each is read by itself, so that one mistake does not hide another.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from wakeful.domains import domains
from wakeful.errors import InvalidTrigger, SchedulerError
from wakeful.kernel.actions.drafts import NewJob, check_flag, check_name, check_note
from wakeful.kernel.kinds import WrittenForm
from wakeful.kernel.rules import option_fields
from wakeful.kernel.rules.options import read_options
from wakeful.references import may_refer, references_in, unescaped
from wakeful.triggers import Cron, Trigger, settled_zone, trigger_from_data, zone_name

RHYTHMS = {
    "cron": ("cron", "expression"),
    "every": ("every", "interval"),
    "interval": ("interval", "interval"),
    "at": ("once", "at"),
    "after": ("after", "job"),
    "manual": ("manual", None),
}
EXAMPLES = {"cron": "0 0 * * *", "every": "1d", "interval": "1d", "once": "2100-01-01T00:00:00Z", "after": "another"}
"""Stand in for a schedule that is wrong, so that what modifies it is read."""
MODIFIERS = ("anchor", "on", "start", "until", "max_runs", "except", "active_hours", "jitter", "stagger")
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


class Problem(NamedTuple):
    """Something wrong with a job, and with which part of it."""

    where: Place
    message: str


class Entry(NamedTuple):
    """A job as its file wants it."""

    new: NewJob
    enabled: bool
    notes: str | None
    references: tuple[tuple[Place, str], ...]  # where each is, and what stands between its braces


class FleetFile(NamedTuple):
    """All jobs of a fleet as its files have them."""

    path: Path
    name: str
    entries: tuple[Entry, ...]
    defaults: Mapping[str, Any]  # default options of jobs
    hash: str
    references: tuple[str, ...]
    include: tuple[str, ...]
    env_files: tuple[Path, ...]  # none or one
    zone: str


def forms() -> dict[str, tuple[str, WrittenForm]]:
    """The kinds a file can write, by their key: the name of each and its form."""
    written = [(kind.name, kind.written()) for domain in domains() for kind in domain.kinds if kind.written is not None]
    return {form.key: (name, form) for name, form in written}


class Setting(NamedTuple):
    """What a job's text is read with."""

    folder: Path  # where its file is
    zone: str  # of jobs that name none
    forms: Mapping[str, tuple[str, WrittenForm]]


def read_entry(name: str, data: Any, setting: Setting) -> tuple[Entry | None, list[Problem]]:
    """The job, or None and everything that is wrong with it."""
    reader = _Reader(name, data, setting)
    entry = reader.entry()
    return (None, reader.problems) if reader.problems else (entry, [])


def references_of(name: str, data: Any, setting: Setting) -> tuple[tuple[Place, str], ...]:
    """What a job refers to, also where something else is wrong with it."""
    return tuple(_Reader(name, data, setting).references())


class _Reader:
    def __init__(self, name: str, data: Any, setting: Setting) -> None:
        self.problems: list[Problem] = []
        self._name = name
        self._folder, self._zone, self._forms = setting
        self._meant: set[str] = set()  # keys that were probably meant by unknown ones, which are reported already
        if not isinstance(data, dict):
            self._add((), "must be a section with keys of its own, such as every and command.")
            data = {}
        self._data: dict[str, Any] = {key: value for key, value in data.items() if value is not None}
        self._kind, self._form = self._choose()

    def entry(self) -> Entry | None:
        if self.problems and not self._data:
            return None
        self._try((), lambda: check_name("name", self._name))
        self._refuse_unknown()
        references = tuple(self.references())
        self._unescape()
        self._zone = self._try(("timezone",), self._own_zone) or self._zone
        trigger = self._trigger()
        options = self._options()
        payload = self._payload()
        enabled = self._try(("enabled",), lambda: check_flag("enabled", self._data.get("enabled", True)))
        owner, notes = self._owner(), self._notes()
        if self.problems or trigger is None:
            return None
        new = NewJob(self._name, trigger, kind=self._kind, payload=payload, owner=owner, **options)
        return Entry(new, bool(enabled), notes, references)

    # -- which keys ---------------------------------------------------------------------------------------------------

    def _choose(self) -> tuple[str, WrittenForm | None]:
        given = [key for key in self._forms if key in self._data]
        if len(given) > 1:
            self._add((given[1],), f"is a second thing to do beside {given[0]}: give one of them.")
        return self._forms[given[0]] if given else ("", None)

    def _known(self) -> list[str]:
        own = (
            list(self._form.fields)
            if self._form is not None
            else [key for _, f in self._forms.values() for key in f.fields]
        )
        return [*KEYS, *own]

    def _refuse_unknown(self) -> None:
        known = self._known()
        for key in self._data:
            if key in known or key in self._forms:  # a second thing to do was reported as such
                continue
            if key in LATER:
                self._meant.add(key)
                self._add((key,), "is not supported by this version yet: remove it, or use a later one.")
                continue
            near = [MEANT[key]] if key in MEANT else difflib.get_close_matches(key, known, n=1)
            self._meant.update(near)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(sorted(known))}."
            self.problems.append(Problem((key,), f"There is no key {key!r} in jobs.{self._name}. {hint}"))

    def references(self) -> Iterator[tuple[Place, str]]:
        if not may_refer(self._data):
            return
        allowed = self._form.with_references if self._form is not None else frozenset()
        for where, text in _texts(self._data, ()):
            for reference in references_in(text):
                if where[0] in allowed:
                    yield where, reference
                else:
                    only = " or ".join(sorted(allowed)) or "the server's own sections"
                    self._add(
                        where,
                        f"has ${{{reference}}}, which a job may have in {only} alone, where it is not stored: "
                        f"write $${{{reference}}} for the signs themselves.",
                    )

    def _unescape(self) -> None:
        if not may_refer(self._data):
            return
        allowed = self._form.with_references if self._form is not None else frozenset()
        self._data = {key: value if key in allowed else _unescaped(value) for key, value in self._data.items()}

    # -- when ---------------------------------------------------------------------------------------------------------

    def _own_zone(self) -> str:
        zone = self._data.get("timezone")
        return self._zone if zone is None else settled_zone(zone_name(zone), self._zone)

    def _trigger(self) -> Trigger | None:
        given = [key for key in RHYTHMS if key in self._data]
        if not given:
            if not self._meant & set(RHYTHMS):
                *some, last = RHYTHMS
                self._add((), f"does not say when: give {', '.join(some)} or {last}.")
            return None
        if len(given) > 1:
            self._add((given[1],), f"is a second schedule beside {given[0]}: give one of them.")
            return None
        word = given[0]
        kind, field = RHYTHMS[word]
        if field is None and self._data[word] is not True:
            self._add((word,), f"is written {word}: true.")
            return None
        before = len(self.problems)
        rhythm = {"type": kind, **({field: self._written(word)} if field is not None else {})}
        is_readable = len(self.problems) == before
        beside = {key: self._written(key) for key in MODIFIERS if key in self._data}
        if not is_readable or (beside and self._try((word,), lambda: trigger_from_data(dict(rhythm))) is None):
            rhythm |= {field: EXAMPLES[kind]} if field is not None else {}
        readable = {key: value for key, value in beside.items() if value is not None}
        for key, value in readable.items():  # each alone, so that all mistakes are reported
            self._try((key,), lambda key=key, value=value: trigger_from_data({**rhythm, key: value}))  # type: ignore[misc]
        if len(self.problems) > before:
            return None
        zone = (
            {"tz": self._zone}
            if kind == "cron" or (kind != "after" and {"timezone", "except"} & set(self._data))
            else {}
        )
        if field is None:
            zone = {}
        where = (next(iter(beside), word),)
        made = self._try(where, lambda: trigger_from_data({**rhythm, **beside, **zone}))
        if isinstance(made, Cron):
            self._try((word,), lambda: _refuse_never(made))
        return None if made is None else self._try(where, lambda: self._of_kind(made))

    def _of_kind(self, schedule: Trigger) -> Trigger:
        return schedule if self._form is None else self._form.trigger(schedule, self._data)

    def _written(self, key: str) -> Any:
        """A value as triggers take it: times and hours of the job's own zone."""
        value = self._data[key]
        if key in MOMENTS and isinstance(value, str):
            return self._try((key,), lambda: _moment(key, value, self._zone))
        if key == "jitter" and isinstance(value, str):
            return _number(value.removesuffix("%"))
        if key == "active_hours":
            return self._hours(value)
        return value

    def _hours(self, value: Any) -> Any:
        if isinstance(value, str):
            start, _, end = (part.strip() for part in value.partition("-"))
            value = {"start": start, "end": end}
        return {"timezone": self._zone, **value} if isinstance(value, dict) else value

    # -- how and what -------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        found = {key: self._data[key] for key in OPTIONS if key in self._data}
        if isinstance(late := found.get("catch_up"), str) and late[:1].isdigit():
            found["catch_up"] = {"within": late}
        try:
            read_options(found)
        except (SchedulerError, TypeError, ValueError):  # each alone, so that all mistakes are reported
            for key, value in found.items():
                self._try((key,), lambda key=key, value=value: read_options({key: value}))  # type: ignore[misc]
        return found

    def _payload(self) -> Mapping[str, Any] | None:
        form = self._form
        if form is None:
            if not self._meant & {*self._forms, *LATER}:
                self._add((), f"does not say what to do: give {_either(list(self._forms))}.")
            return None
        before, payload = len(self.problems), dict[str, Any]()
        for key, read in form.fields.items():
            if key in self._data:
                payload.update(self._try((key,), lambda key=key, read=read: read(self._data[key], self._folder)) or {})  # type: ignore[misc]
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
        self.problems.append(Problem(where, f"{self._shown(where)} {message}"))

    def _shown(self, where: Place) -> str:
        return ".".join(map(str, ("jobs", self._name, *where)))

    def _try(self, where: Place, read: Callable[[], T]) -> T | None:
        """What `read` gives; what it complains about is a problem there."""
        try:
            return read()
        except SchedulerError as error:
            self.problems.append(Problem(where, _placed(self._shown(where), str(error))))
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


def _texts(value: Any, where: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*where, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*where, index))


def _unescaped(value: Any) -> Any:
    if isinstance(value, str):
        return unescaped(value)
    if isinstance(value, dict):
        return {key: _unescaped(item) for key, item in value.items()}
    return [_unescaped(item) for item in value] if isinstance(value, list) else value


def _either(words: list[str]) -> str:
    return " or ".join([*([", ".join(words[:-1])] if words[:-1] else []), words[-1]])
