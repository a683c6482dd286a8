"""`/api/runs` over real HTTP: read, cancel, try again, complete; and reading never waits for runs."""

from __future__ import annotations

import asyncio
import itertools
from urllib.parse import quote

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import ended, eventually, waits
from wakeful import NewJob, Once, Scheduler
from wakeful.routing.models import Explained, NodeOut, RunDetail, RunOut, Stats
from wakeful.routing.paging import Page

_numbers = itertools.count(1)

APP = """
from wakeful import ApprovalNeeded, Scheduler, Wait
from wakeful.clock import sleep

scheduler = Scheduler("sqlite:///.wakeful/wakeful.db", node="here")

@scheduler.on_job_due("quick")
async def quick(run):
    await sleep(0.1)

@scheduler.on_job_due("elsewhere")
async def elsewhere(run):
    raise Wait(why="another system does it")

@scheduler.on_job_due("broken")
async def broken(run):
    raise RuntimeError("broken as ever")

@scheduler.on_job_due("odd")
async def odd(run):
    return {"half": "\\ud800", "nul": "\\0"}

@scheduler.on_job_due("deploy")
async def deploy(run):
    if run.approved_by is None:
        raise ApprovalNeeded("Deploy to production?")
    return {"by": run.approved_by, "note": run.approval_note}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with handlers of its own."""
    terminal = Terminal(tmp_path_factory.mktemp("server"))
    (terminal.folder / "app.py").write_text(APP)
    yield Server(terminal, "--app", "app:scheduler")
    terminal.close()


@pytest.fixture
def start(client):
    """Make a job and start it; the run's id."""

    def start(kind, **fields):
        name = f"job-{next(_numbers)}"
        made = client.post("/api/jobs", json={"name": name, "kind": kind, "every": "6h", **fields})
        assert made.status_code == 201, made.text
        return client.post(f"/api/jobs/{name}/run").json()["id"]

    return start


def test_a_run_shows_everything_and_its_trace_to_operators_only(client, client_for, start):
    run = start("broken", payload={"a": 1})
    found = RunDetail.model_validate(ended(client, run))
    assert (found.outcome, found.error, found.payload) == ("error", "broken as ever", {"a": 1})
    assert "RuntimeError" in found.trace
    assert client_for("viewer").get(f"/api/runs/{run}").json()["trace"] is None
    assert "broken as ever" in client.get(f"/api/runs/{run}/log").text
    assert Explained.model_validate(client.get(f"/api/runs/{run}/explain").json()).subject == run


def test_the_output_of_a_handler_is_shown_whatever_it_is(client, start):
    run = start("odd")
    assert ended(client, run)["output"] == {"half": "\ud800", "nul": "\0"}
    assert client.get("/api/runs", params={"kind": "odd"}).status_code == 200
    assert client.get(f"/api/runs/{run}/log").headers["content-type"].startswith("text/plain")


def test_a_commands_log_is_read_as_text_also_while_it_runs(client, server, start):
    gate = server.terminal.pipe("log-gate")
    run = start("command", payload={"argv": ["sh", "-c", f"echo begun; read line < {gate.path}; echo over"]})
    eventually(lambda: client.get(f"/api/runs/{run}/log").text, lambda text: "begun" in text)
    gate.write("go")
    ended(client, run)
    assert client.get(f"/api/runs/{run}/log").text == "begun\nover\n"
    assert client.get(f"/api/runs/{run}/log", params={"bytes": 5}).text == "over\n"


