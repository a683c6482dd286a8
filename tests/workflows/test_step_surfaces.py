"""Steps and parked events over HTTP and on the command line, with one real server that is also killed."""

from __future__ import annotations

import json

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually

WORKFLOW = """
import os, pathlib, time
from wakeful import Workflow

workflow = Workflow("shop")
LEDGER = pathlib.Path(__file__).with_name("ledger")

def enter(what):
    if what == "bad" and not LEDGER.with_name("mended").exists():
        raise ValueError("no such order")
    with LEDGER.open("a") as file:
        file.write(f"{what}\\n")
    if what == "kill" and not LEDGER.with_name("killed").exists():
        LEDGER.with_name("killed").touch()
        os.kill(os.getpid(), 9)
    return {"entered": what}

@workflow.on("orders", retry=["1s"], on_failure="park", key=lambda event: event.message_id, concurrency=3)
def book(ctx, event):
    ctx.step("look", len, event.message_id)
    ctx.step("enter", enter, event.message_id)
"""


@pytest.fixture
def shop(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("steps"))
    (terminal.folder / "shop.py").write_text(WORKFLOW)
    (terminal.folder / "wakeful.yaml").write_text('workflows: ["shop.py:workflow"]\n')
    yield terminal
    terminal.close()


def orders(http, status=None):
    params = {"topic": "orders", "limit": 100, **({"status": status} if status else {})}
    found = http.get("/api/workflows/shop/events", params=params).json()["items"]
    return {event["message_id"]: event for event in found}


def publish(http, name):
    return http.post("/api/workflows/shop/topics/orders", json={"message_id": name, "payload": {}}).status_code


def settled(found):
    return found and not {event["status"] for event in found.values()} & {"pending", "reserved"}


@pytest.mark.promise("X32")
def test_a_parked_event_is_shown_replayed_and_skipped_on_every_surface(shop):
    server = Server(shop, "--config", "wakeful.yaml")
    with server.client(server.token) as http:
        eventually(lambda: http.get("/api/workflows/shop").json(), lambda found: found.get("handlers"))
        assert [publish(http, name) for name in ("good", "bad")] == [201, 201]
        found = eventually(lambda: orders(http), settled)
        assert {name: event["status"] for name, event in found.items()} == {"good": "consumed", "bad": "parked"}
        bad = orders(http, "parked")["bad"]
        assert (bad["error"], bad["tries"]) == ("enter: no such order", 2)
        run = http.get(f"/api/runs/{bad['run']}").json()
        assert [(one["name"], one["status"], one["attempts"], one["value"], one["error"]) for one in run["steps"]] == [
            ("look", "done", 1, 3, None),
            ("enter", "failed", 2, None, "no such order"),
        ]
        shown = shop("show", bad["run"]).out
        assert "look: done\n" in shown
        assert "enter: failed, 2 attempts (no such order)\n" in shown
        view = http.get("/api/workflows/shop").json()
        assert (view["parked"], view["status"]) == (1, "needs_attention")
        assert http.get("/api/verdict").json()["state"] == "needs_you"
        shown = shop("workflow", "parked", "shop").out
        assert all(part in shown for part in ("bad", "2", "enter: no such order", bad["id"]))
        assert json.loads(shop("workflow", "parked", "shop", "--json").out)[0]["id"] == bad["id"]
        assert "1 event of shop is parked" in shop("workflow", "show", "shop").out
        (shop.folder / "mended").touch()
        again = http.post(f"/api/workflows/shop/events/{bad['id']}/replay")
        assert (again.status_code, again.json()["events"]) == (201, [bad["id"]])
        eventually(lambda: orders(http), settled)
        assert (shop.folder / "ledger").read_text().split() == ["good", "bad"]
        (shop.folder / "mended").unlink()
        publish(http, "bad2")
        assert shop("workflow", "replay", "shop").code != 0
        assert shop("workflow", "replay", "shop", "--parked").out == "0 events replayed\n"
        assert http.get("/api/verdict").json()["state"] != "needs_you"


@pytest.mark.promise("X32")
def test_a_server_that_is_killed_in_a_step_asks_a_person_and_repeats_nothing(shop):
    server = Server(shop, "--config", "wakeful.yaml")
    with server.client(server.token) as http:
        eventually(lambda: http.get("/api/workflows/shop").json(), lambda found: found.get("handlers"))
        publish(http, "kill")
        server.process.ended()
    again = Server(shop, "--config", "wakeful.yaml")
    with again.client(again.token) as http:
        found = eventually(lambda: orders(http), settled)
        assert found["kill"]["status"] == "parked"
        assert "not known whether the step 'enter' happened" in found["kill"]["error"]
        run = found["kill"]["run"]
        assert [one["status"] for one in http.get(f"/api/runs/{run}").json()["steps"]] == ["done", "uncertain"]
        assert shop("workflow", "settle", "shop", run, "happened").code == 0
        eventually(lambda: orders(http), lambda found: found["kill"]["status"] == "consumed")
        assert (shop.folder / "ledger").read_text().split() == ["kill"]
