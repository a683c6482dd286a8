"""Workflows over HTTP and on the command line, with one real server."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from tests.waiting import eventually

WORKFLOW = """
from wakeful import ApprovalNeeded, Interval, Prepared, Workflow

workflow = Workflow("shop")

@workflow.producer(Interval("1h"), publishes=["orders"])
async def poll(ctx, state):
    item = await ctx.register_input("web", "order", "1", title="Order 1")
    await ctx.publish("orders", message_id="1", payload={"n": 1}, input=item)
    return {"polled": True}

book = workflow.consumer("book", subscribes=["orders"])

@book.prepare
async def prepare(ctx, state):
    found = await ctx.peek("orders", limit=1)
    names = [event.message_id for event in found]
    return Prepared({"orders": [event.id for event in found]}, names, title=f"Book {' '.join(names)}")

@book.mutate
async def mutate(ctx, prepared):
    if prepared.data == ["cut"]:
        raise RuntimeError("the line broke")
    if prepared.data == ["ask"] and ctx.approved_by is None:
        raise ApprovalNeeded("Book this?")
    return {"booked": prepared.data}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("shop"))
    (terminal.folder / "shop.py").write_text(WORKFLOW)
    (terminal.folder / "bad.py").write_text("import nonsense_xyz")
    (terminal.folder / "wakeful.yaml").write_text('workflows: ["shop.py:workflow", "bad.py"]\n')
    server = Server(terminal, "--config", "wakeful.yaml")
    with server.client(server.token) as client:
        until(client, lambda found: "handlers" in found and quiet(found) and found["recent"])
    yield server
    terminal.close()


@pytest.fixture
def http(shop):
    with shop.client(shop.token) as client:
        yield client


def until(http, condition):
    """The workflow once it is so."""
    return eventually(lambda: http.get("/api/workflows/shop").json(), condition)


def publish(http, message_id):
    return http.post("/api/workflows/shop/topics/orders", json={"message_id": message_id, "payload": {}})


def orders(http):
    """The status of each order."""
    found = http.get("/api/workflows/shop/events", params={"topic": "orders", "limit": 100}).json()["items"]
    return {event["message_id"]: event["status"] for event in found}


def quiet(found):
    return found["status"] == "idle" and not any(one["pending_events"] for one in found["handlers"])


@pytest.mark.promise("K16", "X1")
def test_people_see_status_schedule_activity_and_what_inputs_caused(shop, http):
    found = until(http, quiet)
    assert (found["issue"], found["paused"], found["pending_inputs"]) == (None, False, 0)
    assert found["schedule"].startswith("Checks 1 hour after the last run ends. Next check in")
    assert "Book 1" in [one["text"] for one in found["recent"]]
    assert [(one["name"], one["type"], one["job"]) for one in found["handlers"]] == [
        ("book", "consumer", "shop.book"),
        ("poll", "producer", "shop.poll"),
    ]
    assert found["handlers"][1]["state"] == {"polled": True}
    item = http.get("/api/workflows/shop/inputs").json()["items"][0]
    assert (item["title"], item["status"]) == ("Order 1", "done")
    assert [(one["topic"], one["status"]) for one in item["caused"]] == [("orders", "consumed")]
    runs = http.get("/api/workflows/shop/runs").json()["items"]
    assert {(run["phase"], run["workflow_status"]) for run in runs[-2:]} == {("committed", "committed")}
    assert http.get("/api/jobs/shop.book").json()["kind"] == "workflow"
    assert shop.terminal("workflow", "list").out.splitlines()[1:] != []
    assert "Book 1" in shop.terminal("workflow", "show", "shop").out
    assert shop.terminal("explain", "shop.book").code == 0


@pytest.mark.promise("K16")
def test_a_file_that_cannot_be_loaded_is_listed_by_its_stem(http):
    bad = http.get("/api/workflows/bad").json()
    assert (bad["status"], bad["handlers"]) == ("stopped", [])
    assert "No module named 'nonsense_xyz'" in bad["issue"]["message"]
    assert "bad.py" in bad["issue"]["trace"]


