"""Source lines are for operators, in a workflow as in a run: viewers see what went wrong, not the code."""

from __future__ import annotations

import json

import pytest

from tests.api.callers import Callers
from tests.kernel.scene import virtual
from wakeful import Every, Interval, Workflow

LINE = "planted_source_line"
LOOKS = [
    "/api/workflows", "/api/workflows/flow", "/api/workflows/flow/runs", "/api/workflows/flow/inputs",
    "/api/runs", "/api/runs/{run}", "/api/runs/{run}/explain", "/api/runs/{other}", "/api/runs/{other}/explain",
    "/api/jobs", "/api/jobs/flow.poll", "/api/jobs/flow.poll/explain", "/api/jobs/plain/explain", "/api/alerts",
    "/api/actions", "/api/stats", "/api/deliveries", "/api/ledger",
]  # fmt: skip


def flow():
    made = Workflow("flow")

    @made.producer(Interval("1h"))
    async def poll(ctx, state):
        planted_source_line = {}
        return planted_source_line["missing"]

    return made


async def fails(run):
    planted_source_line = {}
    return planted_source_line["missing"]


@pytest.mark.promise("K16")
@virtual
async def test_viewers_see_no_source_lines_of_workflows_or_runs_and_operators_do(scene):
    scene.act = fails
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        await callers.add("looker", "viewer")
        await callers.add("boss", "operator")
        scheduler.add_workflow(flow())
        await scheduler.add_job("plain", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.sleep(3700)
        run, other = [(await scheduler.get_run_log(name))[-1].id for name in ("flow.poll", "plain")]
        for who, sees in (("looker", False), ("boss", True)):
            issue = (await callers.ask(who, "GET /api/workflows/flow")).json()["issue"]
            assert (issue["kind"], "KeyError" in issue["message"]) == ("logic", True)
            assert (LINE in (issue["trace"] or "")) is sees
            paused = (await callers.ask("boss", "POST /api/workflows/flow/pause")).json()["issue"]
            assert LINE in paused["trace"]
            for number in (run, other):
                trace = (await callers.ask(who, f"GET /api/runs/{number}")).json()["trace"]
                assert (trace is not None and LINE in trace) is sees, (who, number == run, trace)
        for path in LOOKS:
            answer = await callers.ask("looker", f"GET {path.format(run=run, other=other)}")
            assert answer.status_code == 200, (path, answer.text)
            assert LINE not in answer.text, path
        events = await scheduler.server_side.read_events(0, None, 1000)
        assert LINE not in json.dumps(events), "the stream of events is for viewers, too"
