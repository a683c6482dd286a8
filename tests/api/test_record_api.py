"""What is on record over real HTTP: actions and their undoing, everything paused at once, the ledger."""

from __future__ import annotations

import pytest

from tests.api.making import make


@pytest.mark.promise("X27")
def test_what_a_request_did_is_undone_by_the_id_in_its_answer(client, client_for, name):
    make(client, name)
    paused = client.post(f"/api/jobs/{name}/pause").headers["Wakeful-Action"]
    assert "Wakeful-Action" not in client.post(f"/api/jobs/{name}/pause").headers  # it was paused already
    assert client_for("viewer").post(f"/api/actions/{paused}/undo").status_code == 403
    undone = client_for("operator").post(f"/api/actions/{paused}/undo")
    assert (undone.status_code, undone.json()["restored"]) == (200, [name])
    assert client.get(f"/api/jobs/{name}").json()["status"] == "idle"
    assert client.post(f"/api/actions/{paused}/undo").status_code == 409
    many = client.post("/api/jobs:pause", json={"ids": [name]})
    gone = client.delete(f"/api/jobs/{name}").headers["Wakeful-Action"]
    refused = client.post(f"/api/actions/{many.headers['Wakeful-Action']}/undo")
    assert (refused.status_code, refused.json()["code"]) == (409, "cannot_undo")
    assert "was removed since, by admin: left as it is" in refused.json()["error"]
    assert client.post(f"/api/actions/{gone}/undo").json()["restored"] == [name]
    assert client.get(f"/api/jobs/{name}").json()["status"] == "paused"
    first, second = client.get("/api/actions?limit=2").json()["items"]
    assert (first["id"], first["what"], first["actor"], first["via"]) == (gone, "remove", "admin", "api")
    assert (first["undone_by"], second["id"], second["undo_until"] is None) == (
        "admin",
        many.headers["Wakeful-Action"],
        False,
    )
    assert client.post("/api/actions/nonsense/undo").status_code == 404


@pytest.mark.promise("X7", "X27")
def test_everything_is_paused_and_resumed_at_once(client, client_for, name):
    make(client, name)
    free = {"held": False, "since": None, "by": None, "note": None, "messages": False}
    assert client.get("/api/hold").json() == free
    assert client_for("viewer").post("/api/hold", json={}).status_code == 403
    assert client_for("agent").post("/api/hold", json={}).status_code == 403
    assert client_for("agent").delete("/api/hold").status_code == 403
    held = client.post("/api/hold", json={"note": "maintenance"})
    about = {key: value for key, value in held.json().items() if key != "since"}
    assert about == {"held": True, "by": "admin", "note": "maintenance", "messages": False}
    refused = client.post(f"/api/jobs/{name}/run")
    assert (refused.status_code, refused.json()["reason"]) == (409, "held")
    assert client_for("viewer").get("/api/hold").json() == held.json()
    assert client.get("/api/verdict").json()["sentence"].startswith("Stalled: everything is paused by admin since ")
    action = held.headers["Wakeful-Action"]
    assert client.post(f"/api/actions/{action}/undo").json()["restored"] == ["everything"]
    assert client.post(f"/api/jobs/{name}/run").status_code == 202
    client.post("/api/hold", json={})
    assert client.delete("/api/hold").json() == free
    assert "Wakeful-Action" not in client.delete("/api/hold").headers
    assert [one["what"] for one in client.get("/api/actions?limit=2").json()["items"]] == ["resume_all", "pause_all"]


@pytest.mark.promise("X27")
def test_a_job_that_a_change_switched_off_or_on_is_switched_back(client, name):
    make(client, name)
    off = client.patch(f"/api/jobs/{name}", json={"enabled": False}).headers["Wakeful-Action"]
    assert client.get(f"/api/jobs/{name}").json()["status"] == "disabled"
    assert client.post(f"/api/actions/{off}/undo").json()["restored"] == [name]
    assert client.get(f"/api/jobs/{name}").json()["status"] == "idle"
    assert "Wakeful-Action" not in client.patch(f"/api/jobs/{name}", json={"timeout": "5m"}).headers
    client.patch(f"/api/jobs/{name}", json={"enabled": False})
    on = client.put(f"/api/jobs/{name}", json={"every": "6h", "enabled": True}).headers["Wakeful-Action"]
    assert client.get(f"/api/jobs/{name}").json()["status"] == "idle"
    assert client.post(f"/api/actions/{on}/undo").json()["what"] == "resume"
    assert client.get(f"/api/jobs/{name}").json()["status"] == "disabled"


@pytest.mark.promise("X25")
def test_the_ledger_and_single_slots_have_addresses(client, client_for, name):
    make(client, name)
    whole = client.get("/api/ledger").json()
    assert whole["unaccounted"] == 0
    one = client_for("viewer").get(f"/api/ledger?job={name}&since=30d").json()
    assert (one["due"], [tally["job"] for tally in one["jobs"]]) == (0, [name])
    coming = client.get(f"/api/jobs/{name}").json()["next_run_at"]
    slot = client_for("viewer").get(f"/api/jobs/{name}/slots/{coming}").json()
    assert (slot["fate"], slot["runs"]) == ("ahead", [])
    assert client.get(f"/api/jobs/{name}/slots/2026-01-01T00:00:01Z").status_code == 404
    assert client.get(f"/api/jobs/{name}/slots/soon").status_code == 400
    assert client.get("/api/ledger?job=nothing-at-all").status_code == 404
    assert client.get("/api/ledger?since=soon").json()["code"] == "invalid_setting"
