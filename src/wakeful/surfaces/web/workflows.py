"""`/workflows` and `/workflows/NAME`: what is stuck, and what did each input cause?"""

from __future__ import annotations

import json
import shlex
from typing import Any

from wakeful.surfaces.web.pages import Asked, Page, Region
from wakeful.surfaces.web.shapes import Look

LOOKS = {
    "running": Look("active", "run", "Running"),
    "idle": Look("idle", "", "Idle"),
    "needs_attention": Look("waiting", "wait", "Needs attention"),
    "stopped": Look("disabled", "bad", "Stopped"),
}
PHASES = ("preparing", "prepared", "mutating", "mutated", "emitting", "committed")


def look_of(workflow: dict[str, Any]) -> Look:
    word = workflow["status"].replace("_", " ").capitalize()
    return LOOKS.get(workflow["status"], Look("idle", "", word))


async def listed(asked: Asked) -> dict[str, Any]:
    found = await asked.scheduler.workflows.list()
    return {"workflows": [(workflow, look_of(workflow)) for workflow in found]}


page = Page(
    "workflows", "/workflows", lambda _: "Workflows", (Region("workflows", ("workflow", "run"), listed),),
    lambda _: "wakeful workflow list",
)  # fmt: skip


async def one(asked: Asked) -> dict[str, Any]:
    name = asked.path["name"]
    workflow = await asked.scheduler.workflows.get(name)
    inputs = await asked.scheduler.workflows.inputs(name, limit=20)
    return {
        "workflow": workflow,
        "look": look_of(workflow),
        "inputs": inputs,
        "phases": PHASES,
        "json": lambda value: json.dumps(value, ensure_ascii=False),
    }


workflow_page = Page(
    "workflow", "/workflows/{name}", lambda asked: asked.path["name"],
    (Region("workflow", ("workflow", "run"), one),),
    lambda asked: f"wakeful workflow show {shlex.quote(asked.path['name'])}", tab="workflows",
)  # fmt: skip
