"""`schedule` and `remind_me`: new schedules."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents import SESSION
from wakeful.domains.agents.ad_hoc_schedules import added_schedule
from wakeful.domains.agents.naming import AGENT, agent_of
from wakeful.domains.agents.self_scheduling import requesting
from wakeful.domains.agents.senders.feeding import has_outside
from wakeful.domains.agents.senders.tables import Senders
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.command import COMMAND
from wakeful.errors import InvalidJob, InvalidTrigger, NotAllowed
from wakeful.kernel.actions import authorized
from wakeful.kernel.actions.drafts import NewJob, draft
from wakeful.kernel.engine.ending import MCP
from wakeful.kernel.model.job import job_view
from wakeful.surfaces.mcp import timing
from wakeful.surfaces.mcp.arguments import text
from wakeful.surfaces.mcp.rendering import SCHEDULE, schedule_shape
from wakeful.surfaces.mcp.tool import McpTool

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext
    from wakeful.triggers import Trigger

WORK = ("prompt", "command", "url")
LONGEST_PROMPT = 20_000
WAITS = "A person is asked to approve it. Nothing starts before that; continue with something else."
ERROR_SPAN = "24h"


async def schedule(ctx: ToolContext, given: Given) -> Answer:
    """A schedule for the calling agent; for other callers, a job."""
    ctx.needs_editor()
    _refuse_unfit(ctx, given)

    def work(tx: Transaction, context: Context) -> Answer:
        trigger = timing.read_timing(given, tx.now, ctx.zone)
        assert trigger is not None  # noqa: S101 - there is nothing that it could change
        if not ctx.is_limited:
            return _as_operator(tx, context, ctx, given, trigger)
        who, what = ctx.requester(tx), str(given.get("prompt") or given.get("url"))
        name = requesting.new_name(tx, ctx.agent, given.get("name"), what)
        new = _own_job(tx, ctx, given, name, trigger)
        return made(tx, ctx, name, requesting.create(tx, context, who, new, what=what))

    return await ctx.scheduler.transact(work, rights=ctx.rights)


async def remind_me(ctx: ToolContext, given: Given) -> Answer:
    """One event for the calling agent, at one time."""
    agent = ctx.agent
    if agent is None:
        raise NotAllowed("remind_me is for agents in their runs: use schedule, or publish_event for an agent.")

    def work(tx: Transaction, context: Context) -> Answer:
        trigger = timing.read_timing({"when": given["when"]}, tx.now, ctx.zone)
        if trigger is None or trigger.type != "once":
            raise InvalidTrigger("A reminder has one time, such as in 20 minutes or tomorrow at 9: else use schedule.")
        who, said = ctx.requester(tx), given["text"]
        name = requesting.new_name(tx, agent, None, said)
        schedule = name.removeprefix(f"{agent}.")
        payload = {"agent": agent, "schedule": schedule, "does": "event", "prompt": said}
        new = NewJob(name, trigger, kind=AGENT, payload=payload, owner=agent, error_span=ERROR_SPAN)
        return made(tx, ctx, name, requesting.create(tx, context, who, new, what=f"reminder: {said}"))

    return await ctx.scheduler.transact(work, rights=ctx.rights)


def made(tx: Transaction, ctx: ToolContext, name: str, approval: str | None) -> Answer:
    """A schedule as it is now, in the transaction that made or changed it."""
    pair = requesting.find_own(tx, ctx.rights, name)
    job, reader = job_view(tx, pair), ctx.caller.run
    if ctx.agent is not None and reader is not None and has_outside(tx, [pair[0].id], ()):
        tx.of(Senders).feed(reader)
    shown = schedule_shape(job, approval, tx.now)
    return {**shown, "note": WAITS} if approval is not None else shown


def _refuse_unfit(ctx: ToolContext, given: Given) -> None:
    """What this caller cannot ask for, whatever the time."""
    works = [word for word in WORK if word in given]
    if len(works) != 1:
        said = f"{works[0]} and {works[1]} are two things to do" if works else "It says nothing to do"
        raise InvalidJob(f"{said}: give one of prompt, command and url.")
    if ctx.is_limited and "command" in given:
        raise NotAllowed("Agents may not schedule commands: schedule a prompt, and run the command in that run.")
    if ctx.agent is not None and "url" in given:
        raise NotAllowed("Agents may not schedule requests: schedule a prompt, and send the request in that run.")
    if ctx.is_limited and given.get("agent") not in (None, ctx.agent):
        raise NotAllowed(
            f"{ctx.caller.name} may not schedule anything for others: leave agent out, or use publish_event."
        )


def _own_job(tx: Transaction, ctx: ToolContext, given: Given, name: str, trigger: Trigger) -> NewJob:
    """The job of an agent's own schedule."""
    deliver = {"deliver": given["deliver"]} if "deliver" in given else {}
    if ctx.agent is not None:
        return added_schedule(tx, ctx.agent, name, trigger, prompt=given["prompt"], options=deliver)
    return NewJob(name, trigger, **_kind(ctx, given), owner=ctx.caller.name, **deliver)


