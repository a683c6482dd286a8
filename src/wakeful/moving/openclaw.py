"""OpenClaw's `cron/jobs.json`: each job as a schedule of the agent that it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.moving.found import SCHEDULE, ImportEntry, Reading, refused
from wakeful.moving.naming import Names, slug
from wakeful.moving.prompts import NoSchedule, job_name, timing
from wakeful.moving.sources import Unreadable, map_in, read_json, text_in
from wakeful.moving.units import written

JOBS = ("cron/jobs.json", "jobs.json")


def read(path: Path) -> Reading:
    """A `jobs.json`, or the folder that has it."""
    file = path if path.is_file() else next((path / name for name in JOBS if (path / name).is_file()), None)
    if file is None:
        raise Unreadable(f"{path} has no {JOBS[0]}.")
    return read_claw(file.name, read_json(file, linked=file == path))


def read_claw(source: str, data: Any) -> Reading:
    """Jobs by the agents that they ask."""
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list):
        raise Unreadable(f"{source} has no list of jobs.")
    entries = list(_schedules(source, jobs))
    asked = {entry.agent for entry in entries if entry.refused is None and entry.agent is not None}
    return Reading(entries, {agent: {"runner": _runner(agent)} for agent in sorted(asked)})


def _runner(agent: str) -> dict[str, Any]:
    """The program of OpenClaw, which asks the agent of that name."""
    return {"start": ["openclaw", "agent", "--agent", agent, "--message", "{prompt}"], "cwd": "~"}


def _schedules(source: str, jobs: list[Any]) -> Iterator[ImportEntry]:
    names = Names()
    for number, job in enumerate(jobs, 1):
        place = f"{source}:{number}"
        if not isinstance(job, dict):
            yield refused(place, f"job-{number}", "it is not a job")
            continue
        agent = slug(text_in(job, "agentId") or "main").lower()[:50]
        name = names.free(f"{agent}.{job_name(job, number)}")
        try:
            when = timing(map_in(job, "schedule"))
        except NoSchedule as no:
            yield refused(place, name, str(no))
            continue
        payload = map_in(job, "payload")
        prompt = text_in(payload, "message", "text")
        if prompt is None:
            yield refused(place, name, "it has no text for the agent")
            continue
        target = "isolated" if job.get("sessionTarget") == "isolated" else "main"
        schedule = {**when, "prompt": prompt, "target": target, **_options(job, payload)}
        yield ImportEntry(place, name, schedule, tuple(_differences(job, payload)), part=SCHEDULE, agent=agent)


def _options(job: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    seconds = payload.get("timeoutSeconds")
    limit = {"timeout": written(seconds * 1000)} if type(seconds) is int and 0 < seconds < 10**7 else {}
    return {**limit, **({"enabled": False} if job.get("enabled") is False else {})}


def _differences(job: dict[str, Any], payload: dict[str, Any]) -> Iterator[str]:
    delivery = map_in(job, "delivery")
    channel = text_in(delivery, "channel") or text_in(payload, "channel")
    if delivery.get("mode") in ("announce", "webhook") or payload.get("deliver") is True:
        yield f"its reply was sent to {channel or 'a chat'}: name a connector with deliver to have it sent"
    model = text_in(payload, "model")
    if model is not None:
        yield f"it asked the model {model:.60}: an agent here has one for all its schedules (runner)"
    if job.get("deleteAfterRun") is True:
        yield "it was deleted after its run, and stays here as done"
