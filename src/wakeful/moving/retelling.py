"""Stored jobs as `wakeful.yaml` has them: only those that mean the same when they are read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wakeful.config.entries import Form, JobEntry, Setting, forms, read_entry
from wakeful.errors import SchedulerError
from wakeful.moving.exported import escaped
from wakeful.moving.writing import dumped
from wakeful.references import map_texts
from wakeful.triggers import trigger_from_data
from wakeful.triggers.fields import BY_TYPE

HEAD = """\
# The jobs of a store, exported by Wakeful. Check it with wakeful check.
# To move everything with its states, use wakeful import wakeful FOLDER; to have jobs in a file, use this one.
"""


def yaml_of(jobs: Sequence[Mapping[str, Any]], fleet: str | None) -> str:
    """A file with these jobs; those that a file cannot hold are named in it."""
    known = {form.kind: form for form in forms().values()}
    text = [HEAD, *([f"fleet: {fleet}\n"] if fleet is not None else [])]
    held, left = list[str](), list[str]()
    for job in jobs:
        data = as_file(job, known.get(job["kind"]))
        if data is None:
            left.append(f"# {job['name']} ({job['kind']}) is in state.json alone.\n")
            continue
        paused = "  # It is paused.\n" if job["state"]["paused"] else ""
        held.append(f"{paused}{dumped({job['name']: data}, 1)}")
    text += ["jobs:\n", *held] if held else []
    return "".join([*text, *left])


def as_file(job: Mapping[str, Any], form: Form | None) -> dict[str, Any] | None:
    """The job as a file writes it; None where that would be another job."""
    if form is None or not isinstance(job["payload"], dict | None):
        return None
    try:
        options = {key: value for key, value in job["options"].items() if key != "bounded"}
        data = {**_timing(job["trigger"]), **_payload(job["payload"] or {}, form), **options}
    except KeyError:
        return None
    if job["owner"] is not None:
        data["owner"] = job["owner"]
    if not job["state"]["enabled"] and job["state"]["ended_at"] is None:
        data["enabled"] = False
    return data if _means(data, job) else None


def _timing(trigger: Mapping[str, Any]) -> dict[str, Any]:
    """A trigger in its short form: `cron: …` with `timezone` besides it."""
    if trigger["type"] == "ping":
        schedule = trigger.get("schedule")
        inner = _timing(schedule) if schedule is not None else {}
        return {**inner, "ping": True, **({"grace": trigger["grace"]} if "grace" in trigger else {})}
    rhythm = BY_TYPE[trigger["type"]]
    rest = {key: value for key, value in trigger.items() if key not in ("type", rhythm.value)}
    if "tz" in rest:
        rest["timezone"] = rest.pop("tz")
    return {rhythm.word: trigger[rhythm.value] if rhythm.value is not None else True, **rest}


def _payload(payload: Mapping[str, Any], form: Form) -> dict[str, Any]:
    if form.kind == "monitor":
        return {}
    found: dict[str, Any] = {}
    left = dict(payload)
    references = left.pop("env_refs", {}) if "env" in form.names else {}
    as_it_is = left.pop("references", None) is True  # what it refers to is looked up in all of its texts
    if left.pop("follow_redirects", True) is False:
        found["redirects"] = "refuse"
    for field in form.fields:
        stored = field.stored or field.name
        if stored in left:
            value = left.pop(stored)
            kept = as_it_is and field.refers
            found[field.name] = field.write(value) if kept else map_texts(field.write(value), escaped)
    if references:
        found["env"] = {**found.get("env", {}), **references}
    if left:
        raise KeyError(*left)
    return found


def _means(data: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """Whether a file with this job would store the same one."""
    try:
        entry, _ = read_entry(job["name"], dict(data), Setting(Path("/"), "UTC", forms()))
        return entry is not None and _same(entry, job)
    except SchedulerError:
        return False


def _same(entry: JobEntry, job: Mapping[str, Any]) -> bool:
    new = entry.new
    trigger = trigger_from_data(dict(job["trigger"]))
    options = {key: value for key, value in job["options"].items() if key != "bounded"}
    same_times = new.trigger.resolved(0, "UTC", keep=trigger) == trigger
    return same_times and (new.payload or {}) == (job["payload"] or {}) and new.options == options
