"""`status`, `doctor` and `alert list`."""

from __future__ import annotations

import re

import pytest

from wakeful.console.opening import now_ms
from wakeful.console.store_location import find_place
from wakeful.surfaces.cli.doctor import Doubts, Inside, _server, examine
from wakeful.surfaces.cli.health import _with_cut_off


def test_status_of_nothing_is_an_answer_too(wakeful, store):
    assert wakeful("status", "--json").json == {
        "store": str(store),
        "exists": False,
        "verdict": {
            "state": "stalled",
            "well": False,
            "sentence": "No server is running (wakeful serve), and nothing is scheduled yet.",
        },
        "server": None,
        "jobs": {},
        "waiting": {},
        "open_runs": 0,
        "open_alerts": 0,
        "open_approvals": 0,
        "hold": None,
        "budget": None,
        "next_start": None,
    }


@pytest.mark.parametrize(
    ("jobs", "number", "shown"),
    [
        ({"running": 1, "idle": 2}, 0, {"running": 1, "idle": 2}),
        ({"running": 1, "idle": 2}, 1, {"idle": 2, "cut_off": 1}),
        ({"running": 3}, 1, {"running": 2, "cut_off": 1}),
    ],
)
def test_a_job_whose_server_has_ended_is_cut_off_and_not_running(jobs, number, shown):
    assert _with_cut_off(jobs, number) == shown


@pytest.mark.usefixtures("stocked")
def test_status_counts_jobs_and_shows_the_next_start(wakeful, store):
    wakeful("pause", "job")
    data = wakeful("status", "--json").json
    assert (data["store"], data["exists"]) == (str(store), True)
    assert {name: number for name, number in data["jobs"].items() if number} == {"idle": 1, "paused": 1}
    assert data["next_start"]["job"] == "other"
    text = wakeful("status").out
    assert text.startswith("Stalled: no server is running, and nothing starts until one does (wakeful serve).\n\n")
    assert data["verdict"]["state"] == "stalled"
    assert "not running: nothing fires until one does (wakeful serve)" in text
    assert "2 (1 idle, 1 paused)" in text


@pytest.mark.usefixtures("stocked")
def test_status_and_list_say_that_everything_is_paused_also_without_a_server(wakeful):
    wakeful("pause", "--all")
    assert re.search(r"^paused +everything, since .* \(wakeful resume --all\)$", wakeful("status").out, re.MULTILINE)
    listed = wakeful("list")
    assert "Everything is paused by " in listed.err
    assert "nothing starts until wakeful resume --all." in listed.err
    wakeful("resume", "--all")
    assert "paused" not in wakeful("status").out
    assert "paused" not in wakeful("list").err


@pytest.fixture
def failing(wakeful):
    wakeful("add", "broken", "--every", "1h", "--max-errors", "2", "--", "sh", "-c", "echo no disk; exit 3")
    wakeful("run", "broken")
    wakeful("run", "broken")


@pytest.mark.usefixtures("failing")
def test_what_needs_a_person_is_listed(wakeful):
    alerts = wakeful("alert", "list", "--json").json
    disabled = [alert for alert in alerts if alert["kind"] == "disabled"]
    assert len(disabled) == 1
    assert "broken was disabled after 2 errors in a row" in disabled[0]["message"]
    assert disabled[0]["closed_at"] is None
    assert disabled[0]["job_id"] == wakeful("show", "broken", "--json").json["id"]
    listed = wakeful("alert", "list").out
    assert "broken was disabled after 2 errors in a row" in listed
    assert "disabled: a job was disabled after too many errors, or because it cannot be started\n" in listed
    assert disabled[0]["meaning"].startswith("a job was disabled")
    assert wakeful("status", "--json").json["open_alerts"] == len(alerts)


@pytest.mark.usefixtures("failing")
def test_an_alert_is_over_when_the_job_is_resumed(wakeful, store):
    wakeful("resume", "broken")
    assert wakeful("alert", "list").out == f"No open alerts in {store}.\n"
    over = wakeful("alert", "list", "--all", "--json").json
    assert over
    assert all(alert["closed_at"] for alert in over)


@pytest.mark.usefixtures("failing")
def test_an_alert_that_a_person_acknowledged_stays_so_while_it_is_open(wakeful):
    (alert,) = [alert for alert in wakeful("alert", "list", "--json").json if alert["kind"] == "disabled"]
    answer = wakeful("alert", "ack", alert["id"])
    assert (answer.code, answer.out) == (0, f"Acknowledged {alert['id']}: {alert['message']}\n")
    first = wakeful("alert", "show", alert["id"], "--json").json
    assert (first["closed_at"], first["acked_at"] is None) == (None, False)
    wakeful("retry", "broken")
    assert wakeful("alert", "ack", alert["id"], "--json").json == [wakeful("alert", "show", alert["id"], "--json").json]
    assert wakeful("alert", "show", alert["id"], "--json").json["acked_at"] == first["acked_at"]
    assert "acknowledged" in wakeful("alert", "list").out
    assert "(acknowledged)" in wakeful("doctor").out
    wakeful("alert", "snooze", alert["id"], "--for", "2h")
    shown = wakeful("alert", "show", alert["id"]).out
    assert re.search(r"^state +acknowledged .*; snoozed, ends in 1h 59m$", shown, re.MULTILINE)
    assert "broken was disabled after 2 errors in a row" in shown
    assert "job    broken" in shown
    assert [one["id"] for one in wakeful("alert", "ack", "broken", "--json").json][:1] == [alert["id"]]
    wakeful("resume", "broken")
    assert wakeful("alert", "ack", "broken").code == 3
    assert wakeful("alert", "show", "broken", "--json").json["id"] == alert["id"]


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("verb", ["ack", "show"])
@pytest.mark.parametrize("wrong", ["alr_0000000000000", "nothing"])
def test_an_alert_that_does_not_exist_is_said_so_and_nothing_changes(wakeful, verb, wrong):
    known = wakeful("alert", "list", "--json").json[0]["id"]
    answer = wakeful("alert", verb, *([known] if verb == "ack" else []), wrong)
    assert (answer.code, answer.out) == (3, "")
    assert ("There is no alert " in answer.err, "alert or job 'nothing'" in answer.err) == (True, wrong == "nothing")
    assert wakeful("alert", "show", known, "--json").json["acked_at"] is None


