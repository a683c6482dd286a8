"""What a run of a schedule does and shows, over real HTTP, with a session server beside it."""

from __future__ import annotations

import pytest

from tests.api.conftest import Server
from tests.api.scheduling import MOMENT, get, minutes_between, put, run, serving, settled
from tests.cli.terminal import Terminal


@pytest.fixture(scope="module")
def server(tmp_path_factory, sessions):
    with serving(tmp_path_factory.mktemp("server"), sessions) as running:
        yield running


@pytest.mark.promise("C1", "C4")
def test_run_now_answers_at_once_and_the_state_follows(client, sessions, slug):
    put(client, slug, sessionConfig={"model": "claude-sonnet"})
    sessions.behave("done")
    answer = client.post(f"/api/schedule/{slug}/run")
    assert answer.status_code == 202
    started = answer.json()
    assert started.keys() == {"status", "runId", "sessionId"}
    assert started["sessionId"] is None
    assert answer.headers["location"] == f"/api/runs/{started['runId']}"
    assert settled(client, started["runId"])["outcome"] == "success"
    found = get(client, slug)
    assert (found["lastResult"], found["lastError"]) == ("success", None)
    assert MOMENT.fullmatch(found["lastRun"])
    assert found["sessionId"] in sessions.sessions
    assert client.post(f"/api/schedule/{slug}/run").json()["sessionId"] == found["sessionId"]


@pytest.mark.promise("C1")
def test_running_it_again_with_the_same_key_is_the_same_run(client, sessions, slug):
    put(client, slug)
    sessions.behave("done")
    first, again = (
        client.post(f"/api/schedule/{slug}/run", headers={"Idempotency-Key": slug}).json() for _ in range(2)
    )
    assert first == again
    settled(client, first["runId"])


@pytest.mark.promise("C1", "C10")
def test_a_schedule_that_runs_or_waits_cannot_be_run_beside_itself(client, sessions, slug):
    put(client, slug)
    sessions.behave("accepts")
    run_id = run(client, sessions, slug)
    settled(client, run_id, "waiting")
    found = get(client, slug)
    assert (found["status"], found["currentRun"]) == ("running", run_id)
    refused = client.post(f"/api/schedule/{slug}/run")
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")
    _, message, _ = sessions.messages[-1]
    path = message["callbackUrl"].removeprefix(str(client.base_url).rstrip("/"))
    reported = client.post(path, json={"output": {"commits": 3}}, headers={"Authorization": ""})
    assert reported.status_code == 200
    assert client.get(f"/api/runs/{run_id}").json()["output"] == {"commits": 3}
    assert get(client, slug)["lastResult"] == "success"


@pytest.mark.promise("C1", "C6")
@pytest.mark.parametrize(
    ("reply", "shown"), [("busy", ("deferred", "409", 60)), ("broken", ("error", "500: resume failed", 30))]
)
def test_what_a_session_answers_shows_in_the_schedule(client, sessions, slug, reply, shown):
    outcome, error, minutes = shown
    put(client, slug, {"type": "once", "at": "2099-01-01T00:00:00Z"})
    sessions.behave(reply)
    run_id = run(client, sessions, slug)
    ended = settled(client, run_id)
    found = get(client, slug)
    assert (found["lastResult"], error in found["lastError"]) == ("error", True), "in the words of the document"
    assert (ended["outcome"], client.get(f"/api/jobs/{slug}").json()["last_outcome"]) == (outcome, outcome), "in ours"
    tried = client.get(f"/api/jobs/{slug}/runs").json()["items"]
    assert [run["status"] for run in tried] == ["queued", "done"]
    assert found["nextRun"] == tried[0]["due_at"]
    assert tried[0]["retry_of"] == ended["id"]
    assert minutes_between(ended["finished_at"], tried[0]["due_at"]) == minutes


