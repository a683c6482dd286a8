"""`run_now`, `cancel_run`, `get_run` and `wait_for_run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.agents.self_scheduling import requesting
from wakeful.kernel.actions import authorized, lookup
from wakeful.surfaces.mcp.arguments import text, whole
from wakeful.surfaces.mcp.rendering import OUTPUT, RUN, run_shape
from wakeful.surfaces.mcp.tool import McpTool
from wakeful.surfaces.mcp.tools.looking import NAME

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.run import Run
    from wakeful.store.interface import Transaction
    from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext

LONGEST_WAIT = 50  # seconds; clients give up on a call after a minute
STEP_S = 2.0


async def run_now(ctx: ToolContext, given: Given) -> Answer:
    ctx.needs_editor()

    def work(tx: Transaction, context: Context) -> str:
        name = requesting.find_own(tx, ctx.rights, given["name"])[0].name
        if not ctx.is_limited:
            return authorized.run_job(tx, context, name).id
        return ids.run_text(requesting.start(tx, context, ctx.requester(tx), name))

    run_id = await ctx.scheduler.transact(work, rights=ctx.rights)
    return run_shape(await ctx.scheduler.server_side.get_run(run_id, ctx.rights))


async def cancel_run(ctx: ToolContext, given: Given) -> Answer:
    ctx.needs_editor()
    number = lookup.require_run(given["run"])

    def check(tx: Transaction) -> None:
        authorized.ensure_own_run(tx, number, ctx.rights)
        if ctx.is_limited:
            requesting.own_schedule(tx, ctx.requester(tx), ids.job_text(lookup.find_run(tx, number)[0].id))

    await ctx.scheduler.read(check)
    await ctx.shows(runs=[number])
    cancelled = await ctx.scheduler.transact(
        lambda tx, context: authorized.cancel_run(tx, context, given["run"]), rights=ctx.rights, cancels=True
    )
    return run_shape(cancelled)


async def get_run(ctx: ToolContext, given: Given) -> Answer:
    run = await ctx.scheduler.server_side.get_run(given["run"], ctx.rights)
    return run_shape(run, given.get("output_limit", OUTPUT))


async def wait_for_run(ctx: ToolContext, given: Given) -> Answer:
    """The run once it has ended, or as it is when the time is over; says meanwhile how it stands."""
    seconds = given.get("timeout", 30)
    run = await ctx.scheduler.server_side.get_run(given["run"], ctx.rights)
    began, waited = ctx.scheduler.clock.boot(), 0.0
    while run.status != "done" and waited < seconds and not _asks(run):
        await ctx.progress(waited, float(seconds), f"{run.id} of {run.job} is {run.status}")
        step = min(STEP_S, seconds - waited)
        try:
            run = await ctx.scheduler.wait_for_run(run.id, timeout=step)
        except TimeoutError:
            run = await ctx.scheduler.server_side.get_run(run.id, ctx.rights)
        waited = (ctx.scheduler.clock.boot() - began) / 1000
    shown = run_shape(run)
    if run.status == "done":
        return shown
    more = "it waits for a person's approval" if _asks(run) else "call wait_for_run again to wait longer"
    return {**shown, "note": f"It has not ended yet: {more}."}


def _asks(run: Run) -> bool:
    return run.status == "waiting" and run.phase == "approval"


_RUN = text("The id of a run, run_….", most=100)
TOOLS = (
    McpTool(
        "run_now",
        "Start a schedule now. Agents start only those that they made.",
        run_now,
        {"name": NAME},
        RUN,
        ("name",),
    ),
    McpTool("cancel_run", "Cancel a run.", cancel_run, {"run": _RUN}, RUN, ("run",), destroys=True),
    McpTool(
        "get_run",
        "Show a run: its status, its output and its error.",
        get_run,
        {"run": _RUN, "output_limit": whole("How many characters of the output to show.", 0, 100_000)},
        RUN,
        ("run",),
        reads=True,
        repeatable=True,
    ),
    McpTool(
        "wait_for_run",
        "Wait until a run has ended, with progress, for at most 50 seconds; call again to wait longer.",
        wait_for_run,
        {"run": _RUN, "timeout": whole("Seconds to wait at most (default: 30).", 0, LONGEST_WAIT)},
        RUN,
        ("run",),
        reads=True,
        repeatable=True,
    ),
)