@pytest.mark.promise("K6")
def test_publishing_by_hand_is_idempotent_and_pages_are_complete(http):
    assert publish(http, "a").status_code == 201
    assert publish(http, "a").status_code == 200
    assert publish(http, "b").status_code == 201
    assert http.post("/api/workflows/shop/topics/nothing", json={"message_id": "x"}).status_code == 404
    until(http, quiet)
    seen, cursor = [], None
    while True:
        params = {"limit": 1, "topic": "orders", **({"cursor": cursor} if cursor else {})}
        page = http.get("/api/workflows/shop/events", params=params).json()
        seen += [event["message_id"] for event in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert {"a", "b", "1"} <= set(seen)
    assert len(seen) == len(set(seen))


@pytest.mark.promise("K11", "K16")
def test_an_uncertain_mutation_is_settled_from_http(shop, http):
    publish(http, "cut")
    found = until(http, lambda found: found["status"] == "needs_attention")
    issue = found["issue"]
    assert (issue["kind"], issue["handler"], issue["actions"]) == ("reconciliation", "book", ["settle"])
    assert (issue["change"]["title"], issue["change"]["data"]) == ("Book cut", ["cut"])
    shown = shop.terminal("workflow", "show", "shop").out
    assert "Book cut" in shown
    assert 'data: ["cut"]' in shown
    refused = http.post("/api/workflows/shop/run")
    why = f"shop cannot run. {issue['message'].rstrip('.')} (wakeful workflow show shop)."
    assert (refused.status_code, refused.json()["error"]) == (409, why)
    body = {"run": issue["run"], "verdict": "perhaps"}
    assert http.post("/api/workflows/shop/settle", json=body).status_code == 422
    body["verdict"] = "happened"
    assert http.post("/api/workflows/shop/settle", json=body).status_code == 200
    assert http.post("/api/workflows/shop/settle", json=body).status_code == 409
    until(http, quiet)
    assert orders(http)["cut"] == "consumed"


@pytest.mark.promise("X8")
def test_a_run_that_asks_is_approved_on_the_command_line(shop, http):
    publish(http, "ask")
    found = until(http, lambda found: found["status"] == "needs_attention")
    assert "Book this?" in found["issue"]["message"]
    approved = shop.terminal("workflow", "approve", "shop", found["issue"]["run"])
    assert approved.code == 0, approved.err
    until(http, quiet)
    assert orders(http)["ask"] == "consumed"


@pytest.mark.promise("K3", "K16")
def test_pause_skip_and_rerun_are_kept_with_their_reason(shop, http):
    assert http.post("/api/workflows/shop/pause", json={"note": "holiday"}).json()["issue"]["kind"] == "paused"
    assert http.post("/api/workflows/shop/run").status_code == 409
    item = http.get("/api/workflows/shop/inputs").json()["items"][0]["id"]
    again = http.post(f"/api/workflows/shop/inputs/{item}/rerun", json={"reason": "once more"})
    assert again.status_code == 200, again.text
    assert http.get("/api/workflows/shop/inputs?status=pending").json()["items"][0]["id"] == item
    skipped = shop.terminal("workflow", "skip", "shop", item, "--reason", "spam")
    assert skipped.out == "1 event skipped\n", skipped.err
    found = http.get("/api/workflows/shop/inputs").json()["items"][0]
    assert (found["status"], found["reason"]) == ("skipped", "spam")
    first, second = (publish(http, name).json()["id"] for name in ("poison", "poisoned"))
    skip = f"/api/workflows/shop/events/{first}/skip"
    assert http.post(skip, json={"reason": ""}).status_code == 422
    assert http.post(skip, json={"reason": "unreadable"}).json() == {"id": first, "skipped": 1}
    assert http.post(skip, json={"reason": "unreadable"}).status_code == 409
    by_hand = shop.terminal("workflow", "skip", "shop", second, "--reason", "this too", "--json")
    assert json.loads(by_hand.out) == {"event": second, "skipped": 1}, by_hand.err
    events = http.get("/api/workflows/shop/events?status=skipped").json()["items"][:2]
    assert [(one["id"], one["reason"]) for one in events] == [(second, "this too"), (first, "unreadable")]
    wrong = shop.terminal("workflow", "events", "shop", "--status", "waiting")
    assert (wrong.code, wrong.out) == (2, "")
    assert http.post("/api/workflows/shop/resume").json()["paused"] is False


@pytest.mark.promise("K16")
def test_an_event_is_replayed_and_the_workflow_drained_on_record(shop, http):
    until(http, quiet)
    event = http.get("/api/workflows/shop/events?status=consumed").json()["items"][-1]
    replay = f"/api/workflows/shop/events/{event['id']}/replay"
    assert http.post(replay, json={"reason": ""}).status_code == 422
    again = http.post(replay, json={"reason": "lost there"})
    assert (again.status_code, len(again.json()["events"])) == (201, 1)
    until(http, quiet)
    assert http.post("/api/workflows/shop/events/evt_nothing/replay", json={"reason": "x"}).status_code == 404
    by_hand = shop.terminal("workflow", "replay", "shop", event["id"], "--reason", "again")
    assert "is published again as evt_" in by_hand.out, by_hand.err
    drained = http.post("/api/workflows/shop/drain", json={"note": "deploy"})
    assert drained.status_code == 202
    found = until(http, lambda found: found["paused"])
    assert (found["draining"], found["issue"]["message"]) == (False, "Paused by a person: deploy.")
    assert http.post("/api/workflows/shop/drain").status_code == 409
    assert http.post("/api/workflows/shop/resume").json()["paused"] is False
    assert shop.terminal("workflow", "drain", "shop", "--wait").out == "shop is drained, and paused\n"
    assert shop.terminal("workflow", "resume", "shop").code == 0
    did = [(one["who"], one["action"]) for one in http.get("/api/workflows/shop").json()["actions"]]
    assert ("admin", "replayed") in did
    assert did[0][0].startswith("cli")
    assert http.get("/api/workflows/shop/fixes").json() == {"items": [], "next": None}
    assert shop.terminal("workflow", "fixes", "shop").out == "shop has no corrections.\n"


def test_every_answer_of_workflows_is_described(http):
    described = http.get("/api/openapi.json").json()
    found = {
        (path, verb): operation["responses"]
        for path, operations in described["paths"].items()
        if path.startswith("/api/workflows")
        for verb, operation in operations.items()
    }
    assert len(found) == 20
    for place, responses in found.items():
        good = [answer for status, answer in responses.items() if status.startswith("2")]
        assert all(answer["content"]["application/json"]["schema"] != {} for answer in good), place


def test_a_viewer_may_look_and_not_act(shop):
    made = shop.terminal("token", "create", "looker", "--role", "viewer").out.strip()
    headers = {"Authorization": f"Bearer {made}"}
    with httpx.Client(base_url=shop.url, headers=headers, timeout=PATIENCE, trust_env=False) as viewer:
        assert viewer.get("/api/workflows").status_code == 200
        assert viewer.post("/api/workflows/shop/pause").status_code == 403
        assert viewer.get("/api/workflows/nothing").status_code == 404
        assert viewer.get("/api/workflows/shop/fixes").status_code == 403


def test_a_workflow_is_removed_over_http_and_on_the_command_line(shop, http):
    assert shop.terminal("workflow", "remove", "bad", "--json").json == {"name": "bad", "to_settle": []}
    assert http.get("/api/workflows/bad").status_code == 404
    until(http, quiet)
    assert http.delete("/api/workflows/shop").json() == {"name": "shop", "to_settle": []}
    assert http.delete("/api/workflows/shop").status_code == 404
    assert http.get("/api/jobs/shop.poll").status_code == 404
