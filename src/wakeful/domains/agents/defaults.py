"""`defaults` among agents: what every agent has that does not say it itself. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.callables import beside
from wakeful.references import absolute

DEFAULTS = "defaults"
FORMS = ("preset", "start", "url", "python")
OF_PROGRAMS, OF_ALL = ("cwd", "timeout", "max_cost"), ("timeout", "max_cost")
"""What a runner keeps of the defaults if it calls something else than they do: a program, and anything."""
PATHS = (("runner", "cwd"), ("heartbeat", "prompt_file"), ("work", "path"))

Place = tuple[str | int, ...]


def inherited(own: Any, defaults: Mapping[str, Any], note: Callable[[Place], None] = lambda _: None) -> Any:
    """An agent with what it does not say itself; `note` is told the place of each value that it takes over.

    Sections are put together key by key, and everything else is the agent's or the defaults'.
    """
    given = {} if own is None else own
    if not isinstance(given, Mapping):
        return own
    rest = {key: value for key, value in defaults.items() if key != "schedules"}
    if isinstance(rest.get("runner"), Mapping) and isinstance(given.get("runner"), Mapping):
        rest["runner"] = _fitting(rest["runner"], given["runner"])
    return _merged(given, rest, (), note)


def _fitting(runner: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of the defaults fits a runner that may call another program."""
    ours = {form: own[form] for form in FORMS if own.get(form) is not None}
    theirs = {form: runner[form] for form in FORMS if runner.get(form) is not None}
    if not ours or not theirs or ours == theirs:
        return runner
    kept = OF_PROGRAMS if {"preset", "start"} & ours.keys() else OF_ALL
    return {key: value for key, value in runner.items() if key in kept}


def _merged(
    own: Mapping[str, Any], defaults: Mapping[str, Any], where: Place, note: Callable[[Place], None]
) -> dict[str, Any]:
    found = dict(own)
    for key, value in defaults.items():
        if key not in own:
            found[key] = value
            for place in _places(value, (*where, key)):
                note(place)
        elif isinstance(own[key], Mapping) and isinstance(value, Mapping):
            found[key] = _merged(own[key], value, (*where, key), note)
    return found


def _places(value: Any, where: Place) -> Iterator[Place]:
    yield where
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*where, key))


def settled(defaults: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Defaults for agents of a file in another folder: paths start at the file that has them."""
    found = dict(_absolute(defaults, folder))
    for section, key in PATHS:
        part = found.get(section)
        text = part.get(key) if isinstance(part, dict) else None
        if isinstance(text, str) and not text.startswith(("${", "~")):
            found[section] = {**found[section], key: str(folder / text)}
    runner = found.get("runner")
    if isinstance(runner, dict) and isinstance(runner.get("python"), str):
        found["runner"] = {**runner, "python": beside(runner["python"], folder)}
    return found


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return absolute(value, folder)
    if isinstance(value, Mapping):
        return {key: _absolute(item, folder) for key, item in value.items()}
    return [_absolute(item, folder) for item in value] if isinstance(value, list) else value


def with_defaults(agents: Mapping[str, Any]) -> dict[str, Any]:
    """Agents as a program gives them, each with the defaults; those stay among them, to be checked."""
    common = agents.get(DEFAULTS)
    if not isinstance(common, Mapping):
        return dict(agents)
    return {name: one if name == DEFAULTS else inherited(one, common) for name, one in agents.items()}
