"""`/workflows` and `/workflows/NAME`: what is stuck, and what did each input cause?"""

from __future__ import annotations

import json
import shlex
from typing import Any

from wakeful.surfaces.web.marks import StatusMark
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage

LOOKS = {
    "running": StatusMark("active", "run", "running"),
    "idle": StatusMark("idle", "", "idle"),
    "needs_attention": StatusMark("waiting", "wait", "needs attention"),
    "stopped": StatusMark("disabled", "bad", "stopped"),
}
PHASES = ("preparing", "prepared", "mutating", "mutated", "emitting", "committed")


def look_of(workflow: dict[str, Any]) -> StatusMark:
    word = workflow["status"].replace("_", " ")
    return LOOKS.get(workflow["status"], StatusMark("idle", "", word))


async def listed(asked: PageRequest) -> dict[str, Any]:
    found = await asked.scheduler.workflows.list()
    return {"workflows": [(workflow, look_of(workflow)) for workflow in found]}


page = WebPage(
    "workflows", "/workflows", lambda _: "Workflows", (Region("workflows", ("workflow", "run"), listed),),
    lambda _: "wakeful workflow list",
)  # fmt: skip


def way_of(run: dict[str, Any]) -> list[tuple[str, str]]:
    """The phases of a run, each with its state: `done`, `here` or `ahead`."""
    at = PHASES.index(run["phase"]) if run["phase"] in PHASES else -1
    if run["outcome"] == "success":
        at = len(PHASES)
    return [(name, "done" if n < at else "here" if n == at else "ahead") for n, name in enumerate(PHASES)]


async def one(asked: PageRequest) -> dict[str, Any]:
    name = asked.path["name"]
    workflow = await asked.scheduler.workflows.get(name)
    inputs = await asked.scheduler.workflows.inputs(name, limit=20)
    runs = [handler["last_run"] for handler in workflow["handlers"] if handler["last_run"]]
    last = max(runs, key=lambda run: run["started_at"] or "", default=None)
    return {
        "way": (last, way_of(last)) if last is not None else None,
        "workflow": workflow,
        "look": look_of(workflow),
        "inputs": inputs,
        "asks": bool(workflow["issue"]) and bool({"approve", "settle"} & set(workflow["issue"]["actions"])),
        "json": lambda value: json.dumps(value, ensure_ascii=False),
    }


workflow_page = WebPage(
    "workflow", "/workflows/{name}", lambda asked: asked.path["name"],
    (Region("workflow", ("workflow", "run"), one),),
    lambda asked: f"wakeful workflow show {shlex.quote(asked.path['name'])}", tab="workflows",
)  # fmt: skip
