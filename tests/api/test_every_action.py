"""Everything that people can do over HTTP, and what of it can be undone: in this process, in virtual time."""

from __future__ import annotations

import contextlib

import httpx
import pytest

from tests.kernel.scene import at, failing, postgres_scene, scene, sqlite_scene, virtual
from wakeful import Every, Interval, Workflow
from wakeful.kernel.actions import tokens
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app

__all__ = ["postgres_scene", "scene", "sqlite_scene"]

RUNNER = {"start": ["true"]}
AGENTS = {"fox": {"runner": RUNNER, "heartbeat": {"every": "1h"}, "schedules": {"look": {"every": "2h"}}}}
DAILY = {"type": "every", "interval": "1d"}
SCHEDULE = {"prompt": "Look.", "schedule": {"type": "interval", "intervalMinutes": 60}}

#: What can be undone, as requests: the operation, what it is on record as, and what shows its effect. `{alert}` is one.
UNDOABLE = [
    ("pause_jobs", "pause", "POST /api/jobs:pause", {"ids": ["a", "b"]}, "/api/jobs/a"),
    ("resume_jobs", "resume", "POST /api/jobs:resume", {"ids": ["stopped"]}, "/api/jobs/stopped"),
    ("pause_job", "pause", "POST /api/jobs/a/pause", {"note": "later"}, "/api/jobs/a"),
    ("resume_job", "resume", "POST /api/jobs/stopped/resume", None, "/api/jobs/stopped"),
    ("patch_job", "disable", "PATCH /api/jobs/a", {"enabled": False}, "/api/jobs/a"),
    ("put_job", "disable", "PUT /api/jobs/a", {"trigger": DAILY, "enabled": False}, "/api/jobs/a"),
    ("delete_job", "remove", "DELETE /api/jobs/a", None, "/api/jobs"),
    ("hold_all", "pause_all", "POST /api/hold", {"note": "later"}, "/api/hold"),
    ("ack_alert", "acknowledge", "POST /api/alerts/{alert}/ack", None, "/api/alerts"),
    ("snooze_alert", "snooze", "POST /api/alerts/{alert}/snooze", {"for": "2h"}, "/api/alerts"),
    ("snooze_job_alerts", "snooze", "POST /api/alerts:snooze", {"job": "broken", "for": "2h"}, "/api/alerts"),
    ("patch_schedule", "pause", "PATCH /api/schedule/hourly", {"enabled": False}, "/api/schedule/hourly"),
    ("put_schedule", "pause", "PUT /api/schedule/hourly", {**SCHEDULE, "enabled": False}, "/api/schedule/hourly"),
    ("delete_schedule", "remove", "DELETE /api/schedule/hourly", None, "/api/schedule"),
    ("pause_agent", "pause", "POST /api/agents/fox/pause", None, "/api/agents/fox"),
    ("pause_workflow", "pause_workflow", "POST /api/workflows/flow/pause", {"note": "later"}, "/api/workflows/flow"),
    ("drain_workflow", "drain_workflow", "POST /api/workflows/flow/drain", None, "/api/workflows/flow"),
]  # fmt: skip
#: The same, where something has to be stopped first.
STOPPED = [
    ("release_all", "resume_all", "POST /api/hold", "DELETE /api/hold", "/api/hold"),
    ("resume_agent", "resume", "POST /api/agents/fox/pause", "POST /api/agents/fox/resume", "/api/agents/fox"),
    (
        *("resume_workflow", "resume_workflow"),
        *("POST /api/workflows/flow/pause", "POST /api/workflows/flow/resume", "/api/workflows/flow"),
    ),
]
#: What cannot be undone: it starts, ends or sends something, makes something new, or is itself the way back.
FINAL = {
    *(
        "create_job",
        "run_job",
        "run_jobs",
        "preview_jobs",
        "cancel_run",
        "retry_run",
        "approve_run",
        "reject_run",
        "complete_run",
        "run_schedule",
    ),
    *("drain_node", "undrain_node", "undo_action", "wake_agent", "add_agent_event", "reset_agent_session", "add_work"),
    *(
        "release_work",
        "replay_parked",
        "retry_work",
        "move_work",
        "move_belongings",
        "clear_limit",
        "call_hook",
        "pass_on_message",
        "replay_request",
        "ping",
        "ping_what",
        "rotate_key",
    ),
    *("requeue_delivery", "requeue_deliveries", "test_connector", "run_workflow", "settle_workflow"),
    *("approve_workflow", "reject_workflow", "publish_event", "skip_input", "skip_event", "rerun_input"),
    *("replay_event", "remove_workflow"),
}
VOLATILE = {"revision", "updated_at", "pause_note", "actions", "recent", "history"}


