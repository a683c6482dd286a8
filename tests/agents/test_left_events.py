"""Events that runs leave for agents: nobody's room but their own sender's, and only so many, on both stores."""

from __future__ import annotations

import pytest

from tests.agents.token_house import opened
from tests.kernel.scene import virtual
from wakeful.domains.agents.run_requests import MOST_LEFT
from wakeful.domains.agents.waking import MOST_EVENTS, WakeEvent, surplus
from wakeful.kernel.actions import tokens

pytestmark = pytest.mark.promise("X18")


class ToolContext:
    """What is left for `b`, over HTTP: by an operator, and by a run of `a` or `c`."""

    def __init__(self, scene, house):
        self.scene, self.house = scene, house
        self.answers = []

    async def operator(self, **body):
        answer = await self.house.server.client.post(
            "/api/agents/b/events", json=body, headers={"Authorization": "Bearer wk_operator"}
        )
        assert answer.status_code == 202
        return answer.json()

    async def run(self, sender, *bodies):
        """One run of an agent leaves these, and ends."""

        async def deed(turn):
            self.answers = [await self.house.post(turn, "/api/agents/b/events", **body) for body in bodies]

        self.house.does = {sender: deed}
        asked = await self.house.scheduler.agents.request_wake(sender)
        await self.house.scheduler.wait_for_run(asked["run"])
        return [answer.status_code for answer in self.answers]

    async def waiting(self):
        found = await self.house.scheduler.agents.get("b")
        return [(event["source"], event["text"]) for event in found["events"]]


async def context_of(scene, agents, scheduler):
    house = await opened(agents, scheduler)
    await scheduler.transact(lambda tx, _: tokens.create(tx, "operator", "operator", "wk_operator"))
    return ToolContext(scene, house)


def texts(*numbers):
    return [{"text": str(number)} for number in numbers]


@virtual
async def test_a_run_that_leaves_many_events_displaces_its_own_and_nobody_elses(scene, agents):
    async with agents.scheduler() as scheduler:
        desk = await context_of(scene, agents, scheduler)
        await desk.operator(text="Stop the release.", source="ops")
        assert await desk.run("c", {"text": "From c."}) == [202]
        assert await desk.run("a", *texts(*range(60))) == [202] * 60
        assert desk.answers[-1].json()["waiting"] == MOST_EVENTS
        waiting = await desk.waiting()
        assert waiting[:2] == [("ops", "Stop the release."), ("c", "From c.")]
        assert waiting[2:] == [("a", str(number)) for number in range(12, 60)]
        assert await desk.run("a", {"text": "later"}) == [202]  # another run of the same agent is the same sender
        assert (await desk.waiting())[:3] == [*waiting[:2], ("a", "13")]


@virtual
async def test_a_key_replaces_only_an_event_of_the_same_sender(scene, agents):
    async with agents.scheduler() as scheduler:
        desk = await context_of(scene, agents, scheduler)
        key = {"context_key": "build"}
        await desk.operator(text="It is red.", source="ops", **key)
        await desk.run("a", {"text": "It is green.", **key})
        await desk.run("c", {"text": "It is blue.", **key}, {"text": "It is grey.", **key})
        assert await desk.waiting() == [("ops", "It is red."), ("a", "It is green."), ("c", "It is grey.")]
        await desk.operator(text="It is fixed.", source="a", **key)
        assert await desk.waiting() == [("a", "It is green."), ("c", "It is grey."), ("a", "It is fixed.")]


@virtual
async def test_a_run_is_refused_where_only_events_of_people_wait_and_people_are_not(scene, agents):
    async with agents.scheduler() as scheduler:
        desk = await context_of(scene, agents, scheduler)
        for number in range(MOST_EVENTS):
            await desk.operator(text=str(number))
        assert await desk.run("a", {"text": "Hear me."}) == [429]
        said = desk.answers[0].json()
        assert (said["code"], said["error"]) == (
            "queue_full",
            "50 events of others wait for b: leave this one again later.",
        )
        assert [text for _, text in await desk.waiting()] == [str(number) for number in range(MOST_EVENTS)]
        assert (await desk.operator(text="one more"))["waiting"] == MOST_EVENTS
        assert (await desk.waiting())[0] == (None, "1")


@virtual
async def test_one_run_leaves_only_so_many_events_with_whomever_it_leaves_them(scene, agents):
    async with agents.scheduler() as scheduler:
        desk = await context_of(scene, agents, scheduler)
        same = {"text": "again", "context_key": "k"}
        assert await desk.run("a", *[same] * (MOST_LEFT + 2)) == [*[202] * MOST_LEFT, 429, 429]
        said = desk.answers[-1].json()["error"]
        assert said.endswith(f"has left {MOST_LEFT} events already, and one run leaves no more.")
        assert await desk.run("a", same) == [202]  # the next run may


def event(number, sender=None, key=None):
    return WakeEvent(number, "b", "x", None, key, 0, sender=sender)


@pytest.mark.parametrize(
    ("waiting", "gone"),
    [
        ([event(1), event(2), event(3, "a"), event(4)], [3]),  # a person's displaces a run's
        ([event(1), event(2), event(3), event(4)], [1]),  # with no run's there, the oldest
        ([event(1), event(2), event(3), event(4, "a")], [4]),  # a run's own, however new
        ([event(1), event(2, "a"), event(3, "a"), event(4, "c")], [2]),  # of who has the most
        ([event(1), event(2, "a"), event(3, "c"), event(4, "d")], [4]),  # nobody has more than one
        ([event(1, "c"), event(2, "c"), event(3, "a"), event(4, "a")], [3]),  # its own first
        ([event(1, "a", "k"), event(2, None, "k"), event(3, "a", "k")], [1]),
        ([event(1, None, "k"), event(2, None, "k"), event(3, "c", "k")], [1]),
    ],
)
def test_who_makes_room(waiting, gone):
    assert surplus(waiting, most=3) == gone
