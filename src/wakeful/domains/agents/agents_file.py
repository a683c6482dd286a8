"""Agents of a configuration file, or of a program, as jobs: each with its place in the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from wakeful.config.complaints import complaint
from wakeful.config.entries import RHYTHMS, EntryProblem, Form, JobEntry, Place, Setting, read_entry
from wakeful.config.jobs_file import FileTerms, connector_in, missing, no_connector
from wakeful.config.reading import Fault, Raw
from wakeful.config.salvage import STAND_IN, holds_any, not_caused
from wakeful.domains.agents.budgets.affording import never_affordable
from wakeful.domains.agents.compiling import AgentJobSpec, jobs_of
from wakeful.domains.agents.configuration import AgentsSection
from wakeful.domains.agents.defaults import DEFAULTS, with_defaults
from wakeful.domains.agents.inbound.sections import OUTSIDE
from wakeful.domains.agents.naming import AGENT
from wakeful.errors import InvalidJob, SchedulerError
from wakeful.fields import Field
from wakeful.references import map_texts, may_refer, references_below, unescaped

_WHOLE = Field(AGENT, lambda _, payload: payload, {}, "The payload of an agent's job.", {}, refers=True)
FORM = Form(AGENT, (_WHOLE,), lambda payload, _: payload)
"""A job of an agent as `read_entry` takes it: its payload as it is, with references that are looked at by their own
reader."""


LOOKED_UP = ("runner", "work")


class AgentEntries(NamedTuple):
    """The jobs of one agent, what is wrong with it, and what it refers to."""

    entries: list[JobEntry]
    problems: list[EntryProblem]
    references: list[tuple[Place, str]]


def read_agent(name: str, settings: Mapping[str, Any], folder: Path, zone: str) -> AgentEntries:
    """An agent whose settings a model has checked; places are those below `agents`."""
    shown = f"agents.{name}"
    found = AgentEntries([], [], [])
    for where, reference in references_below(settings, (name,)) if may_refer(settings) else ():
        if where[1:2] == ("runner",) or where[1:] == ("work", "token") or where[3:5] == ("webhook", "secret"):
            found.references.append((where, reference))
        else:
            named = ".".join(map(str, ("agents", *where)))
            message = (
                f"{named} has ${{{reference}}}, which an agent may have in its runner, its work.token and in secrets "
                "of webhooks alone."
            )
            found.problems.append(EntryProblem(where, message))
    try:
        parts, wrong = jobs_of(name, _unescaped(settings), folder, zone)
    except SchedulerError as error:
        found.problems.append(EntryProblem((name,), f"{shown}: {error}"))
        return found
    for place, message in wrong:
        found.problems.append(EntryProblem((name, *place), f"{'.'.join(map(str, (shown, *place)))} {message}"))
    setting = Setting(folder, zone, {AGENT: FORM}, (*RHYTHMS, *sorted(OUTSIDE)))
    for part in parts:
        _read_part(name, part, setting, found)
    return found


def _unescaped(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with `${` in place of `$${`, but for parts whose references are looked up when they are used."""
    if not may_refer(settings):
        return dict(settings)
    found = {key: value if key in LOOKED_UP else map_texts(value, unescaped) for key, value in settings.items()}
    for key, schedule in (settings.get("schedules") or {}).items():
        if isinstance(schedule.get("webhook"), Mapping) and "secret" in schedule["webhook"]:
            found["schedules"][key]["webhook"]["secret"] = schedule["webhook"]["secret"]
    return found


def _read_part(name: str, part: AgentJobSpec, setting: Setting, found: AgentEntries) -> None:
    entry, problems = read_entry(part.name, part.written, setting)
    place = ".".join(map(str, ("agents", name, *part.where)))
    known = [problem.where for problem in found.problems]
    for problem in problems:
        where = (name, *part.where, *problem.where)
        if not holds_any(where, known):  # what is wrong already is the reason
            message = problem.message.replace(f"jobs.{part.name}", place, 1)
            found.problems.append(EntryProblem(where, message))
    if entry is not None:
        found.entries.append(entry._replace(references=()))


