"""`agents.defaults` of a file: given to its agents and to those of the files it includes, each value with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.config.reading import Raw, ValueOrigin
from wakeful.config.salvage import STAND_IN
from wakeful.domains.agents.defaults import DEFAULTS, Place, inherited, settled

AGENTS = "agents"


def with_agent_defaults(raw: Raw, main: Raw | None = None) -> Raw:
    """The file with what its agents take from its defaults, and from those of `main`, which includes it.

    `defaults` stays next to the agents, so that it is checked as they are; what is wrong with a value is reported where
    that is written.
    """
    agents = raw.data.get(AGENTS)
    if not isinstance(agents, Mapping):
        return raw
    common = agents.get(DEFAULTS)
    sources = [(raw, common)] if isinstance(common, Mapping) else []
    if main is not None and isinstance(theirs := _common(main), Mapping):
        sources.append((main, settled(theirs, main.path.resolve().parent)))
    if not sources and DEFAULTS not in agents:
        return raw
    found = {}
    for name, agent in agents.items():
        found[name] = _checkable(raw, agent) if name == DEFAULTS else _whole(raw, name, agent, sources)
    return raw._replace(data={**raw.data, AGENTS: found})


def _common(raw: Raw) -> Any:
    agents = raw.data.get(AGENTS)
    return agents.get(DEFAULTS) if isinstance(agents, Mapping) else None


def _whole(raw: Raw, name: str, agent: Any, sources: list[tuple[Raw, Mapping[str, Any]]]) -> Any:
    for source, common in sources:

        def note(place: Place, source: Raw = source) -> None:
            """Errors are found by the agent's place, and reported at that of the defaults."""
            ours, theirs = (AGENTS, name, *place), (AGENTS, DEFAULTS, *place)
            if theirs in source.lines:
                line, column = source.lines[theirs], source.columns.get(theirs, 1)
                raw.lines[ours], raw.columns[ours] = line, column
                raw.origins[ours] = ValueOrigin(str(source.path), theirs, line, column)

        agent = inherited(agent, common, note)
    return agent


def _checkable(raw: Raw, common: Any) -> Any:
    """The defaults as an agent, which has a runner."""
    if not isinstance(common, Mapping):
        return common
    if "schedules" in common:
        message = "agents.defaults.schedules cannot be shared: give each agent its own schedules."
        raw.faults.append(raw.fault((AGENTS, DEFAULTS, "schedules"), message))
    rest = {key: value for key, value in common.items() if key != "schedules"}
    return {"runner": STAND_IN, **rest}