def plain(found):
    """What is shown, without what an action and its undo leave behind on purpose: that they were."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items() if key not in VOLATILE}
    return [plain(one) for one in found] if isinstance(found, list) else found


class Desk:
    """A server without a socket, and its admin."""

    def __init__(self, scene, client):
        self.scene, self.client = scene, client
        self.alert = None

    async def ask(self, request, body=None):
        method, _, path = request.partition(" ")
        answer = await self.client.request(method, path.replace("{alert}", self.alert or ""), json=body)
        assert answer.is_success, answer.text
        return answer

    async def look(self, path):
        return plain((await self.ask(f"GET {path}")).json())

    async def undone(self, what, request, body, path):
        """Do it, see it on record with who and from where, undo it: all is as before."""
        before = await self.look(path)
        action = (await self.ask(request, body)).headers["Wakeful-Action"]
        assert await self.look(path) != before, request
        (head, *_) = (await self.ask("GET /api/actions")).json()["items"]
        assert (head["id"], head["what"], head["actor"], head["via"]) == (action, what, "boss", "api")
        assert head["undo_until"] is not None
        await self.scene.sleep(1)
        async with self.scene.scheduler() as other:  # as after a restart, or on another node
            done = await other.undo(action)
        assert (done.what, done.kept) == (what, {})
        assert (await self.client.post(f"/api/actions/{action}/undo")).status_code == 409, "it is undone"
        assert await self.look(path) == before, request


def flow():
    made = Workflow("flow")

    @made.producer(Interval("1h"))
    async def poll(ctx, state):
        return {}

    return made


async def opened(scheduler, scene):
    """Jobs, a schedule, an agent, a workflow, and an alert about a job that fails."""
    scene.act = failing()
    scheduler.add_workflow(flow())
    for name in ("a", "b", "stopped"):
        await scheduler.add_job(name, Every("1d"))
    await scheduler.add_job("broken", Every("1h"), max_errors=1)
    await scheduler.transact(lambda tx, _: tokens.create(tx, "boss", "admin", "wk_boss"))
    await scheduler.pause_job("stopped", "for good")
    await scheduler.start()
    await scene.until(at(1, 1))
    await scheduler.stop()
    await scheduler.agents.apply(AGENTS)
    transport = httpx.ASGITransport(app=create_app(scheduler, ServerSettings()))
    headers = {"Authorization": "Bearer wk_boss"}
    desk = Desk(scene, httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers))
    await desk.ask("PUT /api/schedule/hourly", SCHEDULE)
    desk.alert = next(alert.id for alert in await scheduler.list_alerts() if alert.job == "broken")
    return desk


@pytest.mark.promise("X27")
@virtual
async def test_every_action_over_http_is_on_record_and_undone_by_its_id_on_any_node(scene):
    async with scene.scheduler() as scheduler:
        desk = await opened(scheduler, scene)
        async with contextlib.aclosing(desk.client):
            for _, what, request, body, path in UNDOABLE:
                await desk.undone(what, request, body, path)
            for _, what, stop, request, path in STOPPED:
                await desk.ask(stop, {} if stop.endswith("hold") else None)
                await desk.undone(what, request, None, path)


@pytest.mark.promise("X27")
def test_every_operation_is_known_to_be_undoable_or_final(tmp_path):
    app = create_app(scheduler=_closed(tmp_path), settings=ServerSettings())
    changing = ("post", "put", "patch", "delete")
    found = {
        how["operationId"] for path in app.openapi()["paths"].values() for key, how in path.items() if key in changing
    }
    assert found == {name for name, *_ in (*UNDOABLE, *STOPPED)} | FINAL


def _closed(folder):
    from wakeful import Scheduler

    return Scheduler(f"sqlite:///{folder}/wakeful.db")