class AgentsReader:
    """Reads the agents of several files."""

    def __init__(self, terms: FileTerms) -> None:
        self._terms = terms
        self._cost_per_day = terms.config.limits.cost_per_day  # of all agents together
        self._files: dict[str, Raw] = {}
        self.entries: list[JobEntry] = []
        self.references: set[str] = set()
        self.faults: list[Fault] = []

    def read(self, file: Raw, settings: AgentsSection, known: Sequence[Fault]) -> None:
        """Read a file's agents; `known`: what is wrong with them already."""
        for name, agent in settings.root.items():
            if name != DEFAULTS:
                self._read_one(file, name, agent.model_dump(exclude_none=True), known)

    def _read_one(self, file: Raw, name: str, settings: Mapping[str, Any], known: Sequence[Fault]) -> None:
        if name in self._files:
            other = self._files[name]
            line = other.lines.get(("agents", name))
            message = f"agents.{name} is also in {other.path}, line {line}."
            self.faults.append(file.fault(("agents", name), message))
            return
        self._files[name] = file
        found = read_agent(name, settings, file.path.resolve().parent, self._terms.zone)
        self.entries += found.entries
        self.references |= {reference for _, reference in found.references}
        problems = [file.fault(("agents", *where), message) for where, message in found.problems]
        self.faults += not_caused(problems, known)
        self.faults += _unknown_connectors(name, settings, file, self._terms.connectors)
        if (wrong := never_affordable(settings, self._cost_per_day)) is not None:
            where = ("agents", name, *wrong[0])
            self.faults.append(file.fault(where, f"{'.'.join(where)} {wrong[1]}"))
        if self._terms.look_up:
            self.faults += missing("agents", found.references, file)


def _unknown_connectors(
    name: str, agent: Mapping[str, Any], file: Raw, connectors: frozenset[str] | None
) -> Iterator[Fault]:
    if connectors is None:
        return
    said: list[tuple[Place, Any]] = [((name, "deliver"), agent.get("deliver"))]
    schedules = agent.get("schedules") or {}
    said += [((name, "schedules", key, "deliver"), one.get("deliver")) for key, one in schedules.items()]
    said += [connector_in((name, "hooks"), agent.get("hooks"))]
    said += [connector_in((name, "schedules", key, "hooks"), one.get("hooks")) for key, one in schedules.items()]
    said += [((name, "untrusted", "deliver"), (agent.get("untrusted") or {}).get("deliver"))]
    chats = {key: one["chat"] for key, one in schedules.items() if one.get("chat") is not None}
    said += [((name, "schedules", key, "chat", "connector"), one.get("connector")) for key, one in chats.items()]
    for where, to in said:
        if to is not None and to not in {"last", "none", *connectors}:
            yield file.fault(
                ("agents", *where), f"{'.'.join(('agents', *map(str, where)))}: {no_connector(to, connectors)}"
            )


def _mistake(error: Mapping[str, Any]) -> str:
    """What a model finds wrong, as a sentence; the value stays out of it, since it may be a secret."""
    *above, last = ("agents", *(part for part in error["loc"] if part != "[key]"))
    if error["type"] == "extra_forbidden":
        return f"There is no key {last!r} in {'.'.join(map(str, above))}."
    return f"{'.'.join(map(str, (*above, last)))} {complaint(error, secret=True)}"


def _checkable(agents: Mapping[str, Any]) -> dict[str, Any]:
    """The agents with their defaults, and the defaults as an agent, which has a runner."""
    found = with_defaults(agents)
    common = found.get(DEFAULTS)
    return {**found, DEFAULTS: {"runner": STAND_IN, **common}} if isinstance(common, Mapping) else found


def entries_of(agents: Mapping[str, Any], folder: Path, zone: str) -> list[JobEntry]:
    """The jobs of agents that a program gives; InvalidJob says everything that is wrong, one line each."""
    if not isinstance(agents, Mapping):
        raise InvalidJob(f"Agents are a mapping from names to settings, not {agents!r:.80}.")
    try:
        checked = AgentsSection.model_validate(_checkable(agents)).root
    except ValidationError as error:
        raise InvalidJob("\n".join(map(_mistake, error.errors()))) from None
    settings = {name: one.model_dump(exclude_none=True) for name, one in checked.items() if name != DEFAULTS}
    found = [read_agent(name, one, folder, zone) for name, one in settings.items()]
    if problems := [problem.message for one in found for problem in one.problems]:
        raise InvalidJob("\n".join(problems))
    return [entry for one in found for entry in one.entries]