def _kind(ctx: ToolContext, given: Given) -> dict[str, Any]:
    """The kind and the payload of a job that is no agent's."""
    if "url" in given:
        return {"kind": "http", "payload": {"url": given["url"]}}
    if "command" in given:
        command = given["command"]
        try:
            argv = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            raise InvalidJob(f"The command cannot be read ({error}): give a list of words.") from None
        return {"kind": COMMAND, "payload": {"argv": argv}}
    if SESSION not in ctx.scheduler.host.handled_kinds:
        raise InvalidJob("A prompt needs an agent: name one with agent. This server has no sessions for prompts.")
    return {"kind": SESSION, "payload": {"prompt": given["prompt"]}}


def _as_operator(tx: Transaction, context: Context, ctx: ToolContext, given: Given, trigger: Trigger) -> Answer:
    """A job of a person, or a schedule that a person gives an agent."""
    agent, rights = given.get("agent"), ctx.rights
    what = str(given.get("prompt") or given.get("url") or given.get("command"))
    name = given.get("name") or requesting.new_name(tx, agent, None, what)
    options = {**ctx.scheduler.host.job_defaults, **({"deliver": given["deliver"]} if "deliver" in given else {})}
    if agent is None:
        _refuse_unnamed(tx, given)
        new = NewJob(name, trigger, **_kind(ctx, given), **options)
    elif "prompt" in given:
        new = added_schedule(tx, agent, name, trigger, prompt=given["prompt"], options=options)
        rights = rights._replace(admin_kinds=True)  # operators schedule prompts for agents, but define none
    else:
        raise InvalidJob("An agent is given a prompt, not a command or a url.")
    authorized.create_job(tx, context._replace(rights=rights), draft(new, MCP, context.declared))
    return made(tx, ctx, name, None)


def _refuse_unnamed(tx: Transaction, given: Given) -> None:
    """A prompt is for an agent, where there are agents; else it is sent to a session."""
    wakes = tx.jobs.definitions(tx.of(AgentTables).wake_jobs("", 10)) if "prompt" in given else {}
    if wakes:
        known = ", ".join(sorted(agent_of(job.name) for job in wakes.values()))
        raise InvalidJob(f"Say which agent gets the prompt, with agent: there are {known}.")


TOOLS = (
    McpTool(
        "schedule",
        "Schedule a prompt for yourself, as an agent; as an operator, a job. Within your bounds it is active at once, "
        "or it waits for a person's approval: the status says which.",
        schedule,
        {
            "name": text("A short name; one is made from what it does if it is left out.", most=200),
            **timing.FIELDS,
            "prompt": text("What the agent is asked at these times.", most=LONGEST_PROMPT),
            "command": {
                "description": "A program with its arguments. For admins.",
                "anyOf": [
                    {"type": "string", "minLength": 1, "maxLength": 8000},
                    {"type": "array", "maxItems": 200, "items": {"type": "string", "minLength": 1, "maxLength": 8000}},
                ],
            },
            "url": text("An address to which a request is sent.", most=2000),
            "deliver": text("The connector through which replies or results are sent.", most=100),
            "agent": text("For operators: the agent that gets the prompt.", most=64),
        },
        SCHEDULE,
    ),
    McpTool(
        "remind_me",
        "Wake yourself once with a text, at a time such as in 20 minutes or tomorrow at 9. For agents in their runs.",
        remind_me,
        {
            "when": text("One time in words, or 2026-12-24 18:00."),
            "text": text("The prompt that you get then.", most=LONGEST_PROMPT),
        },
        SCHEDULE,
        ("when", "text"),
    ),
)