def test_runs_are_listed_newest_first_in_pages_that_stay_true(client, start):
    made = [start("quick", owner="pages") for _ in range(5)]
    for run in made:
        ended(client, run)
    seen, cursor = [], None
    while True:
        asked = {"kind": "quick", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = Page[RunOut].model_validate(client.get("/api/runs", params=asked).json())
        seen += [run.id for run in page.items]
        ended(client, start("quick"))  # newer ones do not move the older
        if page.next is None or made[0] in seen:
            break
        cursor = page.next
    assert [run for run in seen if run in made] == made[::-1]
    assert len(seen) == len(set(seen))


def test_runs_are_filtered(client, start):
    failed, well = start("broken"), start("quick")
    run, _ = ended(client, failed), ended(client, well)

    def found(**query):
        return [one["id"] for one in client.get("/api/runs", params=query).json()["items"]]

    assert failed in found(outcome="error")
    assert well not in found(outcome="error")
    assert found(job=run["job"]) == found(job=run["job_id"]) == [failed]
    assert failed in found(reason="manual", status="done", node="here", kind="broken")
    assert found(node="nowhere") == []
    assert failed in found(since=run["due_at"])
    assert found(until="2001-01-01T00:00:00Z") == found(since="2999-01-01T00:00:00+01:00") == []
    assert client.get("/api/runs", params={"job": "nothing at all"}).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"until": "99999-01-01T00:00:00Z"}, {"status": "odd"},
        {"outcome": "fine"}, {"cursor": "x"}, {"cursor": "am9iOmE"}, {"limit": 0}, {"limit": 10**40},
    ],
    ids=str,
)  # fmt: skip
def test_a_list_that_cannot_be_meant_is_refused(client, query):
    assert client.get("/api/runs", params=query).status_code in (400, 422)


@pytest.mark.parametrize("ref", ["run_0000000000000", "job_0000000000000", "x", "run_", "\ud800", "run_zzzzzzzzzzzzz"])
def test_an_unknown_run_is_not_found(client, ref):
    path = quote(ref.encode("utf-8", "surrogatepass"))
    assert client.get(f"/api/runs/{path}").status_code == 404
    for verb in ("cancel", "retry", "approve", "reject"):
        assert client.post(f"/api/runs/{path}/{verb}").status_code == 404
    assert client.post(f"/api/runs/{path}/complete", json={"outcome": "success"}).status_code == 404


def test_a_run_is_cancelled_and_tried_again(client, start):
    run = start("elsewhere")
    waits(client, run)
    cancelled = client.post(f"/api/runs/{run}/cancel")
    assert (cancelled.status_code, cancelled.json()["outcome"]) == (200, "cancelled")
    assert client.post(f"/api/runs/{run}/cancel").status_code == 409
    again = client.post(f"/api/runs/{run}/retry")
    assert (again.status_code, again.json()["retry_of"]) == (202, run)
    assert again.headers["Location"] == f"/api/runs/{again.json()['id']}"
    assert client.post(f"/api/runs/{run}/retry").status_code == 409


@pytest.mark.promise("C10")
@pytest.mark.parametrize(
    ("report", "ending"),
    [
        ({"outcome": "success", "output": {"rows": 3}}, ("success", {"rows": 3}, None)),
        ({"output": "done"}, ("success", "done", None)),
        ({"outcome": "error", "error": "no luck"}, ("error", "another system does it", "no luck")),
        ({"outcome": "error"}, ("error", "another system does it", "reported as failed, without a reason")),
    ],
    ids=str,
)
def test_work_that_goes_on_elsewhere_is_reported_to_have_ended(client, start, report, ending):
    run = start("elsewhere")
    waits(client, run)
    answer = client.post(f"/api/runs/{run}/complete", json=report)
    assert (answer.status_code, answer.json()) == (200, {"run": run, "settled": True})
    found = client.get(f"/api/runs/{run}").json()
    assert (found["outcome"], found["output"], found["error"]) == ending
    assert client.post(f"/api/runs/{run}/complete", json=report).status_code == 409


