"""What an operator stopped, an agent's token does not start again, whichever way it tries."""

from __future__ import annotations

import pytest

from tests.api.callers import Callers
from tests.kernel.scene import failing, postgres_scene, scene, sqlite_scene, virtual

__all__ = ["postgres_scene", "scene", "sqlite_scene"]

JOB = {"every": "6h", "kind": "job"}
CRON = {"prompt": "x", "schedule": {"type": "cron", "expression": "0 9 * * 1-5"}}
STOPS = [
    ("POST /api/jobs/{}/pause", None),
    ("POST /api/jobs:pause", {"all": True}),
    ("PATCH /api/jobs/{}", {"enabled": False}),
    ("PUT /api/jobs/{}", {**JOB, "enabled": False, "owner": "fox"}),
]
RESUMES = [
    ("POST /api/jobs/{}/resume", None),
    ("POST /api/jobs:resume", {"ids": ["{}"]}),
    ("PATCH /api/jobs/{}", {"enabled": True}),
    ("PUT /api/jobs/{}", {**JOB, "enabled": True}),
]
OTHERWISE = [
    ("POST /api/jobs/{}/run", None),
    ("DELETE /api/jobs/{}", None),
    ("PATCH /api/jobs/{}", {"name": "renamed"}),
]


async def people(callers):
    await callers.add("fox", "agent")
    await callers.add("boss", "operator")


async def ask(callers, who, request, name):
    path, body = request
    return await callers.ask(who, path.format(name), {"ids": [name]} if body == {"ids": ["{}"]} else body)


async def stands(callers, name):
    found = (await callers.ask("boss", f"GET /api/jobs/{name}")).json()
    return (found["status"], found["enabled"])


@pytest.mark.parametrize("stop", STOPS, ids=lambda one: one[0])
@virtual
async def test_an_agents_token_does_not_resume_what_an_operator_stopped(scene, stop):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await people(callers)
        assert (await callers.ask("fox", "PUT /api/jobs/mine", JOB)).status_code == 201
        for before in (None, "POST /api/jobs/mine/pause"):  # also one that its owner had paused already
            if before is not None:
                assert (await callers.ask("fox", before)).status_code == 200
            assert (await ask(callers, "boss", stop, "mine")).status_code == 200
            stood = await stands(callers, "mine")
            for request in (*RESUMES, *OTHERWISE):
                answer = await ask(callers, "fox", request, "mine")
                assert answer.status_code in (403, 409), (request, answer.text)
                assert (request[0] in [one[0] for one in OTHERWISE]) or answer.status_code == 403, request
            assert (await callers.ask("fox", "POST /api/jobs:resume", {"all": True})).json()["count"] == 0
            assert await stands(callers, "mine") == stood
            assert (await ask(callers, "boss", RESUMES[0], "mine")).status_code == 200
            assert await stands(callers, "mine") == ("idle", True)


@virtual
async def test_an_agents_token_does_not_resume_what_was_stopped_before_it_got_it(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await people(callers)
        assert (await callers.ask("boss", "PUT /api/jobs/given", {**JOB, "enabled": False})).status_code == 201
        assert (await callers.ask("boss", "PATCH /api/jobs/given", {"owner": "fox"})).status_code == 200
        for request in RESUMES:
            assert (await ask(callers, "fox", request, "given")).status_code == 403, request
        assert await stands(callers, "given") == ("disabled", False)


@virtual
async def test_an_agents_token_does_not_undo_what_an_operator_did(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await people(callers)
        for name in ("paused", "both", "removed"):
            await callers.ask("fox", f"PUT /api/jobs/{name}", JOB)
        mine = (await callers.ask("fox", "POST /api/jobs/both/pause")).headers["Wakeful-Action"]
        done = [
            await callers.ask("boss", request)
            for request in ("POST /api/jobs/paused/pause", "DELETE /api/jobs/removed")
        ]
        await callers.ask("boss", "POST /api/jobs/both/pause")
        for action in (mine, *(answer.headers["Wakeful-Action"] for answer in done)):
            assert (await callers.ask("fox", f"POST /api/actions/{action}/undo")).status_code == 409
        assert [await stands(callers, name) for name in ("paused", "both")] == [("paused", True)] * 2
        assert (await callers.ask("boss", "GET /api/jobs/removed")).status_code == 404


@virtual
async def test_an_agents_token_resumes_what_it_or_errors_stopped(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await people(callers)
        assert (await callers.ask("fox", "PUT /api/jobs/mine", {**JOB, "enabled": False})).status_code == 201
        assert (await ask(callers, "fox", RESUMES[0], "mine")).status_code == 200
        for stop in STOPS:
            for resume in RESUMES:
                assert (await ask(callers, "fox", stop, "mine")).status_code == 200, stop
                assert (await ask(callers, "fox", resume, "mine")).status_code == 200, (stop, resume)
                assert await stands(callers, "mine") == ("idle", True), (stop, resume)
        paused = (await callers.ask("fox", "POST /api/jobs/mine/pause")).headers["Wakeful-Action"]
        resumed = (await callers.ask("fox", "POST /api/jobs/mine/resume")).headers["Wakeful-Action"]
        assert (await callers.ask("fox", f"POST /api/actions/{paused}/undo")).status_code == 409, "it was resumed since"
        assert (await callers.ask("fox", f"POST /api/actions/{resumed}/undo")).status_code == 200
        assert (await ask(callers, "fox", RESUMES[0], "mine")).status_code == 200, "it has paused it again itself"
        scene.act = failing()
        await callers.ask("fox", "PATCH /api/jobs/mine", {"max_errors": 1})
        await scheduler.start()
        await scene.sleep(7 * 3600)
        assert await stands(callers, "mine") == ("disabled", False)
        assert (await ask(callers, "fox", RESUMES[0], "mine")).status_code == 200


@virtual
async def test_an_agents_token_does_not_resume_a_schedule_that_an_operator_paused(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await people(callers)
        assert (await callers.ask("fox", "PUT /api/schedule/talk", {**CRON, "enabled": False})).status_code == 201
        assert (await callers.ask("fox", "PATCH /api/schedule/talk", {"enabled": True})).status_code == 200
        for stop in ("PATCH /api/schedule/talk", "POST /api/jobs/talk/pause"):
            body = {"enabled": False} if stop.startswith("PATCH") else None
            assert (await callers.ask("boss", stop, body)).status_code == 200
            for request, given in (
                ("PATCH /api/schedule/talk", {"enabled": True}),
                ("PUT /api/schedule/talk", {**CRON, "enabled": True}),
                ("POST /api/schedule/talk/run", None),
                ("DELETE /api/schedule/talk", None),
            ):
                answer = await callers.ask("fox", request, given)
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (request, answer.text)
                assert "paused by an operator" in answer.json()["error"]
            assert (await callers.ask("boss", "PATCH /api/schedule/talk", {"enabled": True})).status_code == 200
