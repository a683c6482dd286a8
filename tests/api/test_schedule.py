"""`/api/schedule` as its document has it, over real HTTP, with a session server beside it."""

from __future__ import annotations

import re
from datetime import datetime

import httpx
import pytest

from tests.agents.session_server import SessionServer
from tests.api.conftest import Server
from tests.cli.terminal import Terminal

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}
HOURLY = {"type": "interval", "intervalMinutes": 60}
STANDUP = {
    "slug": "daily-standup",
    "prompt": "Generate daily standup summary from git commits",
    "enabled": True,
    "schedule": CRON,
    "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
}
STATE = ("lastRun", "lastResult", "lastError", "sessionId", "nextRun")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
TOO_OFTEN = "Minimum interval is 60 minutes (1 hour)"


@pytest.fixture(scope="module")
def sessions():
    with SessionServer() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory, sessions):
    terminal = Terminal(tmp_path_factory.mktemp("server"))
    (terminal.folder / "wakeful.yaml").write_text(f"server: {{sessions: {{url: '{sessions.url}'}}}}\n")
    yield Server(terminal)
    terminal.close()


@pytest.fixture
def slug(request):
    """A name of this test's own."""
    return re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:80].strip("-")


def put(client, slug, timing=CRON, **more):
    return client.put(f"/api/schedule/{slug}", json={"prompt": "Summarise", "schedule": timing, **more})


def get(client, slug):
    return client.get(f"/api/schedule/{slug}").json()


def run(client, sessions, slug):
    """Run it now; the run's id once the session server has the message and the run is not running any more."""
    before = len(sessions.messages)
    answer = client.post(f"/api/schedule/{slug}/run")
    assert answer.status_code == 202, answer.text
    sessions.wait_for(lambda server: len(server.messages) > before)
    return answer.json()["runId"]


def settled(client, run_id, status="done"):
    """The run when it has got that far: waited for by asking, as any client would."""
    for _ in range(2000):
        found = client.get(f"/api/runs/{run_id}").json()
        if found["status"] == status:
            return found
    raise AssertionError(f"{run_id} is still {found['status']}")