@pytest.mark.promise("C10")
@pytest.mark.parametrize("how", ["query", "bearer"])
def test_a_runs_own_token_completes_that_run_and_no_other(client, server, start, how):
    mine, other = start("elsewhere"), start("elsewhere")
    for run in (mine, other):
        waits(client, run)

    async def token():
        async with Scheduler(f"sqlite:///{server.folder}/.wakeful/wakeful.db") as scheduler:
            return await scheduler.server_side.callback_token(mine)

    secret = asyncio.run(token())
    given = {"params": {"token": secret}} if how == "query" else {"headers": {"Authorization": f"Bearer {secret}"}}
    with server.client() as outside:
        body = {"json": {"outcome": "success"}, **given}
        assert outside.post(f"/api/runs/{other}/complete", **body).status_code == 403
        assert outside.get(f"/api/runs/{mine}", **given).status_code == 401
        assert outside.post(f"/api/runs/{mine}/complete", **body).json() == {"run": mine, "settled": True}
        assert outside.post(f"/api/runs/{other}/complete", json={}).status_code == 401


def test_a_viewer_ends_nothing(client, client_for, start):
    run, viewer = start("elsewhere"), client_for("viewer")
    waits(client, run)
    for verb in ("cancel", "retry", "approve", "reject", "complete"):
        assert viewer.post(f"/api/runs/{run}/{verb}", json={}).status_code == 403, verb


def test_an_agent_sees_only_runs_of_its_own_jobs(client, client_for, start):
    run, owned = start("quick"), start("quick", owner="fox")
    fox = client_for("agent", "fox")
    assert fox.get(f"/api/runs/{run}").status_code == 404
    assert fox.post(f"/api/runs/{run}/cancel").status_code == 404
    assert fox.get(f"/api/runs/{owned}").status_code == 200
    seen = [one["id"] for one in fox.get("/api/runs", params={"limit": 100}).json()["items"]]
    assert owned in seen
    assert run not in seen
    assert fox.get("/api/runs", params={"job": client.get(f"/api/runs/{run}").json()["job"]}).status_code == 404


def test_figures_alerts_and_nodes(client, client_for, start):
    ended(client, start("quick"))
    assert client.get("/api/verdict").json()["state"] in ("needs_you", "failing", "well", "quiet")
    stats = Stats.model_validate(client.get("/api/stats").json())
    assert stats.runs_24h["success"] >= 1
    assert stats.engine.status == "running"
    services = {one.name: one for one in stats.services}
    assert services["reporting calls that do not return"].every_s is None
    assert not any(one.failing for one in services.values())
    assert stats.jobs["total"] == sum(count for status, count in stats.jobs.items() if status != "total")
    nodes = client.get("/api/nodes").json()["items"]
    assert NodeOut.model_validate(nodes[-1]).name == "here"
    assert client.post("/api/nodes/here/drain").status_code == 409, "a store in a file has one node"
    assert client.post("/api/nodes/nowhere/drain").status_code == 404
    assert client_for("operator").post("/api/nodes/here/drain").status_code == 403
    assert client.post("/api/alerts/alr_0000000000000/ack").status_code == 404
    assert client.post("/api/alerts/x/ack").status_code == 404


def test_an_alert_is_seen_and_stays_open_until_it_is_over(client, client_for, start):
    run = ended(client, start("broken", max_errors=1))
    page = client.get("/api/alerts").json()
    (alert,) = [one for one in page["items"] if one["job_id"] == run["job_id"]]
    assert (alert["kind"], alert["acked_at"]) == ("disabled", None)
    assert client_for("viewer").post(f"/api/alerts/{alert['id']}/ack").status_code == 403
    acked = client.post(f"/api/alerts/{alert['id']}/ack").json()
    assert (acked["acked_at"] is not None, acked["closed_at"]) == (True, None)
    assert client.post(f"/api/alerts/{alert['id']}/ack").json() == acked
    client.post(f"/api/jobs/{run['job']}/resume")
    assert alert["id"] not in [one["id"] for one in client.get("/api/alerts").json()["items"]]
    assert alert["id"] in [one["id"] for one in client.get("/api/alerts", params={"open": False}).json()["items"]]


