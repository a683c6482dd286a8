"""`node list` and `node drain`: who shares a store, and taking one out of service."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from tests.cli.terminal import PATIENCE
from tests.store.postgres_server import postgres_url
from tests.store.samples import OpenStore
from wakeful import NodeNotAlive, NodeNotFound, Scheduler
from wakeful.clock import SystemClock
from wakeful.kernel.cluster.nodes import Seen, list_nodes
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.store.records import NodeDetails
from wakeful.store.tables import known_tables
from wakeful.surfaces.cli.nodes import latest

NODES = next(table for table in known_tables() if table.name == "nodes")


@pytest.fixture(scope="module")
def url():
    return postgres_url()


TIMES = LeaseTimes()


@pytest.fixture
def fleet():
    """A database with nodes in every state, as if they had been there for an hour."""
    url = postgres_url()
    with OpenStore(url, SystemClock()) as store:
        now = store.read(lambda tx: tx.facts.database_now())
        hour, lease = now - 3_600_000, TIMES.lease_ms
        about = {"host": "mill", "pid": 7, "labels": ["gpu"], "kinds": ["command"], "version": "0.2.0", "schema": 6}
        details = json.dumps(about)
        rows = [
            NodeDetails(1, "north", hour, hour, hour + 5, details, None, 0, hour),
            NodeDetails(2, "north", hour, now, None, details, None, 0, now),
            NodeDetails(3, "south", hour, now, None, details, None, 1, now),
            NodeDetails(4, "east", hour, now - 2 * lease, None, "{}", None, 0, None),
            NodeDetails(5, "west", hour, now - 2 * lease, now - lease, details, 2, 0, hour),
            NodeDetails(6, "busy", hour, now, None, details, None, 0, now - TIMES.stalled_ms - 1),
            NodeDetails(7, "gone", hour, now, now, details, None, 0, now),
            NodeDetails(8, "cli:mill-1", hour, now, now, details, None, 0, now),
            NodeDetails(9, "cli:mill-2", hour, now, None, details, None, 0, now),
        ]
        store.write(lambda tx: tx.tables.fill(NODES, rows))
    return url


def test_every_state_a_node_can_be_in_is_shown(fleet):
    with OpenStore(fleet, SystemClock()) as store:
        found = store.read(lambda tx: list_nodes(tx, Seen(), 100))
    assert [(node.name, node.state, node.stalled, node.taken_by) for node in found] == [
        ("north", "stopped", False, None),
        ("north", "alive", False, None),
        ("south", "drained", False, None),
        ("east", "silent", False, None),
        ("west", "dead", False, "north"),
        ("busy", "alive", True, None),
        ("gone", "stopped", False, None),
        ("cli:mill-1", "stopped", False, None),
        ("cli:mill-2", "alive", False, None),
    ]
    assert [node.name for node in latest(found) if node.name.startswith("cli:")] == ["cli:mill-2"], "a run that is over"
    assert [node.state for node in latest(found) if node.name == "north"] == ["alive"]


def test_a_listing_of_nodes_says_all_there_is_to_know(wakeful, fleet):
    found = {node["name"]: node for node in wakeful("node", "list", "--db", fleet, "--json").json}
    assert set(found) == {"north", "south", "east", "west", "busy", "gone", "cli:mill-2"}
    assert set(found["north"]) == {
        "id", "name", "state", "host", "pid", "version", "schema", "labels", "kinds", "started_at", "seen_at",
        "stopped_at", "loop_at", "stalled", "running", "taken_by",
    }  # fmt: skip
    assert (found["north"]["host"], found["north"]["labels"], found["east"]["pid"]) == ("mill", ["gpu"], None)
    text = wakeful("node", "list", "--db", fleet).out
    for words in ("dead, taken over by north", "stalled", "drained", "silent", "stopped", "turning"):
        assert words in text
    everyone = wakeful("node", "list", "--all", "--db", fleet, "--json").json
    assert [node["name"] for node in everyone].count("north") == 2


def test_a_listing_fits_the_terminal(wakeful, fleet, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    lines = wakeful("node", "list", "--db", fleet).out.splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[0].split()[:2] == ["NAME", "STATE"]


def test_without_any_server_yet_the_listing_says_that(wakeful, store):
    assert wakeful("node", "list").out == f"No server is running on {store}, and none has yet: wakeful serve\n"
    assert wakeful("node", "list", "--json").json == []


def test_a_file_has_one_node_and_it_cannot_be_drained(terminal):
    server = terminal.serve("--node", "kitchen", "--port", "0")
    (node,) = terminal.ask("node", "list", "--json").json
    assert (node["name"], node["state"], node["pid"]) == ("kitchen", "alive", server.pid)
    answer = terminal.ask("node", "drain", "kitchen")
    assert (answer.code, answer.err) == (
        4, "Error: A SQLite store has only one node, so no other can take over its work: stop its server instead.\n"
    )  # fmt: skip
    assert node["seen_at"] > node["started_at"], "the lock says that it lives"
    server.kill()
    assert terminal.ask("node", "list", "--json").json == []
    said = terminal.ask("node", "list").out
    assert said.startswith(f"No server is running on {terminal.folder}/.wakeful/wakeful.db: wakeful serve. ")
    assert f"The last one, process {server.pid} on " in said
    assert "ended without stopping" in said
    (node,) = terminal.ask("node", "list", "--all", "--json").json
    assert node["state"] == "dead"


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["nroth"], 3, "There is no node 'nroth'. Did you mean 'north'?"),
        (["west"], 4, "Node west is dead: only a node that is alive can be drained."),
        (["east"], 4, "Node east is silent: only a node that is alive can be drained."),
        (["gone"], 4, "Node gone is stopped: only a node that is alive can be drained."),
        (["north", "--wait", "soon"], 2, "Expected format"),
        (["north", "--undo", "--wait", "1s"], 2, "--undo has nothing to wait for: leave out --wait."),
    ],
)
def test_only_a_living_node_can_be_drained(wakeful, fleet, argv, code, said):
    answer = wakeful("node", "drain", *argv, "--db", fleet)
    assert answer.code == code
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


def test_draining_is_asked_for_and_taken_back(wakeful, fleet):
    answer = wakeful("node", "drain", "north", "--db", fleet)
    assert (answer.code, answer.out) == (0, "north is drained and can be stopped\n")
    states = {node["name"]: node["state"] for node in wakeful("node", "list", "--db", fleet, "--json").json}
    assert states["north"] == "drained"
    assert wakeful("node", "drain", "north", "--undo", "--db", fleet).out == "north starts runs again\n"
    assert wakeful("node", "drain", "south", "--undo", "--db", fleet, "--json").json["state"] == "alive"


def test_the_library_says_the_same(fleet):
    async def main():
        async with Scheduler(fleet) as scheduler:
            assert (await scheduler.drain_node("north")).state == "drained"
            assert (await scheduler.drain_node("north", drain=False)).state == "alive"
            with pytest.raises(NodeNotFound):
                await scheduler.drain_node("nobody")
            with pytest.raises(NodeNotAlive):
                await scheduler.drain_node("west")
            assert len(await scheduler.list_nodes()) == 9

    asyncio.run(main())


@pytest.mark.promise("X2")
def test_a_drained_node_finishes_what_it_runs_and_the_other_takes_the_rest(terminal, url):
    inside, out = terminal.pipe("inside"), terminal.pipe("out")
    first = terminal.serve("--db", url, "--node", "first", "--port", "0")
    terminal.ask(
        "add", "slow", "--at", "now", "--db", url, "--", "sh", "-c", f"echo in > {inside.path}; read a < {out.path}"
    )
    assert inside.line() == "in"
    terminal.serve("--db", url, "--node", "second", "--port", "0")
    answer = terminal("node", "drain", "first", "--wait", "1s", "--db", url)
    assert (answer.code, answer.out) == (1, "first is draining; 1 run still active\n")
    assert "1 run still active" in answer.err
    for number in range(5):
        terminal.ask("add", f"quick-{number}", "--at", "now", "--db", url, "--", "true")
        run = until_done(terminal, url, f"quick-{number}")
        assert (run["outcome"], run["node"]) == ("success", "second")
    waiting = terminal.start("node", "drain", "first", "--wait", f"{PATIENCE}s", "--db", url)
    waiting.until("1 run still active")
    out.write("go on")
    answer = waiting.ended()
    assert (answer.code, answer.out) == (0, "first is drained and can be stopped\n")
    first.signal(signal.SIGTERM)
    assert first.ended().code == 0
    states = {node["name"]: node["state"] for node in terminal.ask("node", "list", "--db", url, "--json").json}
    assert states == {"first": "stopped", "second": "alive"}
    assert until_done(terminal, url, "slow")["node"] == "first"


def until_done(terminal, url, name):
    async def main():
        async with asyncio.timeout(PATIENCE), Scheduler(url) as scheduler:
            while not (log := await scheduler.get_run_log(name, 1)) or log[0].outcome is None:
                pass
            return log[0].to_dict()

    return asyncio.run(main())


def test_a_run_by_hand_is_a_node_too_while_it_lasts(wakeful, here):
    del here
    wakeful("add", "job", "--every", "1h", "--", "true")
    wakeful("run", "job")
    assert "and none has yet: wakeful serve" in wakeful("node", "list").out, "it is no server"
    (node,) = wakeful("node", "list", "--all", "--json").json
    assert node["state"] == "stopped"
    assert node["name"].startswith("cli:")


def test_a_database_without_a_store_is_an_answer_and_no_error(wakeful):
    url = postgres_url()
    found = wakeful("status", "--db", url)
    assert (found.code, "nothing is scheduled yet" in found.out, "(none yet)" in found.out) == (0, True, True)
    assert wakeful("status", "--db", url, "--json").json["exists"] is False
    assert "No jobs" in wakeful("list", "--db", url).out
    assert "none yet" in wakeful("doctor", "--db", url).out