@pytest.mark.promise("C1", "C9")
def test_a_schedule_is_written_read_listed_and_removed_in_the_documents_words(client):
    made = client.put("/api/schedule/daily-standup", json=STANDUP)
    assert made.status_code == 201
    assert made.json().keys() == {"slug", "nextRun", "created"}
    assert (made.json()["slug"], made.json()["created"]) == ("daily-standup", True)
    assert MOMENT.fullmatch(made.json()["nextRun"])
    found = get(client, "daily-standup")
    assert {key: found[key] for key in STANDUP} == STANDUP
    assert [found[key] for key in STATE] == [None, None, None, None, made.json()["nextRun"]]
    assert (found["timezone"], found["description"]) == ("UTC", "weekdays at 09:00, UTC")
    listed = client.get("/api/schedule").json()
    assert isinstance(listed, list)
    assert found in listed
    again = client.put("/api/schedule/daily-standup", json=found)  # what was read can be written back
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert again.json()["nextRun"] == made.json()["nextRun"]
    assert client.get("/api/jobs/daily-standup").json()["revision"] == 1
    gone = client.delete("/api/schedule/daily-standup")
    assert (gone.status_code, gone.content) == (204, b"")
    for answer in (
        client.get("/api/schedule/daily-standup"),
        client.patch("/api/schedule/daily-standup", json={"enabled": False}),
        client.delete("/api/schedule/daily-standup"),
        client.post("/api/schedule/daily-standup/run"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.promise("C1")
def test_enabled_pauses_and_resumes(client, slug):
    put(client, slug)
    paused = client.patch(f"/api/schedule/{slug}", json={"enabled": False})
    assert paused.status_code == 200
    assert (paused.json()["enabled"], paused.json()["nextRun"], paused.json()["status"]) == (False, None, "paused")
    put(client, slug, prompt="Another")  # says nothing about it: a person's pause stays
    assert get(client, slug)["enabled"] is False
    resumed = client.patch(f"/api/schedule/{slug}", json={"enabled": True}).json()
    assert (resumed["enabled"], resumed["status"]) == (True, "idle")
    assert MOMENT.fullmatch(resumed["nextRun"])
    assert put(client, "made-paused", enabled=False).json()["nextRun"] is None
    assert get(client, "made-paused")["enabled"] is False
    assert put(client, "made-paused", enabled=True).json()["nextRun"] is not None


@pytest.mark.promise("C1")
def test_a_patch_changes_what_it_names_and_nothing_else(client, slug):
    put(client, slug, sessionConfig={"model": "small", "persistSession": False, "timeoutMinutes": 5})
    first = get(client, slug)
    changed = client.patch(f"/api/schedule/{slug}", json={"prompt": "Anew"}).json()
    assert changed == {**first, "prompt": "Anew"}
    changed = client.patch(f"/api/schedule/{slug}", json={"sessionConfig": {"model": "large"}}).json()
    assert changed["sessionConfig"] == {"model": "large", "persistSession": False, "timeoutMinutes": 5}
    changed = client.patch(f"/api/schedule/{slug}", json={"sessionConfig": None}).json()
    assert changed["sessionConfig"] == {"model": None, "persistSession": True}
    changed = client.patch(f"/api/schedule/{slug}", json={"schedule": HOURLY}).json()
    assert changed["schedule"] == HOURLY
    assert changed["nextRun"] != first["nextRun"]
    assert client.patch(f"/api/schedule/{slug}", json={"schedule": HOURLY}).json()["nextRun"] == changed["nextRun"]


@pytest.mark.promise("C1", "C9")
@pytest.mark.parametrize(
    ("timing", "shown"),
    [
        (CRON, CRON),
        (
            {"type": "cron", "expression": " 0  9 * * * ", "timezone": "UTC"},
            {"type": "cron", "expression": "0 9 * * *"},
        ),
        ({**CRON, "timezone": "Asia/Tokyo"}, {**CRON, "timezone": "Asia/Tokyo"}),
        (HOURLY, HOURLY),
        ({"type": "interval", "intervalMinutes": 90.5}, {"type": "interval", "intervalMinutes": 90.5}),
        ({"type": "every", "intervalMinutes": 60}, {"type": "every", "intervalMinutes": 60}),
        ({"type": "once", "at": "2099-01-01T10:00:00+01:00"}, {"type": "once", "at": "2099-01-01T09:00:00Z"}),
        ({"type": "at", "at": "2099-01-01T09:00:00Z"}, {"type": "once", "at": "2099-01-01T09:00:00Z"}),
    ],
)
def test_every_type_of_schedule_is_shown_as_it_was_written(client, slug, timing, shown):
    assert put(client, slug, timing).status_code == 201
    found = get(client, slug)
    assert found["schedule"] == shown
    assert MOMENT.fullmatch(found["nextRun"])
    assert put(client, slug, found["schedule"]).json()["nextRun"] == found["nextRun"]


@pytest.mark.promise("C9")
def test_times_are_utc_and_people_see_the_schedules_own_zone(client, slug):
    put(client, slug, {"type": "cron", "expression": "0 9 * * *", "timezone": "Asia/Tokyo"})
    found = get(client, slug)
    assert found["nextRun"].endswith("T00:00:00Z")
    assert found["nextRunLocal"].endswith("T09:00:00+09:00")
    assert found["timezone"] == "Asia/Tokyo"


@pytest.mark.promise("C5")
@pytest.mark.parametrize(
    "timing",
    [
        {"type": "interval", "intervalMinutes": 59},
        {"type": "interval", "intervalMinutes": 0},
        {"type": "interval", "intervalMinutes": -5},
        {"type": "interval", "intervalMinutes": 59.999},
        {"type": "every", "intervalMinutes": 30},
        {"type": "cron", "expression": "*/30 * * * *"},
        {"type": "cron", "expression": "0,30 9 * * *"},
        {"type": "cron", "expression": "0,59 0,23 * * *"},
        {"type": "cron", "expression": "0,1 9 29 2 *"},
    ],
)
def test_more_often_than_the_minimum_is_refused_in_the_documents_words(client, slug, timing):
    answer = put(client, slug, timing)
    assert answer.status_code == 400
    assert (answer.json()["error"], answer.json()["code"]) == (TOO_OFTEN, "min_interval")
    assert client.get(f"/api/schedule/{slug}").status_code == 404
    put(client, slug)
    changed = client.patch(f"/api/schedule/{slug}", json={"schedule": timing})
    assert (changed.status_code, changed.json()["error"]) == (400, TOO_OFTEN)
    assert get(client, slug)["schedule"] == CRON


@pytest.mark.promise("C1")
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, "prompt"),
        ({"prompt": "x"}, 422, "schedule"),
        ({"prompt": "", "schedule": CRON}, 422, "prompt"),
        ({"prompt": "x" * 200_001, "schedule": CRON}, 422, "prompt"),
        ({"prompt": 3, "schedule": CRON}, 422, "prompt"),
        ({"prompt": "x", "schedule": "daily"}, 422, "schedule"),
        ({"prompt": "x", "schedule": {"type": "weekly"}}, 422, "schedule.type"),
        ({"prompt": "x", "schedule": {"type": "cron"}}, 400, 'needs "expression"'),
        ({"prompt": "x", "schedule": {"type": "interval"}}, 400, 'needs "intervalMinutes"'),
        ({"prompt": "x", "schedule": {"type": "once"}}, 400, 'needs "at"'),
        ({"prompt": "x", "schedule": {**CRON, "intervalMinutes": 60}}, 400, 'has no "intervalMinutes"'),
        ({"prompt": "x", "schedule": {"type": "cron", "expression": "99 * * * *"}}, 400, "out of range"),
        ({"prompt": "x", "schedule": {"type": "once", "at": "tomorrow"}}, 400, "at"),
        ({"prompt": "x", "schedule": {**CRON, "timezone": "Mars/Base"}}, 400, "Mars/Base"),
        ({"prompt": "x", "schedule": {"type": "interval", "intervalMinutes": 1e12}}, 422, "intervalMinutes"),
        ({"prompt": "x", "schedule": {"type": "interval", "intervalMinutes": "60m"}}, 422, "intervalMinutes"),
        ({"prompt": "x", "schedule": CRON, "promt": "y"}, 422, "did you mean 'prompt'?"),
        ({"prompt": "x", "schedule": {**CRON, "expresion": "y"}}, 422, "did you mean 'expression'?"),
        ({"prompt": "x", "schedule": CRON, "sessionConfig": {"modle": "y"}}, 422, "did you mean 'model'?"),
        ({"prompt": "x", "schedule": CRON, "sessionConfig": {"sessionId": ".."}}, 400, "session"),
        ({"prompt": "x", "schedule": CRON, "sessionConfig": {"timeoutMinutes": 0}}, 422, "timeoutMinutes"),
        ({"prompt": "x", "schedule": CRON, "enabled": "maybe"}, 422, "enabled"),
        ([], 422, ""),
        (None, 422, ""),
    ],
)
def test_a_definition_that_is_wrong_is_refused_with_what_is_wrong(client, slug, body, status, said):
    answer = client.put(f"/api/schedule/{slug}", json=body)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]
    assert client.get(f"/api/schedule/{slug}").status_code == 404


