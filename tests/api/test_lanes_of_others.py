"""Lanes that a caller who is limited to its own jobs cannot enter: it would narrow or fill them for others."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.api.callers import Callers
from tests.kernel.scene import postgres_scene, scene, sqlite_scene, virtual
from wakeful import Every

__all__ = ["postgres_scene", "scene", "sqlite_scene"]

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}
PLAN = {"reporter": agent(max_concurrent=3, schedules={"tick": {"every": "6h", "prompt": "x"}})}
RESERVED = ("agent:reporter", "agent:not-there-yet", "session:talk", "account:claude", "workflow:mail")


def attempts(lanes):
    """Every request that takes lanes."""
    job, schedule = {"every": "6h", "kind": "note"}, {"prompt": "x", "schedule": CRON}
    return [
        ("POST /api/jobs", {"name": "new", **job, "lanes": lanes}),
        ("POST /api/jobs", {"name": "new", **job, "options": {"lanes": lanes}}),
        ("PUT /api/jobs/new", {**job, "lanes": lanes}),
        ("PUT /api/jobs/mine", {**job, "lanes": lanes}),
        ("PATCH /api/jobs/mine", {"lanes": lanes}),
        ("PATCH /api/jobs/mine", {"options": {"lanes": lanes}}),
        ("PUT /api/schedule/new", {**schedule, "options": {"lanes": lanes}}),
        ("PUT /api/schedule/talk", {**schedule, "options": {"lanes": lanes}}),
        ("PATCH /api/schedule/talk", {"options": {"lanes": lanes}}),
        ("PATCH /api/jobs/talk", {"lanes": lanes}),
    ]


async def fox(callers):
    """An agent's token with a job and a schedule, and an operator beside it."""
    await callers.add("fox", "agent")
    await callers.add("boss", "operator")
    for request, body in (attempts({"den": 2})[3], attempts({"den": 2})[7]):
        assert (await callers.ask("fox", request, body)).status_code == 201


@pytest.mark.promise("D6")
@virtual
async def test_an_agents_token_enters_no_lane_of_agents_sessions_accounts_and_workflows(scene):
    async with VirtualAgents(scene).scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await fox(callers)
        for lane in RESERVED:
            for request, body in attempts({lane: 1, "own": 1}):
                answer = await callers.ask("fox", request, body)
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (lane, request, answer.text)
                assert answer.json()["error"].startswith(f"fox cannot enter the lane '{lane}'"), answer.text
        assert (await scheduler.read(lambda tx: tx.lanes.loads(["agent:reporter"])))["agent:reporter"].size == 3
        for request, body in attempts({"agent:reporter": 2})[4:5]:
            assert (await callers.ask("boss", request, body)).status_code == 200, "an operator may"


@virtual
async def test_an_agents_token_enters_no_lane_in_which_jobs_of_others_are(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await fox(callers)
        await callers.add("wolf", "agent")
        await scheduler.add_job("operators", Every("6h"), lanes={"gpu": 4})
        wolfs = {"name": "wolfs", "every": "6h", "kind": "note", "lanes": {"wood": 4}}
        assert (await callers.ask("wolf", "POST /api/jobs", wolfs)).status_code == 201
        for lane in ("gpu", "wood"):
            for request, body in attempts({lane: 1}):
                answer = await callers.ask("fox", request, body)
                assert answer.status_code == 403, (lane, request, answer.text)
                assert answer.json()["error"] == f"fox cannot enter the lane '{lane}': jobs of others are in it."
        sizes = await scheduler.read(lambda tx: tx.lanes.loads(["gpu", "wood", "den"]))
        assert {lane: load.size for lane, load in sizes.items()} == {"gpu": 4, "wood": 4, "den": 2}


@virtual
async def test_an_agents_token_has_lanes_of_its_own_and_those_it_was_given(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await fox(callers)
        for request, body in attempts({"den": 1, "hole": 2}):
            answer = await callers.ask("fox", request, body)
            assert answer.status_code in (200, 201, 409), answer.text  # 409: the job was made by the request before
        await scheduler.add_job("operators", Every("6h"), lanes={"gpu": 4})
        given = {"lanes": {"den": 1, "gpu": 2}}
        assert (await callers.ask("boss", "PATCH /api/jobs/mine", given)).status_code == 200
        assert (await callers.ask("fox", "PATCH /api/jobs/mine", {"timeout": "5m"})).status_code == 200
        assert (await callers.ask("fox", "PATCH /api/jobs/mine", {"lanes": {"gpu": 2}})).status_code == 200
        narrower = await callers.ask("fox", "PATCH /api/jobs/mine", {"lanes": {"gpu": 1}})
        assert (narrower.status_code, narrower.json()["code"]) == (403, "forbidden")
