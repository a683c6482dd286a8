"""`/api/jobs`: what each role may do, and how far a trigger from the network is trusted."""

from __future__ import annotations

import pytest

from tests.api.making import make


def test_a_viewer_reads_and_changes_nothing(client, client_for, name):
    make(client, name)
    viewer = client_for("viewer")
    before = client.get("/api/jobs", params={"limit": 200}).json()
    for path in (f"/api/jobs/{name}", "/api/jobs", f"/api/jobs/{name}/explain", f"/api/jobs/{name}/upcoming"):
        assert viewer.get(path).status_code == 200
    for how, path in (
        ("POST", "/api/jobs"),
        ("PUT", f"/api/jobs/{name}"),
        ("PATCH", f"/api/jobs/{name}"),
        ("DELETE", f"/api/jobs/{name}"),
        ("POST", f"/api/jobs/{name}/run"),
        ("POST", f"/api/jobs/{name}/pause"),
        ("POST", "/api/jobs:pause"),
    ):
        body = {} if how == "DELETE" else {"json": {"name": name, "every": "6h"}}
        assert viewer.request(how, path, **body).status_code == 403, (how, path)
    assert client.get("/api/jobs", params={"limit": 200}).json() == before
    assert client.get(f"/api/jobs/{name}/runs").json()["items"] == []


@pytest.mark.promise("X22")
@pytest.mark.parametrize("role", ["operator", "agent"])
def test_only_an_admin_lets_a_job_go_before_others(client, client_for, name, role):
    caller = client_for(role)
    body = {"name": name, "every": "6h", "kind": "report"}
    assert caller.post("/api/jobs", json={**body, "priority": -3}).json()["options"]["priority"] == -3

    def attempts(priority):
        yield caller.patch(f"/api/jobs/{name}", json={"priority": priority})
        yield caller.patch(f"/api/jobs/{name}", json={"options": {"priority": priority}})
        yield caller.put(f"/api/jobs/{name}", json={"every": "6h", "kind": "report", "priority": priority})
        yield caller.post("/api/jobs", json={**body, "name": f"{name}-new", "priority": priority})
        yield caller.put(f"/api/jobs/{name}-new", json={"every": "6h", "kind": "report", "priority": priority})

    for refused in attempts(1):
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert refused.json()["error"] == "Only an admin may give a job a priority above 0."
    assert caller.get(f"/api/jobs/{name}").json()["options"]["priority"] == -3
    assert client.patch(f"/api/jobs/{name}", json={"priority": 5}).json()["options"]["priority"] == 5
    assert caller.patch(f"/api/jobs/{name}", json={"timeout": "1m"}).json()["options"]["priority"] == 5, "it stays"
    for refused in list(attempts(6))[:3]:
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert caller.patch(f"/api/jobs/{name}", json={"priority": 4}).json()["options"]["priority"] == 4
    assert caller.patch(f"/api/jobs/{name}", json={"priority": 5}).status_code == 403, "given back is given back"


def test_only_an_admin_writes_commands(client, client_for, name):
    operator = client_for("operator")
    refused = operator.post("/api/jobs", json={"name": name, "every": "6h", "command": ["true"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    make(client, name, kind="command", payload={"argv": ["true"], "env": {"TOKEN": "secret"}})
    for how, body in (("PUT", {"every": "6h", "kind": "report"}), ("PATCH", {"timeout": "1m"})):
        assert operator.request(how, f"/api/jobs/{name}", json=body).status_code == 403
    assert operator.delete(f"/api/jobs/{name}").status_code == 403
    given = {"payload": {"argv": ["rm", "-rf", "/"]}}
    assert operator.post(f"/api/jobs/{name}/run", json=given).status_code == 403, "another payload is another command"
    make(client, f"{name}-plain")
    plain = operator.patch(f"/api/jobs/{name}-plain", json={"kind": "command", "payload": {"argv": ["true"]}})
    assert plain.status_code == 403
    assert operator.get(f"/api/jobs/{name}").json()["payload"]["env"] == {"TOKEN": "***"}
    assert client.get(f"/api/jobs/{name}").json()["payload"]["env"] == {"TOKEN": "secret"}
    run = operator.post(f"/api/jobs/{name}/run")
    assert run.status_code == 202
    assert operator.get(f"/api/runs/{run.json()['id']}").json()["payload"]["env"] == {"TOKEN": "***"}


def test_an_agent_sees_and_changes_only_its_own(client, client_for, name):
    fox, hen = client_for("agent", "fox"), client_for("agent", "hen")
    mine = fox.post("/api/jobs", json={"name": name, "every": "6h"})
    assert (mine.status_code, mine.json()["owner"]) == (201, "fox")
    assert hen.get(f"/api/jobs/{name}").status_code == 404
    assert hen.delete(f"/api/jobs/{name}").status_code == 404
    assert hen.put(f"/api/jobs/{name}", json={"every": "7h"}).status_code == 403
    assert [job["name"] for job in hen.get("/api/jobs").json()["items"]] == []
    assert hen.get("/api/jobs", params={"owner": "fox"}).json()["items"] == []
    assert name in [job["name"] for job in fox.get("/api/jobs").json()["items"]]
    assert hen.post("/api/jobs:pause", json={"all": True}).json()["count"] == 0
    for change in ({"owner": "hen"}, {"kind": "command", "payload": {"argv": ["true"]}}):
        assert fox.patch(f"/api/jobs/{name}", json=change).status_code == 403
    assert fox.post("/api/jobs", json={"name": "x", "every": "6h", "owner": "hen"}).status_code == 403
    assert fox.get("/api/events").status_code == 403
    assert fox.post(f"/api/jobs/{name}/pause").json()["status"] == "paused"
    client.patch(f"/api/jobs/{name}", json={"approval": True})
    for how, change in (("PATCH", {"approval": False}), ("PUT", {"every": "6h"})):
        assert fox.request(how, f"/api/jobs/{name}", json=change).status_code == 403, "it stays asked about"


@pytest.mark.promise("C5")
def test_a_trigger_that_came_over_the_network_is_bounded_however_it_came(server, client):
    def bounded(name="trusted"):
        return client.get(f"/api/jobs/{name}").json()["options"].get("bounded", False)

    assert server.terminal.ask("add", "trusted", "--every", "10s", "--", "true").code == 0
    assert not bounded(), "who can write the store is trusted"
    assert client.patch("/api/jobs/trusted", json={"timeout": "5m"}).status_code == 200
    assert not bounded(), "and stays so while the trigger is theirs"
    body = {"every": "2h", "command": ["true"]}
    assert client.put("/api/jobs/trusted", json=body).status_code == 200
    assert bounded(), "a PUT writes the trigger"
    for change in (
        {"timeout": "6m"},
        {"every": "3h"},
        {"every": "3h", "options": {"bounded": False}},
        {"options": {"bounded": False}},
        {"options": {"bounded": None}},
    ):
        assert client.patch("/api/jobs/trusted", json=change).status_code == 200, change
        assert bounded(), change
    assert client.put("/api/jobs/trusted", json={**body, "options": {"bounded": False}}).status_code == 200
    assert bounded()
    refused = client.patch("/api/jobs/trusted", json={"every": "10s"})
    assert (refused.status_code, refused.json()["code"]) == (400, "min_interval")
    assert client.put("/api/jobs/new-one", json=body).status_code == 201
    assert bounded("new-one")
    assert server.terminal.ask("add", "patched", "--every", "10s", "--", "true").code == 0
    assert client.patch("/api/jobs/patched", json={"every": "4h"}).status_code == 200
    assert bounded("patched"), "and so does a PATCH that names it"