def test_with_nothing_stored_the_doctor_finds_nothing_wrong(wakeful):
    answer = wakeful("doctor")
    assert answer.code == 0
    assert answer.out.endswith("All is well\n")
    assert all(line.startswith("✓") for line in answer.out.splitlines()[:-2])


@pytest.mark.usefixtures("stocked")
def test_jobs_without_a_server_are_a_problem_and_the_doctor_says_what_helps(wakeful):
    answer = wakeful("doctor")
    assert answer.code == 1
    assert "✗ server" in answer.out
    assert "not running, and 2 jobs will not fire" in answer.out
    assert "→ start one: wakeful serve" in answer.out
    data = wakeful("doctor", "--json").json
    assert data["ok"] is False
    assert all((check["do"] is None) == check["ok"] for check in data["checks"]), "only what is wrong needs mending"
    assert [check["name"] for check in data["checks"] if not check["ok"]] == ["server"]
    assert {"program", "time zones", "database", "store", "writable", "disk", "clock"} <= {
        check["name"] for check in data["checks"]
    }


@pytest.mark.usefixtures("failing")
def test_the_doctor_reports_open_alerts(wakeful):
    answer = wakeful("doctor")
    assert answer.code == 1
    assert "broken was disabled after 2 errors in a row" in answer.out
    assert "wakeful explain broken, then wakeful resume broken" in answer.out


def test_a_broken_store_is_a_finding_not_a_failure_of_the_doctor(wakeful, store):
    store.write_bytes(b"no database" * 1000)
    answer = wakeful("doctor")
    assert answer.code == 1
    assert "✗ store" in answer.out
    assert "is not a database" in answer.out


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(
    ("now", "said"),
    [(0, "never set"), (946_684_800_000, "never set"), (5_000_000_000_000, "never set")],
)
def test_a_clock_that_cannot_be_right_is_found(here, now, said):
    checks = examine(find_place(None, {"HOME": str(here)}, here), now)
    assert [said in check.found for check in checks if check.name == "clock"] == [True]


@pytest.mark.usefixtures("stocked")
def test_a_clock_behind_the_last_sign_of_life_is_found(wakeful, here):
    wakeful("run", "job")
    checks = examine(find_place(None, {"HOME": str(here)}, here), now_ms() - 86_400_000)
    clock = next(check for check in checks if check.name == "clock")
    assert not clock.ok
    assert "behind the last time a server was alive" in clock.found


@pytest.mark.usefixtures("stocked")
def test_a_store_that_may_not_be_written_is_found(here, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    checks = examine(find_place(None, {"HOME": str(here)}, here), now_ms())
    assert [check.ok for check in checks if check.name == "writable"] == [False]


def test_the_doctor_and_check_say_where_nobody_is_notified_of_failures(wakeful, here):
    nobody = "nobody is notified of failures"
    file = "store: sqlite:///.wakeful/wakeful.db\njobs: {a: {cron: '0 9 * * *', command: ['true']}}\n"
    (here / "wakeful.yaml").write_text(file)
    assert nobody in wakeful("check").err
    assert wakeful("apply").code == 0
    assert "alerts are not sent to anyone" in wakeful("doctor").out
    (here / "wakeful.yaml").write_text(f"{file}connectors: {{out: {{type: log}}}}\nalerts: {{to: out}}\n")
    assert nobody not in wakeful("check").err
    assert "alerts are sent to out once a server has read wakeful.yaml" in wakeful("doctor").out


def test_doctor_finds_a_configuration_that_no_server_would_take(wakeful, here):
    (here / "wakeful.yaml").write_text("jobs:\n  x: {evry: 5m, command: [ls]}\n")
    found = wakeful("doctor")
    assert found.code == 1
    said = " ".join(found.out.split())
    assert "✗ settings" in said
    assert "has 1 mistake, line 2: There is no key 'evry' in jobs.x. Did you mean 'every'?" in said
    (here / "wakeful.yaml").write_text("jobs:\n  x: {every: 5m, command: [ls]}\n")
    assert "✓ settings" in wakeful("doctor").out


def test_doctor_names_every_node_that_runs_jobs():
    inside = Inside(0, 0, [], [], {"pid": 7}, 0, [], [], 0, Doubts(0, []), nodes=("north", "south"))
    assert _server(inside).found == "2 nodes running: north, south"
