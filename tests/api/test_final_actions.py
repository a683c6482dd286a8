"""What cannot be undone is on record, too, with who did it; and it does not stand in the way of undo."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.promise("X27"), pytest.mark.promise("X28")]


def actions(client, limit=20):
    return client.get(f"/api/actions?limit={limit}").json()["items"]


def test_starts_and_changes_are_recorded_with_who_did_them_and_marked_as_final(client):
    made = client.post("/api/jobs", json={"name": "kept", "every": "6h", "command": ["sleep", "30"]})
    assert made.status_code == 201, made.text
    assert client.patch("/api/jobs/kept", json={"timeout": "5m"}).status_code == 200
    run = client.post("/api/jobs/kept/run", json={}).json()["id"]
    assert client.post(f"/api/runs/{run}/cancel", json={}).status_code in (200, 202)
    found = [one for one in actions(client) if one["name"] == "kept"]
    assert [one["what"] for one in found] == ["cancel", "run", "edit", "add"]
    assert {(one["actor"], one["via"], one["undoable"], one["undo_until"]) for one in found} == {
        ("admin", "api", False, None)
    }
    refused = client.post(f"/api/actions/{found[0]['id']}/undo")
    assert refused.status_code == 409
    assert "cannot be undone" in refused.json()["error"]


def test_a_patch_that_changes_nothing_is_no_change_on_record(client):
    client.post("/api/jobs", json={"name": "same", "every": "6h", "timeout": "5m", "command": ["true"]})
    before = actions(client)
    assert client.patch("/api/jobs/same", json={"timeout": "5m"}).status_code == 200
    assert actions(client) == before


def test_a_pause_is_undone_though_its_job_was_started_since(client):
    client.post("/api/jobs", json={"name": "paused", "every": "6h", "command": ["true"]})
    action = client.post("/api/jobs/paused/pause", json={}).headers["wakeful-action"]
    client.post("/api/jobs/paused/run", json={})
    undone = client.post(f"/api/actions/{action}/undo")
    assert undone.json()["restored"] == ["paused"], undone.text


def test_the_command_line_leaves_the_same_record(server, client):
    ask = server.terminal.ask
    ask("add", "typed", "--every", "6h", "--", "true")
    ask("edit", "typed", "--timeout", "3m")
    ask("run", "typed", "--wait")
    found = [one for one in actions(client) if one["name"] == "typed"]
    assert [(one["what"], one["via"]) for one in found] == [("run", "cli"), ("edit", "cli"), ("add", "cli")]
    ask("pause", "typed")
    ask("run", "typed", "--wait")
    taken = ask("undo")
    assert (taken.code, "typed" in taken.out) == (0, True), taken.err
    assert "no" in ask("undo", "--list").out
