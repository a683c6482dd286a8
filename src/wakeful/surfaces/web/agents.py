"""`/agents` and `/agents/NAME`: is it awake, and what has it cost?"""

from __future__ import annotations

import shlex
from typing import Any

from wakeful import ids
from wakeful.domains.agents.naming import wake_job
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.views.history import lately
from wakeful.store.interface import Transaction
from wakeful.surfaces.web.drawings.bars import meter, sparkline
from wakeful.surfaces.web.marks import StatusMark, look_of_run
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage

BEATS = 48  # so many are drawn
LOOKS = {
    "running": StatusMark("active", "run", "running"),
    "idle": StatusMark("idle", "", "idle"),
    "paused": StatusMark("paused", "", "paused"),
    "disabled": StatusMark("disabled", "bad", "off"),
    "waiting": StatusMark("waiting", "wait", "waits for you"),
}


def look_of(agent: dict[str, Any]) -> StatusMark:
    if agent["paused"]:
        return LOOKS["paused"]
    if agent["over_budget"]:
        return StatusMark("skipped", "wait", "over budget")
    if agent["rate_limited"]:
        return StatusMark("deferred", "wait", "rate limited")
    return LOOKS.get(agent["status"], LOOKS["idle"])


def spent(agent: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """What it has used of each cap today, in words and drawn."""
    found = []
    for cap, used, form in (
        ("cost_per_day", "cost", "${:,.2f}"),
        ("runs_per_day", "runs", "{:,}"),
        ("tokens_per_day", "tokens", "{:,}"),
    ):
        most = agent["budget"].get(cap)
        if most is not None:
            value = agent["spent_today"][used]
            noun = used.removesuffix("s") if most == 1 else used
            found.append((noun, f"{form.format(value)} of {form.format(most)}", meter(value, most)))
    return found


async def listed(asked: PageRequest) -> dict[str, Any]:
    agents = await asked.scheduler.agents.list()
    return {"agents": [(agent, look_of(agent), spent(agent)) for agent in agents]}


page = WebPage(
    "agents", "/agents", lambda _: "Agents", (Region("agents", ("run", "job", "heartbeat"), listed),),
    lambda _: "wakeful agent list",
)  # fmt: skip


async def one(asked: PageRequest) -> dict[str, Any]:
    agent = await asked.scheduler.agents.get(asked.path["name"])
    jobs = [*agent["schedules"], *([agent["heartbeat"]] if agent["heartbeat"] else [])]

    def work(tx: Transaction) -> tuple[dict[str, Any], dict[str, str]]:
        found = {job["job"]: tx.jobs.by_name(job["job"]) for job in jobs}
        numbers = {name: ids.job_text(pair[0].id) for name, pair in found.items() if pair is not None}
        last = lately(tx, list(numbers.values()))
        words = {name: trigger_of(pair[0].trigger).brief() for name, pair in found.items() if pair is not None}
        return {name: sparkline(last[text]) for name, text in numbers.items()}, words

    drawings, words = await asked.scheduler.read(work)
    beat = agent["heartbeat"]["job"] if agent["heartbeat"] else None
    beats = await asked.scheduler.get_run_log(wake_job(agent["name"]), limit=BEATS) if beat is not None else []
    return {
        "agent": agent,
        "look": look_of(agent),
        "spent": spent(agent),
        "drawings": drawings,
        "words": words,
        "jobs": jobs,
        "beats": [(run, look_of_run(run)) for run in reversed(beats)],
        "asked_for": agent["self_schedule"]["asked"],
    }


agent_page = WebPage(
    "agent", "/agents/{name}", lambda asked: asked.path["name"],
    (Region("agent", ("run", "job", "heartbeat"), one),),
    lambda asked: f"wakeful agent show {shlex.quote(asked.path['name'])}", tab="agents",
)  # fmt: skip