@pytest.mark.promise("C4")
def test_schedules_that_share_a_session_take_turns(client, slug):
    put(client, slug, sessionConfig={"sessionId": "shared"})
    assert client.get(f"/api/jobs/{slug}").json()["options"]["lanes"] == {"session:shared": 1}
    assert get(client, slug)["sessionId"] == "shared"
    assert get(client, slug)["sessionConfig"]["sessionId"] == "shared"
    client.patch(f"/api/schedule/{slug}", json={"sessionConfig": {"sessionId": None}})
    assert "lanes" not in client.get(f"/api/jobs/{slug}").json()["options"]


@pytest.mark.promise("C1")
def test_enabling_a_schedule_that_its_errors_disabled_starts_it_again(client, sessions, slug):
    put(client, slug)
    changed = client.patch(f"/api/jobs/{slug}", json={"options": {"max_errors": 1, "error_span": None}})
    assert changed.status_code == 200, changed.text
    sessions.behave("refuses")
    settled(client, run(client, sessions, slug))
    found = get(client, slug)
    assert (found["enabled"], found["status"], found["nextRun"]) == (False, "disabled", None)
    assert client.post(f"/api/schedule/{slug}/run").status_code == 409
    again = client.patch(f"/api/schedule/{slug}", json={"enabled": True}).json()
    assert (again["enabled"], again["status"]) == (True, "idle")
    assert again["nextRun"] is not None
    job = client.get(f"/api/jobs/{slug}").json()
    assert (job["enabled"], job["consecutive_errors"]) == (True, 0)
    alerts = [one for one in client.get("/api/alerts").json()["items"] if one["job_id"] == job["id"]]
    assert [one for one in alerts if one["closed_at"] is None] == []
    sessions.behave("done")
    settled(client, run(client, sessions, slug))
    assert get(client, slug)["lastResult"] == "success"


@pytest.mark.promise("C7")
@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
def test_a_schedule_that_is_changed_while_it_runs_finishes_its_run_as_it_was(client, sessions, slug, verb):
    once = {"type": "once", "at": "2099-01-01T00:00:00Z"}
    put(client, slug, once)
    sessions.behave("accepts")
    run_id = run(client, sessions, slug)
    settled(client, run_id, "waiting")
    later = {"prompt": "Anew", "schedule": {"type": "once", "at": "2098-01-01T00:00:00Z"}}
    answer = client.request(verb, f"/api/schedule/{slug}", json=later)
    assert answer.status_code == 200
    found = get(client, slug)
    assert (found["prompt"], found["status"], found["currentRun"]) == ("Anew", "running", run_id)
    assert client.get(f"/api/runs/{run_id}").json()["status"] == "waiting"
    _, message, _ = sessions.messages[-1]
    assert message["prompt"] == f"[scheduler:{slug}] Summarise"
    path = message["callbackUrl"].removeprefix(str(client.base_url).rstrip("/"))
    assert client.post(path, json={"output": 3}, headers={"Authorization": ""}).status_code == 200
    assert client.get(f"/api/runs/{run_id}").json()["outcome"] == "success"
    found = get(client, slug)
    assert (found["lastResult"], found["nextRun"]) == ("success", "2098-01-01T00:00:00Z"), (
        "the new one counts from here"
    )
    sessions.behave("done")
    settled(client, run(client, sessions, slug))
    assert sessions.messages[-1][1]["prompt"] == f"[scheduler:{slug}] Anew"


@pytest.mark.promise("C10")
def test_with_done_report_a_plain_200_is_an_acceptance(tmp_path, sessions):
    terminal = Terminal(tmp_path)
    config = f"server: {{sessions: {{url: '{sessions.url}', done: report}}}}\n"
    (tmp_path / "wakeful.yaml").write_text(config)
    try:
        server = Server(terminal)
        with server.client(server.token) as client:
            put(client, "reporting")
            sessions.behave("done")
            run_id = run(client, sessions, "reporting")
            settled(client, run_id, "waiting")
            assert get(client, "reporting")["lastResult"] is None
            _, message, _ = sessions.messages[-1]
            path = message["callbackUrl"].removeprefix(server.url)
            assert client.post(path, json={"error": "no luck"}, headers={"Authorization": ""}).status_code == 200
            assert get(client, "reporting")["lastResult"] == "error"
    finally:
        terminal.close()
