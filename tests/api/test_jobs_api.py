"""`/api/jobs` over real HTTP: make, read, change, remove, run, pause, resume, explain."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.api.making import make
from tests.waiting import ended
from wakeful.routing.models import Explained, JobOut, RunOut, Upcoming
from wakeful.routing.paging import Page
from wakeful.surfaces.api.bulk_models import ManyDone


def test_a_job_is_made_and_read_back_by_id_and_by_name(client, name):
    answer = client.post(
        "/api/jobs",
        json={"name": name, "kind": "report", "every": "6h", "payload": {"to": "ü\u20ac"}, "timeout": "5m", "retry": 2},
    )
    job = JobOut.model_validate(answer.json())
    assert (answer.status_code, answer.headers["ETag"]) == (201, '"1"')
    assert answer.headers["Location"] == f"/api/jobs/{job.id}"
    assert (job.source, job.payload, job.options["timeout"]) == ("api", {"to": "ü\u20ac"}, "5m")
    for ref in (job.id, name):
        read = client.get(f"/api/jobs/{ref}")
        assert (read.status_code, read.json()["id"], read.headers["ETag"]) == (200, job.id, '"1"')


def test_a_name_with_a_slash_is_an_address_like_any_other(client, name):
    name = f"{name}/daily"
    at = f"/api/jobs/{quote(name, safe='')}"
    assert client.put(at, json={"kind": "report", "every": "6h"}).status_code == 201
    assert (client.get(at).json()["name"], client.post(f"{at}/pause").json()["status"]) == (name, "paused")
    assert client.get(f"{at}/explain").json()["subject"] == name
    assert client.get(f"/api/jobs/{name}").json()["error"] == "There is nothing at this address: / lists what there is."
    assert (client.delete(at).status_code, client.get(at).status_code) == (204, 404)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ({"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"}, {"type": "cron", "expression": "0 9 * * 1-5"}),
        ({"every": "6h"}, {"type": "every", "interval": "6h"}),
        ({"every": 21600}, {"type": "every", "interval": "6h"}),
        ({"interval": "2h", "jitter": 5}, {"type": "interval", "interval": "2h", "jitter": 5.0}),
        ({"at": "2999-01-01T00:00:00+01:00"}, {"type": "once", "at": "2998-12-31T23:00:00Z"}),
        ({"after": "another", "on": "failure"}, {"type": "after", "job": "another", "on": "failure"}),
        ({"manual": True}, {"type": "manual"}),
        ({"when": "weekdays at 9am in Europe/Berlin"}, {"type": "cron", "expression": "0 9 * * 1-5"}),
        ({"when": "every 6 hours", "max_runs": 3}, {"type": "every", "interval": "6h", "max_runs": 3}),
        ({"when": "2999-01-01 00:00", "tz": "Asia/Tokyo"}, {"type": "once", "at": "2998-12-31T15:00:00Z"}),
        ({"when": "after another fails"}, {"type": "after", "job": "another", "on": "failure"}),
        ({"type": "every", "interval": "6h", "max_runs": 3}, {"type": "every", "max_runs": 3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("place", ["nested", "flat"])
def test_a_trigger_is_written_short_or_long_nested_or_flat(client, name, written, stored, place):
    if place == "flat" and "type" in written:
        written = {key: value for key, value in written.items() if key != "type"} | {"every": written["interval"]}
        written.pop("interval")
    fields = {"trigger": written} if place == "nested" else written
    answer = client.post("/api/jobs", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    assert stored.items() <= answer.json()["trigger"].items()


@pytest.mark.promise("C9")
def test_times_are_utc_and_a_job_also_shows_in_its_own_zone(client, name):
    job = make(client, name, trigger={"cron": "0 9 * * *", "tz": "Asia/Kolkata"})
    assert job["next_run_at"].endswith("T03:30:00Z")
    assert (job["zone"], job["next_run_local"][10:]) == ("Asia/Kolkata", "T09:00:00+05:30")
    times = Upcoming.model_validate(client.get(f"/api/jobs/{name}/upcoming", params={"n": 3}).json())
    assert [moment.local[10:] for moment in times.items] == ["T09:00:00+05:30"] * 3


@pytest.mark.promise("C5")
@pytest.mark.parametrize(
    "trigger",
    [{"every": "5m"}, {"cron": "*/30 * * * *"}, {"interval": 60}, {"when": "every 5 minutes until 2999-01-01"}],
    ids=str,
)
@pytest.mark.parametrize("how", ["POST", "PUT", "PATCH"])
def test_jobs_from_outside_may_not_run_more_often_than_the_minimum(client, name, trigger, how):
    if how == "PATCH":
        make(client, name)
    path = "/api/jobs" if how == "POST" else f"/api/jobs/{name}"
    answer = client.request(how, path, json={"trigger": trigger} | ({"name": name} if how == "POST" else {}))
    assert (answer.status_code, answer.json()["code"]) == (400, "min_interval")
    assert answer.json()["error"] == "Minimum interval is 60 minutes (1 hour)"
    assert "limits.min_interval" in answer.json()["detail"]


def test_a_name_is_taken_once(client, name):
    make(client, name)
    answer = client.post("/api/jobs", json={"name": name, "every": "6h"})
    assert (answer.status_code, answer.json()["code"]) == (409, "exists")


def test_put_makes_replaces_and_leaves_alone(client, name):
    body = {"kind": "report", "every": "6h", "payload": [1], "timeout": "5m"}
    made = client.put(f"/api/jobs/{name}", json=body)
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    again = client.put(f"/api/jobs/{name}", json=body)
    assert (again.status_code, again.headers["ETag"]) == (200, '"1"')
    assert again.json() == made.json()
    other = client.put(f"/api/jobs/{made.json()['id']}", json={"kind": "report", "every": "7h"})
    assert (other.status_code, other.headers["ETag"], other.json()["payload"]) == (200, '"2"', None)
    assert "timeout" not in other.json()["options"]
    read = client.get(f"/api/jobs/{name}").json()
    written = {key: read[key] for key in ("trigger", "kind", "payload", "owner", "options")}
    assert client.put(f"/api/jobs/{name}", json=written).headers["ETag"] == '"2"', "what is read can be written back"


def test_patch_changes_what_it_names(client, name):
    make(client, name, timeout="5m", owner="ana")
    answer = client.patch(f"/api/jobs/{name}", json={"payload": {"a": 1}, "timeout": None, "retry": 3})
    job = answer.json()
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert (job["payload"], job["owner"], "timeout" in job["options"]) == ({"a": 1}, "ana", False)
    assert client.patch(f"/api/jobs/{name}", json={}).headers["ETag"] == '"2"'
    assert client.patch(f"/api/jobs/{name}", json={"enabled": False}).json()["status"] == "disabled"
    assert client.patch(f"/api/jobs/{name}", json={"enabled": True}).json()["status"] == "idle"
    renamed = client.patch(f"/api/jobs/{name}", json={"name": f"{name}-new"}).json()
    assert client.get(f"/api/jobs/{name}-new").json()["id"] == renamed["id"]


def test_a_removed_job_is_gone_and_its_history_stays(client, name):
    make(client, name)
    assert client.delete(f"/api/jobs/{name}").status_code == 204
    assert client.get(f"/api/jobs/{name}").status_code == 404
    assert client.delete(f"/api/jobs/{name}").status_code == 404
    assert client.get(f"/api/jobs/{name}/runs").json() == {"items": [], "next": None}


@pytest.mark.parametrize("tag", ['"1"', '"7", "1"', "*"])
def test_a_change_to_what_was_read_is_made(client, name, tag):
    make(client, name)
    assert client.patch(f"/api/jobs/{name}", json={"owner": "ben"}, headers={"If-Match": tag}).status_code == 200


@pytest.mark.parametrize("tag", ['"2"', 'W/"1"', '"x"', '"7","8"'])
@pytest.mark.parametrize("how", ["PUT", "PATCH", "DELETE"])
def test_a_change_to_what_has_changed_since_is_refused(client, name, tag, how):
    make(client, name)
    body = {} if how == "DELETE" else {"json": {"every": "7h"}}
    answer = client.request(how, f"/api/jobs/{name}", headers={"If-Match": tag}, **body)
    assert (answer.status_code, answer.json()["code"]) == (412, "changed")
    assert client.get(f"/api/jobs/{name}").headers["ETag"] == '"1"'


def test_a_job_can_be_made_only_if_it_is_new_and_replaced_only_if_it_is_there(client, name):
    body = {"every": "6h"}
    assert client.put(f"/api/jobs/{name}", json=body, headers={"If-Match": "*"}).status_code == 412
    assert client.put(f"/api/jobs/{name}", json=body, headers={"If-None-Match": "*"}).status_code == 201
    assert client.put(f"/api/jobs/{name}", json=body, headers={"If-None-Match": "*"}).status_code == 412


@pytest.mark.parametrize(("tag", "status"), [('"1"', 304), ('W/"1"', 304), ("*", 304), ('"2"', 200)])
def test_a_reader_that_has_this_revision_is_told_so(client, name, tag, status):
    make(client, name)
    answer = client.get(f"/api/jobs/{name}", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.headers["ETag"]) == (status, '"1"')


def test_jobs_are_listed_by_name_in_pages_that_stay_true_while_others_come_and_go(client):
    for letter in "bdfhj":
        make(client, f"page-{letter}", kind="paged", owner="pager")
    seen, cursor = [], None
    while True:
        asked = {"kind": "paged", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = Page[JobOut].model_validate(client.get("/api/jobs", params=asked).json())
        seen += [job.name for job in page.items]
        if len(seen) == 2:
            client.delete("/api/jobs/page-b")
            client.delete("/api/jobs/page-f")
            make(client, "page-a", kind="paged")
            make(client, "page-g", kind="paged")
        if page.next is None:
            break
        cursor = page.next
    assert seen == ["page-b", "page-d", "page-g", "page-h", "page-j"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "filtered"}, ["100%_real", "filter-a", "filter-b"]),
        ({"owner": "eve"}, ["filter-a"]),
        ({"source": "cli", "kind": "filtered"}, []),
        ({"status": "paused", "kind": "filtered"}, ["filter-b"]),
        ({"enabled": "false", "kind": "filtered"}, []),
        ({"q": "FILTER-"}, ["filter-a", "filter-b"]),
        ({"q": "0%_R"}, ["100%_real"]),
        ({"q": "%"}, ["100%_real"]),
        ({"q": "no such thing"}, []),
    ],
    ids=str,
)
def test_jobs_are_filtered(client, query, found):
    if client.get("/api/jobs/filter-a").status_code == 404:
        make(client, "filter-a", kind="filtered", owner="eve")
        make(client, "filter-b", kind="filtered")
        make(client, "100%_real", kind="filtered")
        client.post("/api/jobs/filter-b/pause")
    assert [job["name"] for job in client.get("/api/jobs", params=query).json()["items"]] == found


def test_long_payloads_make_shorter_pages_and_nothing_is_left_out(client):
    for number in range(6):
        make(client, f"long-{number}", kind="long", payload="x" * 900_000)
    first = client.get("/api/jobs", params={"kind": "long"}).json()
    rest = client.get("/api/jobs", params={"kind": "long", "cursor": first["next"]}).json()
    names = [job["name"] for job in first["items"] + rest["items"]]
    assert (0 < len(first["items"]) < 6, rest["next"], names) == (True, None, [f"long-{n}" for n in range(6)])
    for name in names:
        client.delete(f"/api/jobs/{name}")


def test_a_job_is_run_by_hand_and_the_run_can_be_followed(client, name):
    make(client, name, kind="command", payload={"argv": ["echo", "hi"]})
    answer = client.post(f"/api/jobs/{name}/run")
    run = RunOut.model_validate(answer.json())
    assert (answer.status_code, answer.headers["Location"], run.reason) == (202, f"/api/runs/{run.id}", "manual")
    assert ended(client, run.id)["output"] == {"exit_code": 0, "output": "hi\n"}
    assert [found["id"] for found in client.get(f"/api/jobs/{name}/runs").json()["items"]] == [run.id]


def test_a_job_that_runs_is_not_started_again(client, server, name):
    gate = server.terminal.pipe(name)
    make(client, name, kind="command", command=["sh", "-c", f"read line < {gate.path}"])
    run = client.post(f"/api/jobs/{name}/run").json()["id"]
    answer = client.post(f"/api/jobs/{name}/run")
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    gate.write("go")
    assert ended(client, run)["outcome"] == "success"


def test_a_payload_given_by_hand_is_for_this_run_alone(client, name):
    make(client, name, kind="command", payload={"argv": ["echo", "own"]})
    run = client.post(f"/api/jobs/{name}/run", json={"payload": {"argv": ["echo", "given"]}}).json()["id"]
    assert ended(client, run)["output"]["output"] == "given\n"
    assert client.get(f"/api/jobs/{name}").json()["payload"] == {"argv": ["echo", "own"]}


def test_pause_and_resume(client, name):
    make(client, name)
    paused = client.post(f"/api/jobs/{name}/pause", json={"note": "holiday"}).json()
    assert (paused["status"], paused["next_run_at"], paused["notes"]) == ("paused", None, ["paused: holiday"])
    assert client.get(f"/api/jobs/{name}/upcoming").json()["items"] == []
    resumed = client.post(f"/api/jobs/{name}/resume").json()
    assert (resumed["status"], resumed["next_run_at"] is not None) == ("idle", True)


def test_many_are_paused_and_resumed_at_once(client):
    for letter in "abc":
        make(client, f"many-{letter}", kind="many")
    client.post("/api/jobs/many-c/pause")
    done = ManyDone.model_validate(client.post("/api/jobs:pause", json={"filter": {"kind": "many"}}).json())
    assert (done.count, done.names, done.unchanged) == (2, ["many-a", "many-b"], ["many-c"])
    resumed = client.post("/api/jobs:resume", json={"ids": ["many-a", "many-b", "many-b"]}).json()
    assert resumed["names"] == ["many-a", "many-b"]
    refused = client.post("/api/jobs:pause", json={"ids": ["many-a", "nothing"]})
    assert refused.status_code == 404
    assert client.get("/api/jobs/many-a").json()["status"] == "idle", "all of them or none"


def test_many_are_started_at_once_and_what_cannot_start_says_why(client):
    for letter in "abc":
        assert (
            client.post(
                "/api/jobs",
                json={"name": f"start-{letter}", "every": "6h", "kind": "command", "command": ["sleep", "5"]},
            ).status_code
            == 201
        )
    client.patch("/api/jobs/start-c", json={"enabled": False})
    chosen = {"ids": ["start-a", "start-b", "start-c"]}
    seen = client.post("/api/jobs:preview", json={**chosen, "do": "run"}).json()
    assert (seen["count"], list(seen["refused"])) == (2, ["start-c"])
    assert "cannot be undone" in " ".join(seen["says"])
    assert client.get("/api/runs?job=start-a").json()["items"] == [], "a preview starts nothing"
    done = client.post("/api/jobs:run", json=chosen).json()
    assert (done["names"], list(done["refused"])) == (["start-a", "start-b"], ["start-c"])
    assert "resume it first" in done["refused"]["start-c"]
    (action,) = client.get("/api/actions?limit=1").json()["items"]
    assert (action["what"], action["changed"], action["undoable"]) == ("run", 2, False)


def test_a_preview_says_what_a_pause_and_a_resume_would_change(client):
    for letter in "ab":
        make(client, f"seen-{letter}", kind="seen")
    client.post("/api/jobs/seen-a/pause")
    chosen = {"filter": {"kind": "seen"}}
    paused = client.post("/api/jobs:preview", json={**chosen, "do": "pause"}).json()
    resumed = client.post("/api/jobs:preview", json={**chosen, "do": "resume"}).json()
    assert (paused["count"], paused["unchanged"]) == (1, 1)
    assert (resumed["count"], resumed["unchanged"]) == (1, 1)
    assert client.get("/api/jobs/seen-b").json()["status"] == "idle"


@pytest.mark.parametrize("body", [{}, {"all": False}, {"all": True, "ids": []}, {"filter": {"colour": "red"}}])
def test_many_must_say_which(client, body):
    assert client.post("/api/jobs:pause", json=body).status_code == 422


def test_explain_says_why(client, name):
    make(client, name)
    found = Explained.model_validate(client.get(f"/api/jobs/{name}/explain").json())
    assert "It has never run." in found.sentences
    assert found.facts["job"]["name"] == name


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""}, {"name": " a"}, {"name": "a\u0000b"}, {"name": "\ud800"}, {"name": "x" * 201}, {"name": None},
        {"name": 7}, {"name": "job_0000000000000"}, {"every": None}, {"every": "soon"}, {"every": -1},
        {"every": 1e308}, {"every": 10**30}, {"every": "6h", "cron": "0 9 * * *"},
        {"cron": "0 0 30 2 *", "every": None},
        {"at": "2026-02-30T00:00:00Z", "every": None}, {"at": "10000-01-01T00:00:00Z", "every": None},
        {"at": "2999-01-01T00:00:00", "every": None},
        {"tz": "Mars/Olympus"}, {"max_runs": 0}, {"max_runs": 2**70}, {"jitter": 1e9}, {"payload": float("nan")},
        {"payload": "x" * 1_048_600}, {"timeout": "never"}, {"retry": 10**7}, {"lanes": {"": 1}}, {"lanes": [1]},
        {"labels": [""]}, {"labels": ["a,b"]}, {"approval": "yes please"}, {"colour": "red"},
        {"priority": 101}, {"priority": "high"}, {"options": {"priority": -101}},
        {"options": {"colour": "red"}},
        {"options": {"self": 1}}, {"trigger": {"every": "6h"}}, {"trigger": {"type": "x"}, "every": None},
        {"trigger": [], "every": None}, {"command": "ls -l"}, {"command": []}, {"command": ["a\u0000b"]},
        {"command": ["x"], "kind": "report"}, {"kind": "command", "payload": {"argv": []}}, {"owner": "\n"},
    ],
    ids=lambda fields: str(fields)[:40],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused_in_a_sentence(client, fields):
    body = json.dumps({"name": "refused", "kind": "report", "every": "6h", **fields})
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    problem = answer.json()
    assert 400 <= answer.status_code < 500, answer.text
    assert problem["status"] == answer.status_code
    assert problem["error"]
    assert client.get("/api/jobs/refused").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0}, {"limit": 501}, {"limit": "many"}, {"limit": 10**30}, {"cursor": "x"}, {"cursor": "cnVuOjE"},
        {"status": "odd"}, {"enabled": "perhaps"}, {"kind": "x" * 1001},
    ],
    ids=str,
)  # fmt: skip
def test_a_list_that_cannot_be_meant_is_refused(client, query):
    assert client.get("/api/jobs", params=query).status_code in (400, 422)


@pytest.mark.parametrize("tag", ["1", '"1', "", '"1" "2"', "\u00fc"])
def test_a_condition_that_cannot_be_read_is_refused(client, name, tag):
    make(client, name)
    headers = {"If-Match": tag.encode("latin-1")}
    assert client.patch(f"/api/jobs/{name}", json={}, headers=headers).status_code == 400


def test_unknown_jobs_are_not_found_and_the_nearest_is_offered(client, name):
    make(client, f"{name}-backup")
    answer = client.get(f"/api/jobs/{name}-bakcup")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert f"{name}-backup" in answer.json()["error"]
    for path in ("runs", "explain", "upcoming"):
        assert client.get(f"/api/jobs/nothing-at-all/{path}").status_code == 404
    for path in ("run", "pause", "resume"):
        assert client.post(f"/api/jobs/nothing-at-all/{path}").status_code == 404


def test_names_may_hold_anything_printable(client):
    for odd in ("a b", "ü€😀", "a:pause", "50%", "a?b#c", "'; drop table jobs"):
        path = f"/api/jobs/{quote(odd, safe='')}"
        assert client.put(path, json={"every": "6h"}).status_code == 201, odd
        assert client.get(path).json()["name"] == odd
        assert client.delete(path).status_code == 204
