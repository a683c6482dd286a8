"""herdctl: agents in YAML with their schedules, and `.herdctl/state.yaml`, which says which are switched off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.moving.found import SCHEDULE, ImportEntry, Reading, refused
from wakeful.moving.naming import slug
from wakeful.moving.sources import Unreadable, as_map, files_below, map_in, read_yaml, text_in

FLEET, STATE = ("herdctl.yaml", "herdctl.yml"), (".herdctl/state.yaml", "state.yaml")
_ELSEWHERE = {
    "webhook": "other systems call it: write webhook with a secret of your own (docs/agents.md, Webhooks)",
    "chat": "people write to it: write chat with a connector of your own (docs/agents.md, Chat)",
}
_LEFT = {
    "permissions": "what its tools may do is not taken over: set runner.tools and runner.args",
    "permission_mode": "what its tools may do is not taken over: set runner.tools and runner.args",
    "hooks": "its hooks are not taken over: name a connector with hooks",
    "docker": "it ran in a container, and runs here without one",
    "work_source": "its work source is not taken over: see work of agents",
}


def read(path: Path) -> Reading:
    """A fleet (`herdctl.yaml` or its folder), or one agent."""
    if path.is_dir():
        fleet = next((path / name for name in FLEET if (path / name).is_file()), None)
        files = _agents_of(fleet, linked=False) if fleet is not None else files_below(path, (".yaml", ".yml"), 2)
        folder, defaults = path, _defaults(fleet, linked=False)
    else:
        is_fleet = path.name in FLEET
        files = _agents_of(path, linked=True) if is_fleet else [path]
        folder, defaults = path.parent, _defaults(path, linked=True) if is_fleet else {}
    state = next((folder / name for name in STATE if (folder / name).is_file()), None)
    known = map_in(as_map(read_yaml(state, linked=False) or {}, state), "agents") if state is not None else {}
    entries: list[ImportEntry] = []
    agents: dict[str, Mapping[str, Any]] = {}
    for file in files:
        data = read_yaml(file, linked=file == path)
        if isinstance(data, dict) and text_in(data, "name") is not None:
            found = read_agent(file.name, {**defaults, **data}, map_in(known, str(data["name"])))
            entries += found.entries
            agents |= found.agents
    if not entries:
        raise Unreadable(f"{path} has no agents with schedules.")
    return Reading(entries, agents)


def _defaults(fleet: Path | None, *, linked: bool) -> dict[str, Any]:
    data = read_yaml(fleet, linked=linked) if fleet is not None else {}
    return {key: value for key, value in map_in(data, "defaults").items() if key in ("model", "permission_mode")}


def _agents_of(fleet: Path, *, linked: bool) -> list[Path]:
    """The files that a fleet names; only those below its folder."""
    listed = as_map(read_yaml(fleet, linked=linked), fleet).get("agents") or []
    named = [text_in(one, "path") if isinstance(one, dict) else one for one in listed if isinstance(listed, list)]
    found = []
    for name in named:
        path = Path(str(name))
        if path.is_absolute() or ".." in path.parts:
            raise Unreadable(
                f"{name!s:.100}, which {fleet} refers to, is not below its folder: import that file itself."
            )
        found.append(fleet.parent / path)
    return found


def read_agent(source: str, data: dict[str, Any], state: dict[str, Any]) -> Reading:
    """One agent with its schedules."""
    agent = slug(str(data["name"])).lower()[:50]
    folder, model = text_in(data, "working_directory", "workspace") or ".", text_in(data, "model")
    runner = {"preset": "claude", "cwd": folder, **({"model": model} if model else {})}
    notes = tuple(dict.fromkeys(note for key, note in _LEFT.items() if data.get(key)))
    states = map_in(state, "schedules")
    entries = [
        _schedule(source, f"{agent}.{slug(str(name)).lower()[:50]}", one, map_in(states, str(name)), data)
        for name, one in map_in(data, "schedules").items()
    ]
    entries = [entry if entry.refused else entry._replace(notes=(*entry.notes, *notes)) for entry in entries]
    kept = {"runner": runner, **_kept(data)}
    return Reading(entries, {agent: kept} if any(entry.refused is None for entry in entries) else {})


def _kept(data: dict[str, Any]) -> dict[str, Any]:
    most, about = map_in(data, "instances").get("max_concurrent"), text_in(data, "description")
    size = {"max_concurrent": most} if type(most) is int and 1 <= most <= 1000 else {}
    return {**({"description": about} if about else {}), **size}


def _schedule(source: str, name: str, one: Any, state: dict[str, Any], data: dict[str, Any]) -> ImportEntry:
    place = f"{source}:{name.partition('.')[2]}"
    kind = one.get("type") if isinstance(one, dict) else None
    if kind in _ELSEWHERE:
        return refused(place, name, _ELSEWHERE[str(kind)])
    expression, interval = text_in(one, "expression", "cron"), text_in(one, "interval")
    job: dict[str, Any] = {}
    if kind == "cron" and expression:
        job["cron"] = expression
    elif kind == "interval" and interval:
        job["interval"] = interval
    else:
        return refused(place, name, f"its schedule of type {kind!r:.40} is not known")
    notes = list(_notes(one, data))
    system, prompt = text_in(data, "system_prompt"), text_in(one, "prompt") or text_in(data, "default_prompt")
    job["prompt"] = "\n\n".join(part.strip() for part in (system, prompt) if part)
    if not job["prompt"]:
        return refused(place, name, "it has no prompt")
    if one.get("enabled") is False or state.get("status") == "disabled":
        job["enabled"] = False
    return ImportEntry(place, name, job, tuple(notes), part=SCHEDULE, agent=name.partition(".")[0])


def _notes(one: dict[str, Any], data: dict[str, Any]) -> Iterator[str]:
    if text_in(data, "system_prompt") is not None:
        yield "its system prompt is placed before the prompt"
    if one.get("work_source") is not None:
        yield _LEFT["work_source"]
