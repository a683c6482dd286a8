"""`wakeful://jobs/NAME` and `wakeful://runs/ID`: jobs and runs as resources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from wakeful.errors import NotFound
from wakeful.surfaces.mcp.tools.looking import get_schedule, list_schedules
from wakeful.surfaces.mcp.tools.runs import get_run

if TYPE_CHECKING:
    from wakeful.surfaces.mcp.tool_context import ToolContext

JOBS, RUNS = "wakeful://jobs/", "wakeful://runs/"
TEMPLATES = (
    (f"{JOBS}{{name}}", "job", "A job with its next times and its last run."),
    (f"{RUNS}{{id}}", "run", "A run with its output and its error."),
)
LISTED = 100


async def listed(ctx: ToolContext) -> list[tuple[str, str, str]]:
    """The address, name and schedule of jobs that the caller may see."""
    found: list[dict[str, Any]] = (await list_schedules(ctx, {"limit": LISTED}))["schedules"]
    return [(f"{JOBS}{quote(one['name'], safe='')}", one["name"], one["schedule"]) for one in found]


async def read(ctx: ToolContext, uri: str) -> str:
    """What is at an address, as JSON; NotFound where there is nothing for this caller."""
    if uri.startswith(JOBS):
        found = await get_schedule(ctx, {"name": unquote(uri.removeprefix(JOBS))})
    elif uri.startswith(RUNS):
        found = await get_run(ctx, {"run": unquote(uri.removeprefix(RUNS))})
    else:
        raise NotFound(f"There is no resource {uri!r:.200}: there are {JOBS}NAME and {RUNS}ID.")
    return json.dumps(found, ensure_ascii=False, indent=2)
