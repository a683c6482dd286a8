"""Agents in virtual time: their runner is a Python function that notes every turn and does what a test says."""

from __future__ import annotations

import contextlib

from tests.agents import virtual_agents as shared

PLACE = "tests.agents.virtual_agents:reply"
current = None  # the agents of the test that runs


async def reply(turn):
    """The runner. Wakeful may load this file under a name of its own."""
    return await shared.current.reply(turn)


class VirtualAgents:
    """What agents were asked, and what they answer: `act(turn)` gives a text, a Reply or an exception to raise."""

    def __init__(self, scene=None):
        """`scene`: where time is virtual; the same agents answer in real time, too."""
        self.scene = scene
        self.turns = []
        self.times = []
        self.act = lambda turn: "All is well."
        self.busy, self.most_busy = 0, 0
        shared.current = self

    async def reply(self, turn):
        self.turns.append(turn)
        self.times.append(None if self.scene is None else self.scene.now)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            answer = self.act(turn)
            if hasattr(answer, "__await__"):
                answer = await answer
            if isinstance(answer, Exception):
                raise answer
            return answer
        finally:
            self.busy -= 1

    @property
    def prompts(self):
        return [turn.prompt for turn in self.turns]

    def scheduler(self, **options):
        made = self.scene.scheduler("job", **options)
        _ = made.agents
        return made

    @contextlib.asynccontextmanager
    async def scheduler_with(self, plan, **options):
        """A scheduler that has these agents, by name."""
        async with self.scheduler(**options) as scheduler:
            await scheduler.agents.apply(plan)
            yield scheduler


def agent(**settings):
    return {"runner": {"python": PLACE}, **settings}
