"""`change_schedule`, `pause_schedule`, `resume_schedule` and `remove_schedule`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents.naming import AGENT
from wakeful.domains.agents.schedule_options import edited
from wakeful.domains.agents.schedules import SOURCE
from wakeful.domains.agents.self_scheduling import requesting
from wakeful.errors import InvalidJob
from wakeful.kernel.actions import authorized
from wakeful.kernel.actions.selections import BulkResult, JobSelection, pause_many, resume_many
from wakeful.kernel.engine.ending import MCP
from wakeful.kernel.rules.options import as_written, from_text
from wakeful.kernel.rules.policy import trigger_of
from wakeful.surfaces.mcp import timing
from wakeful.surfaces.mcp.arguments import text
from wakeful.surfaces.mcp.rendering import SCHEDULE, TEXT, answers
from wakeful.surfaces.mcp.tool import McpTool
from wakeful.surfaces.mcp.tools.looking import NAME, get_schedule
from wakeful.surfaces.mcp.tools.making import LONGEST_PROMPT, made

if TYPE_CHECKING:
    from wakeful.kernel.context import Context, Rights
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef
    from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext


async def change_schedule(ctx: ToolContext, given: Given) -> Answer:
    """Change when a schedule runs or what it does; in the mode `ask` a person is asked again."""
    ctx.needs_editor()

    def work(tx: Transaction, context: Context) -> Answer:
        job, _ = requesting.find_own(tx, ctx.rights, given["name"])
        changes = _changes(job, given, timing.read_timing(given, tx.now, ctx.zone, trigger_of(job.trigger)))
        if not changes:
            raise InvalidJob("Nothing would change: give a new time, prompt, url or deliver.")
        if ctx.is_limited:
            what = given.get("prompt") or given.get("url") or json.loads(job.payload).get("prompt")
            who = ctx.requester(tx)
            approval = requesting.change(tx, context, who, ids.job_text(job.id), changes, what=what)
            return made(tx, ctx, job.name, approval)
        authorized.patch_job(tx, context._replace(rights=_rights(ctx, job)), ids.job_text(job.id), changes)
        return made(tx, ctx, job.name, requesting.waits(tx, job))

    return await ctx.scheduler.transact(work, rights=ctx.rights)


def _rights(ctx: ToolContext, job: JobDef) -> Rights:
    """Operators write schedules that were given to agents over the network; other jobs of agents are for admins."""
    given = job.kind == AGENT and job.source in (MCP, SOURCE)
    return ctx.rights._replace(admin_kinds=True) if given else ctx.rights


def _changes(job: JobDef, given: Given, trigger: Any) -> dict[str, Any]:
    """What changes about the job, as the API would be told."""
    changes: dict[str, Any] = {} if trigger is None else {"trigger": trigger}
    payload = json.loads(job.payload)
    for key in ("prompt", "url"):
        if key in given:
            if not isinstance(payload, dict) or key not in payload:
                raise InvalidJob(f"{job.name} has no {key}: it is of kind {job.kind}.")
            changes["payload"] = payload = {**payload, key: given[key]}
    if "deliver" in given and job.kind == AGENT:
        changes |= edited(payload, as_written(from_text(job.options)), {"deliver": given["deliver"]})
    elif "deliver" in given:
        changes["deliver"] = given["deliver"]
    return changes


async def pause_schedule(ctx: ToolContext, given: Given) -> Answer:
    return await _switch(ctx, given, on=False)


async def resume_schedule(ctx: ToolContext, given: Given) -> Answer:
    return await _switch(ctx, given, on=True)


async def _switch(ctx: ToolContext, given: Given, *, on: bool) -> Answer:
    ctx.needs_editor()
    if ctx.is_limited:
        await ctx.scheduler.transact(
            lambda tx, context: requesting.switch(tx, context, ctx.requester(tx), given["name"], on=on),
            rights=ctx.rights,
        )
        return await get_schedule(ctx, given)

    def work(tx: Transaction, context: Context) -> BulkResult:
        job, _ = requesting.find_own(tx, ctx.rights, given["name"])
        return (resume_many if on else pause_many)(tx, context, JobSelection((job.name,)))

    await ctx.scheduler.transact(work, rights=ctx.rights)
    return await get_schedule(ctx, given)


async def remove_schedule(ctx: ToolContext, given: Given) -> Answer:
    ctx.needs_editor()

    def work(tx: Transaction, context: Context) -> tuple[str, str | None]:
        job, _ = requesting.find_own(tx, ctx.rights, given["name"])
        if ctx.is_limited:
            return job.name, requesting.remove(tx, context, ctx.requester(tx), job.name)
        return job.name, authorized.remove_job(tx, context._replace(rights=_rights(ctx, job)), job.name)

    name, action = await ctx.scheduler.transact(work, rights=ctx.rights)
    return {"removed": name, **({"undo": f"wakeful undo {action}"} if action is not None else {})}


TOOLS = (
    McpTool(
        "change_schedule",
        "Change when a schedule runs or what it does; what you do not give stays. Agents change only their own; where "
        "a person approves schedules, the person is asked again.",
        change_schedule,
        {
            "name": NAME,
            **timing.FIELDS,
            "prompt": text("What the agent is asked.", most=LONGEST_PROMPT),
            "url": text("The address of the request.", most=2000),
            "deliver": text("The connector through which replies or results are sent.", most=100),
        },
        SCHEDULE,
        ("name",),
        destroys=True,
        repeatable=True,
    ),
    McpTool(
        "pause_schedule",
        "Pause a schedule: nothing starts by time until it is resumed.",
        pause_schedule,
        {"name": NAME},
        SCHEDULE,
        ("name",),
        repeatable=True,
    ),
    McpTool(
        "resume_schedule",
        "Resume a schedule that you paused.",
        resume_schedule,
        {"name": NAME},
        SCHEDULE,
        ("name",),
        repeatable=True,
    ),
    McpTool(
        "remove_schedule",
        "Remove a schedule; a run in progress finishes, and its history stays.",
        remove_schedule,
        {"name": NAME},
        answers({"removed": TEXT}, undo=TEXT),
        ("name",),
        destroys=True,
    ),
)
