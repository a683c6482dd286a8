"""`Idempotency-Key` on what agents and workflows are asked for: sent twice, it is done once."""

from __future__ import annotations

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually

FILE = """
connectors:
  disk: {type: file, path: out.jsonl}
agents:
  fox:
    runner: {start: [cat]}
    deliver: disk
    schedules: {call: {webhook: {verify: bearer, secret: open-sesame-of-the-fox}, prompt: "{payload.word}"}}
workflows: ["flow.py:flow"]
"""
FLOW = """
from wakeful import Interval, Prepared, Workflow

flow = Workflow("flow")


@flow.producer(Interval("1d"), publishes=["rows"])
async def poll(ctx, state):
    item = await ctx.register_input("mail", "letter", "m1", title="A letter")
    await ctx.publish("rows", message_id="m1", payload={}, input=item)
    return {}


keep = flow.consumer("keep", subscribes=["rows", "other"])


@keep.prepare
async def prepare(ctx, state):
    return Prepared(reserve={topic: [event.id for event in await ctx.peek(topic)] for topic in ("rows", "other")})


@keep.mutate
async def mutate(ctx, prepared):
    return None


@keep.next
async def next_(ctx, prepared, result):
    return {}
"""
#: POSTs that are answered with 201 or 202 and take no key: their requests carry an id of their own, or make nothing.
OTHERS = {"call_hook", "ping", "ping_what", "get_ping", "complete_run", "cancel_run", "drain_workflow"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("orders"))
    (terminal.folder / "wakeful.yaml").write_text(FILE)
    (terminal.folder / "flow.py").write_text(FLOW)
    yield Server(terminal)
    terminal.close()


def twice(client, path, body, key):
    """The answers to a request that is sent twice under one key, and the one to another request under that key."""
    headers = {"Idempotency-Key": key}
    first, second = (client.post(path, json=body, headers=headers) for _ in range(2))
    assert first.status_code in (200, 201, 202), first.text
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert ("Idempotent-Replayed" in first.headers, second.headers["Idempotent-Replayed"]) == (False, "true")
    other = client.post("/api/work", json={"agent": "fox", "title": "another request"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    return first.json()


def test_a_work_item_is_added_once(client):
    made = twice(client, "/api/work", {"agent": "fox", "title": "sort"}, "one item")
    items = client.get("/api/work", params={"agent": "fox"}).json()["items"]
    assert [item["id"] for item in items if item["title"] == "sort"] == [made["id"]]


def test_an_event_is_left_once_and_a_wake_is_one_run(client):
    client.post("/api/agents/fox/pause")
    assert twice(client, "/api/agents/fox/events", {"text": "look"}, "one event")["waiting"] == 1
    assert [event["text"] for event in client.get("/api/agents/fox").json()["events"]] == ["look"]
    client.post("/api/agents/fox/resume")
    run = twice(client, "/api/agents/fox/wake", {}, "one wake")["run"]
    eventually(lambda: client.get(f"/api/runs/{run}").json()["outcome"], bool)
    assert client.post("/api/agents/fox/wake", headers={"Idempotency-Key": "one wake"}, json={}).json()["run"] == run
    assert [one["id"] for one in client.get("/api/jobs/fox.wake/runs").json()["items"]] == [run]


def test_a_message_without_an_id_is_passed_on_once(client):
    body = {"connector": "disk", "sender": "ann", "text": "hello", "agent": "fox"}
    request = twice(client, "/api/messages", body, "one message")["request"]
    assert [one["id"] for one in client.get("/api/requests").json()["items"] if one["type"] == "chat"] == [request]


def test_a_request_is_replayed_once(client, server):
    headers = {"Authorization": "Bearer open-sesame-of-the-fox"}
    httpx.post(f"{server.url}/hooks/fox/call", json={"word": "hi"}, headers=headers, trust_env=False).raise_for_status()
    first = next(one for one in client.get("/api/requests").json()["items"] if one["type"] == "webhook")
    run = twice(client, f"/api/requests/{first['id']}/replay", None, "one replay")["run"]
    runs = client.get("/api/jobs/fox.call/runs").json()["items"]
    assert (len(runs), runs[0]["id"]) == (2, run)


def test_a_workflow_runs_once_and_its_events_are_published_once(client):
    path = "/api/workflows/flow/inputs"
    [given] = eventually(
        lambda: client.get(path).json()["items"], lambda items: [one["status"] for one in items] == ["done"]
    )
    eventually(lambda: client.get("/api/workflows/flow").json()["status"], lambda status: status == "idle")
    before = len(client.get("/api/jobs/flow.poll/runs").json()["items"])
    twice(client, "/api/workflows/flow/run", None, "one start")
    assert len(client.get("/api/jobs/flow.poll/runs").json()["items"]) == before + 1
    twice(client, "/api/workflows/flow/topics/other", {"message_id": "n1", "payload": {}}, "one message by hand")
    made = twice(client, f"{path}/{given['id']}/rerun", {"reason": "again"}, "one rerun")["events"]
    assert len(client.get("/api/workflows/flow/events", params={"topic": "rows"}).json()["items"]) == 1 + len(made)


def test_every_post_that_makes_or_starts_something_takes_a_key(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    posts = {one["post"]["operationId"]: one["post"] for one in paths.values() if "post" in one}
    starting = {name for name, post in posts.items() if {"201", "202"} & post["responses"].keys()}
    keyless = {
        name
        for name in starting
        if "Idempotency-Key" not in [given["name"] for given in posts[name].get("parameters", [])]
    }
    assert keyless <= OTHERS


def test_nodes_are_a_list_as_every_other(client):
    listed = client.get("/api/nodes").json()
    assert (len(listed["items"]), listed["next"]) == (1, None)
