"""`list_schedules`, `get_schedule`, `explain`, `status` and `upcoming`: what there is, and why."""

from __future__ import annotations

from heapq import merge
from itertools import islice, repeat, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING

from wakeful.counting import counted
from wakeful.domains.agents.self_scheduling import requesting
from wakeful.kernel.engine.ending import MCP
from wakeful.kernel.model.job import job_views
from wakeful.store.listing import JobFilter
from wakeful.surfaces.mcp.arguments import flag, milliseconds, text, whole
from wakeful.surfaces.mcp.rendering import MAYBE, SCHEDULE, SENTENCES, TEXT, answers, schedule_shape
from wakeful.surfaces.mcp.tool import McpTool
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wakeful.kernel.actions.stops import Pair
    from wakeful.kernel.model.job import Job
    from wakeful.store.interface import Transaction
    from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext

MANY = 50
MOST_STARTS = 100
DAY_MS = 86_400_000
MOST_JOBS = 2_000  # whose starts are looked at for a caller that sees only its own


async def list_schedules(ctx: ToolContext, given: Given) -> Answer:
    limit = given.get("limit", MANY)
    wanted = JobFilter(
        source=MCP if given.get("mine") else None,
        contains=given.get("q"),
        after=given.get("cursor"),
        limit=limit + 1,
        hidden=ctx.scheduler.host.hidden_kinds,
        owned=ctx.rights.owned,
        requested=bool(given.get("mine")) and ctx.is_limited,
    )

    def work(tx: Transaction) -> tuple[Answer, list[Pair]]:
        pairs = tx.jobs.matching(wanted)
        jobs = job_views(tx, pairs[:limit])
        shown = [
            schedule_shape(job, requesting.waits(tx, pair[0]), tx.now) for job, pair in zip(jobs, pairs, strict=False)
        ]
        return {"schedules": shown, "next_cursor": shown[-1]["name"] if len(pairs) > limit else None}, pairs[:limit]

    found, pairs = await ctx.scheduler.read(work)
    await _shows(ctx, pairs)
    return found


async def get_schedule(ctx: ToolContext, given: Given) -> Answer:
    def work(tx: Transaction) -> tuple[Answer, Pair]:
        pair = requesting.find_own(tx, ctx.rights, given["name"])
        return schedule_shape(job_views(tx, [pair])[0], requesting.waits(tx, pair[0]), tx.now, times=5), pair

    found, pair = await ctx.scheduler.read(work)
    await _shows(ctx, [pair])
    return found


async def _shows(ctx: ToolContext, pairs: Sequence[Pair]) -> None:
    """What jobs do and the errors of their last runs are shown."""
    last = [state.last_run_id for _, state in pairs if state.last_run_id is not None and state.last_error is not None]
    await ctx.shows([job.id for job, _ in pairs], last)


async def explain(ctx: ToolContext, given: Given) -> Answer:
    """Why a job ran or did not; without a name, how everything is."""
    if "name" not in given:
        return {"sentences": (await status(ctx, {}))["sentences"]}
    ref = given["name"]
    if ref.startswith("run_"):
        await ctx.scheduler.server_side.get_run(ref, ctx.rights)
    else:
        pair = await ctx.scheduler.read(lambda tx: requesting.find_own(tx, ctx.rights, ref))
        ref = pair[0].name
    return {"sentences": (await ctx.scheduler.server_side.explain(ref, ctx.rights)).sentences}


async def status(ctx: ToolContext, _: Given) -> Answer:
    """The verdict; an agent is told of its own schedules alone."""
    if not ctx.is_limited:
        verdict = await ctx.scheduler.get_verdict()
        return {"sentences": [verdict.sentence], "well": verdict.well}
    jobs = await ctx.scheduler.read(lambda tx: job_views(tx, tx.jobs.matching(JobFilter(owned=ctx.rights.owned))))
    asking = [job.name for job in jobs if job.status == "paused" and job.source == MCP]
    failing = [job.name for job in jobs if job.consecutive_errors]
    sentences = [f"{ctx.caller.name} has {counted(len(jobs), 'job')}."]
    sentences += [f"Paused, or waiting for approval: {', '.join(asking[:20])}."] if asking else []
    sentences += [f"Failing: {', '.join(failing[:20])}."] if failing else []
    return {"sentences": sentences, "well": not failing}


async def upcoming(ctx: ToolContext, given: Given) -> Answer:
    """The next starts, in order of time."""
    length = milliseconds(given, "for", "24h") or DAY_MS

    def work(tx: Transaction) -> Answer:
        hidden = ctx.scheduler.host.hidden_kinds
        owned = JobFilter(owned=ctx.rights.owned, limit=MOST_JOBS)
        pairs = tx.jobs.matching(owned) if ctx.is_limited else tx.jobs.soonest(MOST_STARTS, hidden)
        starts = takewhile(lambda item: item[0] <= tx.now + length, _starts(job_views(tx, pairs)))
        found = [
            {"name": job.name, "at": iso(at), "schedule": job.schedule} for at, _, job in islice(starts, MOST_STARTS)
        ]
        return {"starts": found, "until": iso(tx.now + length)}

    return await ctx.scheduler.read(work)


def _starts(jobs: list[Job]) -> Iterator[tuple[int, str, Job]]:
    return merge(*[zip(job.starts(), repeat(job.id), repeat(job)) for job in jobs], key=itemgetter(0, 1))


NAME = text("The name of a schedule; agents may leave out their own name and the dot before it.", most=300)
START = {"type": "object", "properties": {"name": TEXT, "at": TEXT, "schedule": TEXT}, "required": ["name", "at"]}
TOOLS = (
    McpTool(
        "list_schedules",
        "List schedules that you may see, by name, with their next and last run.",
        list_schedules,
        {
            "mine": flag("Only those that were made over MCP; for an agent, those it made itself."),
            "q": text("A part of the name.", most=200),
            "limit": whole("How many.", 1, 200),
            "cursor": text("`next_cursor` of the page before.", most=300),
        },
        answers({"schedules": {"type": "array", "items": SCHEDULE}, "next_cursor": MAYBE}),
        reads=True,
        repeatable=True,
    ),
    McpTool(
        "get_schedule",
        "Show one schedule with its next times and its last run.",
        get_schedule,
        {"name": NAME},
        SCHEDULE,
        ("name",),
        reads=True,
        repeatable=True,
    ),
    McpTool(
        "explain",
        "Explain why a schedule or a run ran or did not run, and when it runs next; without a name, how all is.",
        explain,
        {"name": text("A schedule or a run.", most=300)},
        SENTENCES,
        reads=True,
        repeatable=True,
    ),
    McpTool(
        "status",
        "Say whether all is well.",
        status,
        {},
        answers({"sentences": {"type": "array", "items": TEXT}, "well": {"type": "boolean"}}),
        reads=True,
        repeatable=True,
    ),
    McpTool(
        "upcoming",
        "List the next starts in order of time.",
        upcoming,
        {"for": text("How far ahead to look, such as 24h (the default) or 7d.", most=40)},
        answers({"starts": {"type": "array", "items": START}, "until": TEXT}),
        reads=True,
        repeatable=True,
    ),
)
