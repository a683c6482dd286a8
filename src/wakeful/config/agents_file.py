"""Agents of a configuration file, or of a program, as jobs: each with its place in the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from wakeful.agents.configuration import Agents
from wakeful.agents.defaults import DEFAULTS, with_defaults
from wakeful.agents.defining import Part, jobs_of
from wakeful.agents.naming import AGENT
from wakeful.config.complaints import complaint
from wakeful.config.salvage import STAND_IN, holds_any
from wakeful.errors import InvalidJob, SchedulerError
from wakeful.fleet.entries import Entry, Place, Problem, Setting, read_entry
from wakeful.kernel.kinds import WrittenForm
from wakeful.references import may_refer, references_in
from wakeful.triggers import Chat, Trigger, Webhook

_OUTSIDE: dict[str, Trigger] = {"webhook": Webhook(), "chat": Chat()}


def _started_by(payload: Mapping[str, Any]) -> str:
    return next((key for key in _OUTSIDE if key in payload), "")


FORM = WrittenForm(
    AGENT,
    {AGENT: lambda payload, _: payload},
    with_references=frozenset({AGENT}),  # looked at by their own reader
    trigger=lambda trigger, written: _OUTSIDE.get(_started_by(written[AGENT]), trigger),
)
"""A job of an agent as `read_entry` takes it: its payload as it is."""


class AgentEntries(NamedTuple):
    """The jobs of one agent, what is wrong with it, and what it refers to."""

    entries: list[Entry]
    problems: list[Problem]
    references: list[tuple[Place, str]]


def read_agent(name: str, settings: Mapping[str, Any], folder: Path, zone: str) -> AgentEntries:
    """An agent whose settings a model has checked; places are those below `agents`."""
    shown = f"agents.{name}"
    found = AgentEntries([], [], [])
    for where, reference in _references(settings, (name,)) if may_refer(settings) else ():
        if where[1:2] == ("runner",) or where[1:] == ("work", "token") or where[3:5] == ("webhook", "secret"):
            found.references.append((where, reference))
        else:
            named = ".".join(map(str, ("agents", *where)))
            message = (
                f"{named} has ${{{reference}}}, which an agent may have in its runner, its work.token and in secrets "
                "of webhooks alone."
            )
            found.problems.append(Problem(where, message))
    try:
        parts, wrong = jobs_of(name, settings, folder, zone)
    except SchedulerError as error:
        found.problems.append(Problem((name,), f"{shown}: {error}"))
        return found
    for place, message in wrong:
        found.problems.append(Problem((name, *place), f"{'.'.join(map(str, (shown, *place)))} {message}"))
    setting = Setting(folder, zone, {AGENT: (AGENT, FORM)})
    for part in parts:
        _read_part(name, part, setting, found)
    return found


def _read_part(name: str, part: Part, setting: Setting, found: AgentEntries) -> None:
    entry, problems = read_entry(part.name, part.written, setting)
    place = ".".join(map(str, ("agents", name, *part.where)))
    known = [problem.where for problem in found.problems]
    for problem in problems:
        where = (name, *part.where, *problem.where)
        if not holds_any(where, known):  # what is wrong already is the reason
            message = problem.message.replace(f"jobs.{part.name}", place, 1)
            found.problems.append(Problem(where, message))
    if entry is not None:
        found.entries.append(entry._replace(references=()))


def _references(value: Any, where: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield from ((where, reference) for reference in references_in(value))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _references(item, (*where, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _references(item, (*where, index))


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


def entries_of(agents: Mapping[str, Any], folder: Path, zone: str) -> list[Entry]:
    """The jobs of agents that a program gives; InvalidJob says everything that is wrong, one line each."""
    if not isinstance(agents, Mapping):
        raise InvalidJob(f"Agents are a mapping from names to settings, not {agents!r:.80}.")
    try:
        checked = Agents.model_validate(_checkable(agents)).root
    except ValidationError as error:
        raise InvalidJob("\n".join(map(_mistake, error.errors()))) from None
    settings = {name: one.model_dump(exclude_none=True) for name, one in checked.items() if name != DEFAULTS}
    found = [read_agent(name, one, folder, zone) for name, one in settings.items()]
    if problems := [problem.message for one in found for problem in one.problems]:
        raise InvalidJob("\n".join(problems))
    return [entry for one in found for entry in one.entries]
