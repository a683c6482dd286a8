"""Open Alice: `cron/jobs.json`, `config/scheduler.json` and `delivery-queue/`, below its `data` folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.moving.found import HEARTBEAT, SCHEDULE, ImportEntry, Reading, refused
from wakeful.moving.naming import Names
from wakeful.moving.prompts import NoSchedule, job_name, timing
from wakeful.moving.sources import Unreadable, as_map, files_below, map_in, read_json, text_in

AGENT = "alice"
JOBS, SETTINGS, QUEUE = ("cron/jobs.json", "jobs.json"), ("config/scheduler.json", "scheduler.json"), "delivery-queue"
RUNNER = {"preset": "claude", "cwd": "."}
WHO = "Open Alice's own engine cannot be called from outside: set runner to the program that is asked here"
_HEART = {"every": "every", "prompt": "prompt", "ackToken": "ack_token", "ackMaxChars": "ack_max_chars"}


def read(path: Path) -> Reading:
    """What is below the `data` folder, or in one `jobs.json`."""
    if path.is_file():
        jobs = read_json(path)
        settings = read_json(path.with_name("scheduler.json")) if path.with_name("scheduler.json").is_file() else {}
        return read_alice(path.name, jobs, settings)
    folder = path / "data" if (path / "data").is_dir() else path
    found = [next((folder / name for name in names if (folder / name).is_file()), None) for names in (JOBS, SETTINGS)]
    queue = folder / QUEUE
    waiting = files_below(queue, (".json",), 2) if queue.is_dir() and not queue.is_symlink() else []
    if not any(found) and not waiting:
        raise Unreadable(f"{path} has neither {JOBS[0]} nor {SETTINGS[0]}.")
    jobs, settings = (read_json(file, linked=False) if file is not None else {} for file in found)
    reading = read_alice(JOBS[0], jobs, settings)
    return Reading([*reading.entries, *_unsent(folder, waiting)], reading.agents)


def read_alice(source: str, jobs: Any, settings: Any) -> Reading:
    """Jobs and heartbeat as those of one agent."""
    listed = jobs.get("jobs", []) if isinstance(jobs, dict) else jobs
    if not isinstance(listed, list):
        raise Unreadable(f"{source} has no list of jobs.")
    is_on = map_in(settings, "cron").get("enabled") is not False
    entries = [*_heartbeat(map_in(settings, "heartbeat")), *_schedules(source, listed, is_on=is_on)]
    agents = {AGENT: {"runner": RUNNER}} if any(entry.refused is None for entry in entries) else {}
    return Reading(entries, agents)


def _heartbeat(heart: dict[str, Any]) -> Iterator[ImportEntry]:
    if not heart:
        return
    if heart.get("enabled") is not True:
        yield refused("scheduler.json", f"{AGENT}.heartbeat", "it is switched off, and an agent has none by itself")
        return
    said: dict[str, Any] = {"enabled": True}
    said |= {ours: heart[theirs] for theirs, ours in _HEART.items() if heart.get(theirs) is not None}
    hours = map_in(heart, "activeHours")
    zone = text_in(hours, "timezone")
    if hours:
        said["active_hours"] = {key: hours.get(key) for key in ("start", "end")}
        if zone and zone != "local":
            said["active_hours"]["timezone"] = zone
    yield ImportEntry("scheduler.json", f"{AGENT}.heartbeat", said, (WHO,), part=HEARTBEAT, agent=AGENT)


def _schedules(source: str, jobs: list[Any], *, is_on: bool) -> Iterator[ImportEntry]:
    """The jobs of the list; `is_on`: whether its settings let them run at all."""
    names = Names()
    for number, job in enumerate(jobs, 1):
        place = f"{source}:{number}"
        if not isinstance(job, dict):
            yield refused(place, f"{AGENT}.job-{number}", "it is not a job")
            continue
        name, payload = f"{AGENT}.{names.free(job_name(job, number))}", text_in(job, "payload")
        try:
            when = timing(map_in(job, "schedule"))
        except NoSchedule as no:
            yield refused(place, name, str(no))
            continue
        if payload is None:
            yield refused(place, name, "it has no text for the agent")
            continue
        target = "isolated" if job.get("sessionTarget") == "isolated" else "main"
        off = {"enabled": False} if job.get("enabled") is False or not is_on else {}
        schedule = {**when, "prompt": payload, "target": target, **off}
        notes = (WHO,) if is_on else (WHO, "its scheduler was switched off (cron.enabled), so this is disabled")
        yield ImportEntry(place, name, schedule, notes, part=SCHEDULE, agent=AGENT)


def _unsent(folder: Path, files: list[Path]) -> Iterator[ImportEntry]:
    """Messages that were not sent: they are reported, and sent by nobody."""
    for file in files:
        message = as_map(read_json(file, linked=False), file)
        place, to = str(file.relative_to(folder)), text_in(message, "channel") or "somebody"
        why = f"a message to {to} that Open Alice did not send yet: let it send that first, for nothing is sent twice"
        yield refused(place, file.stem, why)
