"""Caco's schedules: `SLUG/definition.json`, with the last run next to it. Its sessions become those of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wakeful.moving.found import SCHEDULE, ImportEntry, Reading, refused
from wakeful.moving.naming import slug
from wakeful.moving.sources import Unreadable, as_map, files_below, map_in, read_json, text_in

DEFINITION, LAST = "definition.json", "last-run.json"
SERVER = "http://127.0.0.1:3000"
WHERE = f"messages go to the session server at {SERVER}: set runner.url where it is another"


def read(path: Path) -> Reading:
    """The schedules of a folder (`~/.caco/schedule`), or one of them."""
    folder = path.parent if path.name == DEFINITION else path
    own = [folder / DEFINITION] if (folder / DEFINITION).is_file() else []
    files = own or [file for file in files_below(folder, (DEFINITION,), 2) if file.name == DEFINITION]
    if not files:
        raise Unreadable(f"{path} has no schedules: each is a folder with a {DEFINITION}.")
    entries: list[ImportEntry] = []
    agents: dict[str, dict[str, Any]] = {}
    for file in files:
        definition = as_map(read_json(file, linked=False), file)
        last = file.with_name(LAST)
        state = as_map(read_json(last, linked=False), last) if last.is_file() else {}
        agent, settings = _agent(definition)
        entry = read_schedule(f"{file.parent.name}/{DEFINITION}", definition, state, agent)
        entries.append(entry)
        if entry.refused is None:
            agents[agent] = settings
    return Reading(entries, agents)


def _agent(definition: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The agent that stands for sessions of this model."""
    config = map_in(definition, "sessionConfig")
    model, persistent = text_in(config, "model"), config.get("persistSession") is not False
    name = "-".join(["caco", *([slug(model).lower()] if model else []), *([] if persistent else ["fresh"])])[:50]
    runner = {"url": SERVER, **({"model": model} if model else {})}
    return name, {"runner": runner, **({} if persistent else {"session": "ephemeral"})}


def read_schedule(source: str, definition: dict[str, Any], state: dict[str, Any], agent: str) -> ImportEntry:
    """One schedule as that of an agent."""
    name = slug(text_in(definition, "slug") or source.partition("/")[0]).lower()
    full = f"{agent}.{name}"
    prompt, schedule = text_in(definition, "prompt"), map_in(definition, "schedule")
    minutes, kind = schedule.get("intervalMinutes"), schedule.get("type")
    job: dict[str, Any] = {}
    if kind == "cron" and text_in(schedule, "expression"):
        job["cron"] = schedule["expression"]
    elif kind == "interval" and type(minutes) is int and minutes > 0:
        job["interval"] = f"{minutes}m"
    else:
        return refused(source, full, f"its schedule of type {kind!r:.40} is not known")
    if prompt is None:
        return refused(source, full, "it has no prompt")
    if definition.get("enabled") is False:
        job["enabled"] = False
    notes = [WHERE]
    session = text_in(state, "sessionId")
    if session is not None:
        notes.append(f"its session {session:.80} is not continued: the first run begins a new one")
    return ImportEntry(source, full, {**job, "prompt": prompt}, tuple(notes), part=SCHEDULE, agent=agent)