@pytest.mark.promise("C1")
@pytest.mark.parametrize("body", [{}, {"enabled": None}, {"prompt": None}, {"schedule": None}, {"enabld": True}])
def test_a_patch_that_says_nothing_is_refused(client, slug, body):
    put(client, slug)
    assert client.patch(f"/api/schedule/{slug}", json=body).status_code == 422


@pytest.mark.promise("C1")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("a%20b", 400), ("%2e%2e", 400), ("..%2f..%2fetc%2fpasswd", 404), (".hidden", 400), ("a%2fb", 404),
        ("-dash", 400), ("x" * 101, 400), ("%C3%BC", 400), ("a%00b", 400), ("job_0000000000000", 400), ("a%0Ab", 400),
    ],
)  # fmt: skip
def test_a_slug_that_is_none_makes_nothing(client, path, status):
    before = client.get("/api/schedule").json()
    assert put(client, path).status_code == status
    assert client.get(f"/api/schedule/{path}").status_code in (400, 404)
    assert client.get("/api/schedule").json() == before


@pytest.mark.promise("C1")
def test_a_body_that_names_another_schedule_is_refused(client, slug):
    answer = client.put(f"/api/schedule/{slug}", json=STANDUP | {"slug": "another"})
    assert answer.status_code == 400
    assert "'another'" in answer.json()["error"]


