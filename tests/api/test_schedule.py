"""`/api/schedule` as its document has it, over real HTTP, with a session server beside it."""

from __future__ import annotations

import httpx
import pytest

from tests.api.scheduling import CRON, HOURLY, MOMENT, get, minutes_between, put, serving

STANDUP = {
    "slug": "daily-standup",
    "prompt": "Generate daily standup summary from git commits",
    "enabled": True,
    "schedule": CRON,
    "sessionConfig": {"model": "claude-sonnet", "persistSession": True},
}
STATE = ("lastRun", "lastResult", "lastError", "sessionId", "nextRun")
MODIFIED = {
    "until": "2099-01-01T09:00:00Z", "maxRuns": 3, "except": ["2098-12-24"], "jitter": 5.0, "stagger": "10m",
    "activeHours": {"start": "00:00", "end": "24:00", "timezone": "UTC"},
}  # fmt: skip
TOO_OFTEN = "Minimum interval is 60 minutes (1 hour)"


@pytest.fixture(scope="module")
def server(tmp_path_factory, sessions):
    with serving(tmp_path_factory.mktemp("server"), sessions) as running:
        yield running


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


@pytest.mark.promise("X27")
def test_a_schedule_that_was_switched_off_is_on_record_and_switched_back(client, slug):
    put(client, slug)
    client.patch(f"/api/schedule/{slug}", json={"enabled": False})
    (last,) = client.get("/api/actions?limit=1").json()["items"]
    assert (last["what"], last["name"]) == ("pause", slug)
    assert client.post(f"/api/actions/{last['id']}/undo").json()["restored"] == [slug]
    assert get(client, slug)["enabled"] is True


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
        ({**HOURLY, **MODIFIED}, {**HOURLY, **MODIFIED}),
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


@pytest.mark.promise("C1")
def test_options_and_a_job_to_start_after_are_taken_shown_and_written_back(client, slug):
    after = {"type": "after", "job": "backup", "on": "failure"}
    assert put(client, slug, after, options={"catchUp": "skip", "timeout": "10m"}).status_code == 201
    found = get(client, slug)
    assert (found["schedule"], found["nextRun"]) == (after, None)
    assert {"catchUp": "skip", "timeout": "10m"}.items() <= found["options"].items()
    assert client.put(f"/api/schedule/{slug}", json=found).status_code == 200
    assert get(client, slug) == found
    changed = client.patch(f"/api/schedule/{slug}", json={"options": {"timeout": None}}).json()
    assert changed["options"] == {name: value for name, value in found["options"].items() if name != "timeout"}


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
@pytest.mark.parametrize(
    "body",
    [
        {}, {"enabled": None}, {"prompt": None}, {"schedule": None}, {"options": None}, {"enabld": True},
        {"options": {"kind": "command"}}, {"options": {"catch_up": "skip"}},
    ],
)  # fmt: skip
def test_a_patch_that_says_nothing_is_refused(client, slug, body):
    put(client, slug)
    assert client.patch(f"/api/schedule/{slug}", json=body).status_code == 422


@pytest.mark.promise("C1")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("a%20b", 400), ("%2e%2e", 400), ("..%2f..%2fetc%2fpasswd", 400), (".hidden", 400), ("a%2fb", 400),
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
    with httpx.Client(base_url=client.base_url, trust_env=False) as anonymous:
        assert anonymous.get("/api/schedule").status_code == 401


@pytest.mark.promise("C1")
def test_an_interval_runs_first_when_it_has_passed(client, slug):
    before = client.get("/api/stats").json()["at"]
    put(client, slug, HOURLY)
    assert minutes_between(before, get(client, slug)["nextRun"]) == 60
    assert get(client, slug)["lastRun"] is None
