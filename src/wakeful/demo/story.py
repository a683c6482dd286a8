"""The first minute: what happens at which second after the first page was opened, and what the strip says of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from wakeful.clock import SystemClock, sleep
from wakeful.demo.fleet import BUDGET, DEPLOY, SORT, agents
from wakeful.demo.place import DemoFolder, State
from wakeful.demo.scripts import WHOLE_YEAR
from wakeful.errors import SchedulerError
from wakeful.scheduler import Scheduler
from wakeful.triggers.moments import from_ms

log = logging.getLogger("wakeful.demo")
LOOK_S, LOOKS = 0.25, 60
APART = timedelta(seconds=12)  # a slot that is closer to the start before is passed over for that


class StoryStep(NamedTuple):
    """Something that happens, and what is said of it."""

    at_s: float
    text: str
    link: str | None
    do: Callable[[Scheduler], Awaitable[None]] | None


async def beat(scheduler: Scheduler) -> None:
    await scheduler.agents.request_wake("watcher", "interval")


async def digest(scheduler: Scheduler) -> None:
    await scheduler.run_job("reporter.digest")


async def ask(scheduler: Scheduler) -> None:
    await scheduler.run_job(DEPLOY)


async def spend(scheduler: Scheduler) -> None:
    """Let triage use up what is left of its budget."""
    if not await _is_spent(scheduler):
        await scheduler.agents.ask("triage", WHOLE_YEAR)


async def sort(scheduler: Scheduler) -> None:
    """A slot of triage comes due at once: it has no budget left for it."""
    for _ in range(LOOKS):
        if await _is_spent(scheduler):
            break
        await sleep(LOOK_S)
    at = from_ms(scheduler.clock.now()) + timedelta(seconds=1)
    last = await scheduler.get_run_log(SORT, limit=1)
    if last and last[0].started_at is not None:
        at = max(at, last[0].started_at + APART)
    await scheduler.agents.apply(agents(sort_from=at.replace(microsecond=0)))


async def _is_spent(scheduler: Scheduler) -> bool:
    agent = await scheduler.agents.get("triage")
    return bool(agent["spent_today"]["cost"] >= BUDGET)


_NOTHING = "watcher looks around. When all is well it says nothing: a run on its line, and no message."
_DIGEST = "reporter sent its digest. The ticks say that the phone has it."
_ASKS = "deploy-site asks before it continues. It waits under Needs you, and holds nothing."
_BUDGET = "triage met its budget: its slot was passed over, and the reason is on record."
_START = "This week was run by the real engine when you started the demo. Watch what happens next."
STEPS = (
    StoryStep(0, _START, None, None),
    StoryStep(8, _NOTHING, "/agents/watcher", beat),
    StoryStep(15, _DIGEST, "/agents/reporter", digest),
    StoryStep(30, _ASKS, f"/jobs/{DEPLOY}", ask),
    StoryStep(38, _ASKS, f"/jobs/{DEPLOY}", spend),
    StoryStep(45, _BUDGET, f"/jobs/{SORT}", sort),
    StoryStep(60, "Now try to break it.", None, None),
)


def latest(state: State) -> StoryStep:
    """The step that the strip shows."""
    return STEPS[max(0, min(state.steps, len(STEPS)) - 1)]


def is_over(state: State) -> bool:
    return state.steps >= len(STEPS)


async def play(scheduler: Scheduler, place: DemoFolder) -> None:
    """Take the steps as their time comes, each once; where a kill ended it, the next server continues."""
    clock = SystemClock()
    while not is_over(state := place.read()):
        step = STEPS[state.steps]
        if state.visited_at is None or clock.now() - state.visited_at < step.at_s * 1000:
            await sleep(LOOK_S)
            continue
        place.change(steps=state.steps + 1)
        if step.do is None:
            continue
        try:
            await step.do(scheduler)
        except SchedulerError as error:  # a visitor was quicker, and has started or paused it
            log.info("the story continues without a step: %s", error)