@pytest.mark.promise("C1")
def test_a_schedule_is_its_job_and_a_job_of_another_kind_is_none(client, slug):
    put(client, slug)
    job = client.get(f"/api/jobs/{slug}").json()
    assert (job["kind"], job["source"]) == ("session", "api")
    assert job["payload"] == {"prompt": "Summarise"}
    assert job["options"]["bounded"] is True
    client.post("/api/jobs", json={"name": "other-kind", "kind": "report", "every": "6h"})
    assert client.get("/api/schedule/other-kind").status_code == 404
    taken = put(client, "other-kind")
    assert (taken.status_code, taken.json()["code"]) == (409, "exists")


@pytest.mark.promise("C1")
def test_a_session_job_made_elsewhere_is_a_schedule_too(client, slug):
    refused = client.post("/api/jobs", json={"name": slug, "kind": "session", "every": "6h", "payload": {"odd": True}})
    assert (refused.status_code, "has no 'odd'" in refused.json()["error"]) == (400, True)
    client.post("/api/jobs", json={"name": slug, "kind": "session", "every": "6h", "payload": {"prompt": "Look"}})
    assert (get(client, slug)["prompt"], get(client, slug)["schedule"]["intervalMinutes"]) == ("Look", 360)
    assert client.patch(f"/api/schedule/{slug}", json={"enabled": False}).json()["enabled"] is False
    assert client.patch(f"/api/schedule/{slug}", json={"prompt": "Now"}).json()["prompt"] == "Now"
    client.post(f"/api/jobs/{slug}/resume")
    assert get(client, slug)["enabled"] is True


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


def minutes_between(first, second):
    return round((datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds() / 60)


@pytest.mark.promise("C1")
def test_who_may_do_what(client, client_for, slug):
    put(client, slug)
    viewer, agent, operator = client_for("viewer"), client_for("agent", "fox"), client_for("operator")
    assert viewer.get(f"/api/schedule/{slug}").status_code == 200
    for refused in (
        put(viewer, slug),
        viewer.patch(f"/api/schedule/{slug}", json={"enabled": False}),
        viewer.delete(f"/api/schedule/{slug}"),
        viewer.post(f"/api/schedule/{slug}/run"),
        put(agent, slug),
    ):
        assert refused.status_code == 403
    assert agent.get(f"/api/schedule/{slug}").status_code == 404
    assert agent.delete(f"/api/schedule/{slug}").status_code == 404
    assert put(agent, "foxes-own").status_code == 201
    assert [found["slug"] for found in agent.get("/api/schedule").json()] == ["foxes-own"]
    assert get(client, "foxes-own")["owner"] == "fox"
    assert put(operator, slug, prompt="Anew").status_code == 200
    with httpx.Client(base_url=client.base_url, trust_env=False) as nobody:
        assert nobody.get("/api/schedule").status_code == 401


@pytest.mark.promise("C4")
def test_schedules_that_share_a_session_take_turns(client, slug):
    put(client, slug, sessionConfig={"sessionId": "shared"})
    assert client.get(f"/api/jobs/{slug}").json()["options"]["lanes"] == {"session:shared": 1}
    assert get(client, slug)["sessionId"] == "shared"
    assert get(client, slug)["sessionConfig"]["sessionId"] == "shared"
    client.patch(f"/api/schedule/{slug}", json={"sessionConfig": {"sessionId": None}})
    assert "lanes" not in client.get(f"/api/jobs/{slug}").json()["options"]


@pytest.mark.promise("C1")
def test_an_interval_runs_first_when_it_has_passed(client, slug):
    before = client.get("/api/stats").json()["at"]
    put(client, slug, HOURLY)
    assert minutes_between(before, get(client, slug)["nextRun"]) == 60
    assert get(client, slug)["lastRun"] is None


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
