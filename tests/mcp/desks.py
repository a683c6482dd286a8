"""Callers of tools without a connection: agents in their runs, and tokens."""

from __future__ import annotations

from wakeful import ids
from wakeful.routing.auth import Caller
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.mcp.calling import call
from wakeful.surfaces.mcp.tool_context import context_of


class Tools:
    """The tools of a scheduler; `does[AGENT]` is called with each turn and what it may call tools with."""

    def __init__(self, scheduler, agents=None, **settings):
        self.scheduler = scheduler
        self.settings = ServerSettings(**settings)
        self.does, self.said = {}, []
        if agents is not None:
            agents.act = self._act

    async def _act(self, turn):
        deed = self.does.get(turn.agent)
        said = await deed(self.of(turn)) if deed is not None else None
        return "ok" if said is None else said

    def of(self, turn):
        return By(self, Caller(turn.agent, "agent", ids.decode(turn.run.id)[1], "agent"))

    def by(self, name, role="operator"):
        return By(self, Caller(name, role))


class By:
    """A caller: `await by("schedule", when="every day at 09:00", prompt="Look")` gives what the tool answered."""

    def __init__(self, tools, caller):
        self._tools, self.caller = tools, caller

    async def __call__(self, tool, /, **arguments):
        return await self.raw(tool, arguments)

    async def raw(self, tool, arguments):
        desk = await context_of(self._tools.scheduler, self._tools.settings, self.caller)
        done = await call(desk, tool, arguments)
        self._tools.said.append((self.caller.name, tool, done))
        return done

    async def ok(self, tool, /, **arguments):
        done = await self(tool, **arguments)
        assert not done.is_refused, done.text
        return done.data

    async def refused(self, tool, /, **arguments):
        done = await self(tool, **arguments)
        assert done.is_refused, done.text
        assert done.text.endswith((".", "?"))
        assert "\n" not in done.text
        return done.text


async def in_a_run(scene, tools, agent, deed):
    """What `deed` finds when it is called in a run of the agent."""
    found = []

    async def once(by):
        found.append(await deed(by))

    tools.does[agent] = once
    await tools.scheduler.agents.request_wake(agent)
    await scene.sleep(5)
    tools.does.pop(agent)
    assert found, "the agent was not woken"
    return found[0]


async def questions(scheduler):
    """The questions that wait for a person, by job: run and text."""
    from wakeful.surfaces.cli.approval import questions as waiting

    return {run.job: (run.id, run.approvals[-1]["question"]) for run in await waiting(scheduler, 100)}
