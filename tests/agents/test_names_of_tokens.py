"""Tokens and agents have names of their own kind: a token that is called like an agent has no part in it."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import agent
from tests.api.callers import Callers
from tests.kernel.scene import virtual
from wakeful import Every, InvalidJob, ids
from wakeful.kernel.actions.run_tokens import run_token

PLAN = {"reporter": agent(heartbeat={"enabled": True}, schedules={"tick": {"every": "6h", "prompt": "x"}})}
JOBS = ["nightly", "reporter.heartbeat", "reporter.tick", "reporter.wake"]
NIGHTLY = {"prompt": "Look", "schedule": {"type": "cron", "expression": "0 2 * * *"}, "agent": "reporter"}


async def named_alike(callers):
    """An operator and a token that is called like the agent, which also has a schedule beside its file."""
    await callers.add("boss", "operator")
    await callers.add("reporter", "agent")
    assert (await callers.ask("boss", "PUT /api/schedule/nightly", NIGHTLY)).status_code == 201


@pytest.mark.promise("X15")
@virtual
async def test_tokens_come_and_go_under_an_agents_name_and_the_agent_stays_whole(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await named_alike(callers)
        before = (await callers.ask("boss", "GET /api/agents/reporter")).json()
        for _ in range(2):
            await scheduler.revoke_token("reporter")
            await callers.add("reporter", "agent")
        assert (await callers.ask("boss", "GET /api/agents/reporter")).json() == before
        assert [job.owner for job in await scheduler.list_jobs()] == ["reporter"] * 4
        paused = await callers.ask("boss", "POST /api/agents/reporter/pause")
        assert (paused.status_code, paused.json()["paused"]) == (200, True)
        assert [job.name for job in await scheduler.list_jobs(status="paused")] == JOBS


@pytest.mark.promise("X15")
@virtual
async def test_an_operator_removes_the_schedule_that_it_gave_an_agent(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await named_alike(callers)
        assert (await callers.ask("boss", "DELETE /api/schedule/nightly")).status_code in (200, 204)
        assert "nightly" not in [job.name for job in await scheduler.list_jobs()]
        assert (await callers.ask("boss", "DELETE /api/jobs/reporter.tick")).status_code == 403


@pytest.mark.promise("X15")
@virtual
async def test_a_token_that_is_called_like_an_agent_sees_and_does_nothing_of_it(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await named_alike(callers)
        run = await scheduler.run_job("reporter.tick")
        await scene.sleep(7 * 3600)
        for request in (
            "GET /api/jobs/reporter.tick",
            "POST /api/jobs/reporter.tick/run",
            "POST /api/jobs/reporter.tick/pause",
            "POST /api/jobs/reporter.wake/resume",
            "DELETE /api/jobs/reporter.tick",
            "GET /api/jobs/reporter.tick/explain",
            "GET /api/jobs/reporter.tick/upcoming",
            "GET /api/jobs/reporter.tick/runs",
            "GET /api/ledger?job=reporter.tick",
            "GET /api/schedule/nightly",
            "POST /api/schedule/nightly/run",
            "DELETE /api/schedule/nightly",
            f"GET /api/runs/{run}",
            f"GET /api/runs/{run}/log",
            f"POST /api/runs/{run}/cancel",
            f"POST /api/runs/{run}/retry",
        ):
            assert (await callers.ask("reporter", request)).status_code == 404, request
        assert (await callers.ask("reporter", "PUT /api/schedule/nightly", NIGHTLY)).status_code == 403
        assert (await callers.ask("reporter", "POST /api/jobs:pause", {"all": True})).json()["count"] == 0
        for listed in ("/api/jobs", "/api/jobs?kind=agent", "/api/runs", "/api/runs?kind=agent"):
            assert (await callers.ask("reporter", f"GET {listed}")).json()["items"] == [], listed
        assert (await callers.ask("reporter", "GET /api/schedule")).json() == []
        assert (await callers.ask("reporter", "GET /api/ledger")).json()["jobs"] == []
        assert "reporter.tick" in (await callers.ask("boss", "GET /api/ledger")).text
        mine = await callers.ask("reporter", "POST /api/jobs", {"name": "mine", "every": "6h", "kind": "note"})
        assert (mine.status_code, mine.json()["owner"]) == (201, "reporter")
        assert [job.name for job in await scheduler.list_jobs(status="paused")] == []


@virtual
async def test_what_the_token_owns_does_not_count_as_the_agents_and_the_other_way_round(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler, jobs_per_agent=2) as callers:
        await named_alike(callers)
        for name in ("one", "two"):
            made = await callers.ask("reporter", "POST /api/jobs", {"name": name, "every": "6h", "kind": "note"})
            assert made.status_code == 201, made.text
        seen, done = {}, asyncio.Event()

        async def look(turn):
            number = ids.decode(turn.run.id)[1]
            callers.secrets["run"] = await scheduler.transact(lambda tx, _: run_token(tx, number))
            for request in ("GET /api/jobs", "GET /api/jobs/reporter.tick", "GET /api/jobs/one"):
                seen[request] = await callers.ask("run", request)
            done.set()
            return "ok"

        agents.act = look
        await scheduler.start()
        await scheduler.run_job("reporter.tick")
        await done.wait()
        assert [job["name"] for job in seen["GET /api/jobs"].json()["items"]] == JOBS
        assert seen["GET /api/jobs/reporter.tick"].status_code == 200
        assert seen["GET /api/jobs/one"].status_code == 404


@pytest.mark.promise("X7")
@virtual
async def test_an_agent_is_paused_whoever_its_jobs_are_said_to_belong_to(scene, agents):
    """As in a store whose jobs were given to nobody before."""
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await named_alike(callers)
        known = await scheduler.list_jobs()
        for owner in (None, "somebody"):
            numbers = [ids.decode(job.id)[1] for job in known]
            await scheduler.transact(
                lambda tx, _, owner=owner, numbers=numbers: [
                    tx.jobs.define(job._replace(owner=owner)) for job in tx.jobs.definitions(numbers).values()
                ]
            )
            assert (await callers.ask("boss", "GET /api/agents")).json()["items"][0]["name"] == "reporter"
            assert len((await callers.ask("boss", "GET /api/agents/reporter")).json()["schedules"]) == 2
            assert (await callers.ask("boss", "POST /api/agents/reporter/pause")).status_code == 200
            assert [job.name for job in await scheduler.list_jobs(status="paused")] == JOBS
            assert (await callers.ask("boss", "POST /api/agents/reporter/resume")).status_code == 200


@virtual
async def test_jobs_of_an_agent_are_given_to_nobody_else(scene, agents):
    async with agents.scheduler_with(PLAN) as scheduler, Callers(scheduler) as callers:
        await callers.add("root", "admin")
        for owner in (None, "fox"):
            answer = await callers.ask("root", "PATCH /api/jobs/reporter.tick", {"owner": owner})
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_job")
            assert (
                answer.json()["error"] == "reporter.tick is a job of the agent reporter, and stays so: leave owner out."
            )
            with pytest.raises(InvalidJob, match="stays so"):
                await scheduler.update_job("reporter.tick", owner=owner)
        assert (await scheduler.get_job("reporter.tick")).owner == "reporter"
        await scheduler.add_job("plain", Every("1h"), owner="reporter")
        assert "plain" not in [one["job"] for one in (await scheduler.agents.get("reporter"))["schedules"]]
