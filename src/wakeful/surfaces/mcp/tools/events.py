"""`publish_event` and `ask_approval`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.agents import run_requests
from wakeful.domains.agents.route_models import EventIn
from wakeful.domains.agents.senders.tables import Senders
from wakeful.errors import InvalidJob, NotAllowed
from wakeful.surfaces.mcp.arguments import Schema, milliseconds, text
from wakeful.surfaces.mcp.rendering import TEXT, answers
from wakeful.surfaces.mcp.tool import McpTool

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext

LONGEST_QUESTION = 2_000
LONGEST_EVENT = 20_000
OF_AGENT, OF_WORKFLOW = ("agent", "text"), ("workflow", "topic", "message_id")


async def publish_event(ctx: ToolContext, given: Given) -> Answer:
    """An event for an agent, which is woken; or one on a topic of a workflow."""
    if not ctx.is_limited:
        ctx.needs_editor()
    elif ctx.agent is None:
        raise NotAllowed("publish_event is for operators and for agents in their runs.")
    form = OF_WORKFLOW if "workflow" in given else OF_AGENT
    missing = next((name for name in form if name not in given), None)
    if missing is not None:
        raise InvalidJob(f"{missing} is missing: give agent and text, or workflow, topic, message_id and payload.")
    return await (_to_workflow(ctx, given) if form is OF_WORKFLOW else _to_agent(ctx, given))


async def _to_agent(ctx: ToolContext, given: Given) -> Answer:
    agent, key = given["agent"], given.get("context_key")
    if ctx.caller.run is not None:
        event = EventIn.model_construct(text=given["text"], source=None, context_key=key, wake=True)
        done = await run_requests.leave_event(ctx.scheduler, ctx.caller.run, agent, event)
    else:
        source = f"mcp/{ctx.caller.name}"
        done = await ctx.scheduler.agents.add_event(agent, given["text"], source=source, context_key=key, wake=True)
    return {"event": done["id"], "note": f"{agent} is woken with it."}


async def _to_workflow(ctx: ToolContext, given: Given) -> Answer:
    if ctx.is_limited:
        raise NotAllowed("Only operators publish events of workflows: leave the event with an agent instead.")
    workflows = ctx.scheduler.workflows
    event = await workflows.publish(
        given["workflow"], given["topic"], given.get("payload"), message_id=given["message_id"]
    )
    return {"event": str(event["id"])}


async def ask_approval(ctx: ToolContext, given: Given) -> Answer:
    """A question of a run: the run waits for the answer after its call has ended."""
    run_id = ctx.caller.run
    if run_id is None or ctx.agent is None:
        raise NotAllowed("ask_approval is for agents in their runs.")
    length = milliseconds(given, "timeout", "2d")

    def work(tx: Transaction, _: Context) -> Answer:
        until = None if length is None else tx.now + length
        tx.of(Senders).ask(run_id, given["question"], until)
        return {
            "status": "asked_when_you_end",
            "run": ids.run_text(run_id),
            "note": "End your turn now, without doing what you asked about. The run waits for a person. Approved, you "
            "are called again in this session with the approval; rejected, the run is cancelled.",
        }

    return await ctx.scheduler.transact(work)


_PAYLOAD: Schema = {"description": "With `workflow`: what the event says, any JSON value."}
TOOLS = (
    McpTool(
        "publish_event",
        "Leave an agent an event and wake it (agent, text); or publish an event on a topic of a workflow.",
        publish_event,
        {
            "agent": text("The agent that gets the event.", most=64),
            "text": text("The text of the event.", most=LONGEST_EVENT),
            "context_key": text("Replaces an earlier event of yours with this key that still waits.", most=200),
            "workflow": text("The workflow.", most=200),
            "topic": text("Its topic.", most=200),
            "message_id": text("By which the event is published once.", most=200),
            "payload": _PAYLOAD,
        },
        answers({"event": TEXT}, note=TEXT),
    ),
    McpTool(
        "ask_approval",
        "Ask a person before you continue. For agents in their runs: end your turn after this call.",
        ask_approval,
        {
            "question": text("What the person is to approve.", most=LONGEST_QUESTION),
            "timeout": text("How long an answer counts, such as 2d; the run is cancelled after that.", most=40),
        },
        answers({"status": TEXT, "run": TEXT, "note": TEXT}),
        ("question",),
        repeatable=True,
    ),
)