# -- approvals ---------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X8")
def test_a_run_that_asks_is_approved_over_http_by_name(client, client_for, start):
    run = start("deploy")
    asked = waits(client, run)
    assert (asked["phase"], asked["approvals"][0]["question"]) == ("approval", "Deploy to production?")
    assert run in [one["id"] for one in client.get("/api/runs", params={"phase": "approval"}).json()["items"]]
    assert client.post(f"/api/runs/{run}/complete", json={"output": 1}).status_code == 409
    operator = client_for("operator", "ana")
    answer = operator.post(f"/api/runs/{run}/approve", json={"note": "after lunch"})
    assert (answer.status_code, answer.json()["reason"]) == (202, "approval")
    done = ended(client, answer.headers["Location"].rpartition("/")[2])
    assert done["output"] == {"by": "ana", "note": "after lunch"}
    for verb in ("approve", "reject"):
        assert client.post(f"/api/runs/{run}/{verb}").status_code == 409


@pytest.mark.promise("X8")
def test_a_run_that_asks_is_rejected_over_http(client, client_for, start):
    run = start("quick", approval=True, owner="fox")
    job = waits(client, run)["job"]
    for who, seen in ((client, [run]), (client_for("agent", "fox"), [run]), (client_for("agent", "owl"), [])):
        assert [one["id"] for one in who.get("/api/approvals").json()["items"]] == seen
    assert client.get(f"/api/jobs/{job}").json()["status"] == "waiting"
    assert job in [one["name"] for one in client.get("/api/jobs", params={"status": "waiting"}).json()["items"]]
    refused = client.post(f"/api/jobs/{job}/run")
    assert (refused.status_code, f"wakeful approve {run}" in refused.json()["detail"]) == (409, True)
    assert client_for("agent", "fox").post(f"/api/runs/{run}/approve").status_code == 403, "not by who asked"
    answer = client_for("operator", "ben").post(f"/api/runs/{run}/reject", json={"note": "no"})
    assert (answer.status_code, answer.json()["outcome"]) == (200, "cancelled")
    assert answer.json()["error"] == "rejected by ben: no"
    assert client.get("/api/approvals").json()["items"] == []


# -- beside a burst ----------------------------------------------------------------------------------------------------

MANY = 10_000


def test_lists_answer_while_ten_thousand_jobs_are_due_at_once(client, server):
    """What is asked is answered before the burst is over: reading does not wait for running."""

    async def add():
        async with Scheduler(f"sqlite:///{server.folder}/.wakeful/wakeful.db") as scheduler:
            due = Once("2001-01-01T00:00:00Z")
            await scheduler.add_jobs([NewJob(f"burst-{n:05}", due, kind="quick", owner="burst") for n in range(MANY)])

    asyncio.run(add())

    def over():
        return client.get("/api/jobs", params={"owner": "burst", "enabled": False, "limit": 1}).json()["items"]

    eventually(over, bool)  # some have ended
    first = client.get("/api/jobs", params={"owner": "burst", "limit": 500}).json()
    runs = client.get("/api/runs", params={"kind": "quick", "limit": 500}).json()
    left = client.get("/api/jobs", params={"owner": "burst", "enabled": True, "limit": 1}).json()["items"]
    assert (len(first["items"]), len(runs["items"]), len(left)) == (500, 500, 1)


# -- last, because the address has guessed from here on ---------------------------------------------------------------


@pytest.mark.promise("C10")
def test_a_report_with_the_right_token_is_taken_from_an_address_that_guesses(client, server, start):
    run = start("elsewhere")
    waits(client, run)

    async def token():
        async with Scheduler(f"sqlite:///{server.folder}/.wakeful/wakeful.db") as scheduler:
            return await scheduler.server_side.callback_token(run)

    def report(outside, secret):
        return outside.post(f"/api/runs/{run}/complete", params={"token": secret}, json={"outcome": "success"})

    right = asyncio.run(token())
    with server.client() as outside:
        wrong = [report(outside, f"{number:064x}").status_code for number in range(20)]
        assert (wrong[0], wrong[-1]) == (403, 429)
        assert report(outside, right).json() == {"run": run, "settled": True}
