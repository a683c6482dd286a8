"""`/jobs/new` and `/jobs/NAME/edit`: what will change, before it does."""

from __future__ import annotations

import json
import shlex
from typing import Any

from wakeful.errors import NotAllowed, SchedulerError
from wakeful.kernel.model.job import Job
from wakeful.kernel.rules import option_fields
from wakeful.kernel.views.history import lately
from wakeful.kernel.views.scheduled_ahead import look_ahead
from wakeful.routing.rendering import job_shape
from wakeful.store.interface import Transaction
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage
from wakeful.triggers import Trigger
from wakeful.triggers.sentences import when

#: The options that have a field of their own, each with an example.
OPTIONS = {"timeout": "45m", "retry": "2", "overlap": "skip", "catch_up": "once", "deliver": "phone"}
LONGEST_WORDS = 1_000
TIMED = ("cron", "every", "interval", "once")


async def the_job(asked: PageRequest) -> Job | None:
    """The job that is edited; None for a new one."""
    name = asked.path.get("name")
    return await asked.scheduler.server_side.get_job(name, asked.rights) if name is not None else None


def written(job: Job) -> str:
    """Its schedule as a person types it: in words, or nothing where it is not one by time."""
    return job.schedule if job.trigger.type in TIMED else ""


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


async def form(asked: PageRequest) -> dict[str, Any]:
    """What stands in the form."""
    job = await the_job(asked)
    if job is not None and not asked.may_write(job.kind):
        raise NotAllowed(f"Only an admin may change jobs of kind {job.kind}.")
    if job is None:
        kind = "command" if asked.is_admin else "http"
        return {
            "job": None, "kind": kind, "when": "every day at 09:00", "payload": "",
            "options": dict.fromkeys(OPTIONS, ""), "helps": helps(), "examples": OPTIONS, "is_timed": True,
            "managed": None,
        }  # fmt: skip
    shown = job_shape(job, asked.caller, asked.scheduler.host.default_zone)["payload"]
    return {
        "job": job,
        "kind": job.kind,
        "when": written(job),
        "is_timed": job.trigger.type in TIMED,
        "payload": payload_text(job.kind, shown),
        "options": {name: as_text(job.options.get(name)) for name in OPTIONS},
        "helps": helps(),
        "examples": OPTIONS,
        "managed": job.source if job.source == "file" else None,
        "twin": f"wakeful edit {shlex.quote(job.name)} {flags_of(job)}",
    }


def flags_of(job: Job) -> str:
    """What is given to `wakeful edit` to leave the job as it is; the script writes there what was changed."""
    words = written(job)
    return f"--when {shlex.quote(words)}" if words else "--timeout 45m"


def helps() -> dict[str, str]:
    """What each option means, as every surface says it."""
    return {field.name: field.help.replace("`", "") for field in option_fields.OPTIONS if field.name in OPTIONS}


def payload_text(kind: str, payload: Any) -> str:
    """What the job does, in one line where that is possible."""
    if kind == "command" and isinstance(payload, dict) and isinstance(payload.get("argv"), list):
        return shlex.join(map(str, payload["argv"]))
    if kind == "http" and isinstance(payload, dict):
        return str(payload.get("url", ""))
    return "" if payload is None else json.dumps(payload, ensure_ascii=False, indent=1)


async def preview(asked: PageRequest) -> dict[str, Any]:
    """When it would start next as the schedule is typed now, and what to know about it."""
    job = await the_job(asked)
    words = asked.query.get("when", written(job) if job is not None else "every day at 09:00")[:LONGEST_WORDS].strip()
    nothing: dict[str, Any] = {
        "ahead": None,
        "error": None,
        "was": job.schedule if job is not None else None,
        "data": "",
        "zone": None,
    }
    if not words:
        return {**nothing, "error": None if job is not None else "Say when it is to start: every day at 09:00."}
    try:
        trigger = when(words)
    except SchedulerError as error:
        return {**nothing, "error": str(error)}
    ahead = await asked.scheduler.read(lambda tx: _ahead(tx, trigger, job, asked))
    zone = trigger.resolved(asked.times.now, asked.scheduler.host.default_zone).own_zone
    return {**nothing, "ahead": ahead, "data": json.dumps(ahead.trigger), "zone": zone}


def _ahead(tx: Transaction, trigger: Trigger, job: Job | None, asked: PageRequest) -> Any:
    last = lately(tx, [job.id])[job.id] if job is not None else None
    return look_ahead(tx, trigger, asked.scheduler.host.default_zone, last)


page = WebPage(
    "edit",
    "/jobs/{name:path}/edit",
    lambda asked: f"Edit {asked.path['name']}",
    (Region("preview", (), preview),),
    lambda asked: f"wakeful edit {shlex.quote(asked.path['name'])} --help",
    tab="jobs",
    facts=form,
    role="operator",
)
new_page = WebPage(
    "new",
    "/jobs/new",
    lambda _: "New job",
    (Region("preview", (), preview),),
    lambda _: 'wakeful add NAME --when "every day at 09:00" -- COMMAND',
    tab="jobs",
    facts=form,
    role="operator",
)
