"""The file of a server: applied before anything of it starts, whole or not at all."""

from __future__ import annotations

import re
import signal
import sqlite3

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal
from tests.waiting import eventually

pytestmark = pytest.mark.promise("X15")

HEAD = "store: sqlite:///t.db\nconnectors:\n  disk: {type: file, path: out.jsonl}\n"


@pytest.fixture
def terminal(tmp_path):
    made = Terminal(tmp_path)
    yield made
    made.close()


def write(terminal, *jobs, head=HEAD):
    """A file with these jobs, each of which notes that it ran."""
    lines = [f'  {name}: {{every: 1h, command: ["sh", "-c", "echo {name} >> ran.txt"]}}' for name in jobs]
    (terminal.folder / "wakeful.yaml").write_text("\n".join([f"{head}jobs:", *lines, ""]))


def overdue(terminal):
    """An hour passes while no server runs."""
    with sqlite3.connect(terminal.folder / "t.db") as connection:
        connection.execute(
            "UPDATE job_state SET slot = slot - 3600000, next_at = next_at - 3600000, due_at = due_at - 3600000 "
            "WHERE next_at IS NOT NULL"
        )
    connection.close()


def served(terminal, *options):
    process = terminal.start("serve", "--port", "0", "--config", "wakeful.yaml", *options)
    url = re.search(r"http://\S+:\d+", process.until("listening on"))[0]
    token = terminal.ask("token", "create", f"ops{process.pid}", "--role", "operator").out.strip()
    headers = {"Authorization": f"Bearer {token}"}
    return process, httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False)


def ran(terminal):
    file = terminal.folder / "ran.txt"
    return file.read_text().split() if file.exists() else []


def stop(process):
    process.signal(signal.SIGTERM)
    assert process.ended().code == 0


def test_what_was_deleted_from_the_file_while_no_server_ran_does_not_start(terminal):
    write(terminal, "a", "b", "c", "d")
    assert terminal("apply").code == 0
    overdue(terminal)
    write(terminal, "a", "b", "c")
    process, client = served(terminal)
    with client:
        assert client.get("/api/jobs/d").status_code == 404
        eventually(lambda: sorted(ran(terminal)), lambda found: found == ["a", "b", "c"])
    stop(process)
    assert sorted(ran(terminal)) == ["a", "b", "c"]


def test_the_first_answer_of_a_server_knows_the_jobs_of_its_file(terminal):
    names = [f"job{number}" for number in range(200)]
    write(terminal, *names)
    process, client = served(terminal)
    with client:
        assert client.get(f"/api/jobs/{names[-1]}").status_code == 200
    stop(process)


def test_where_the_file_is_refused_nothing_of_it_starts_until_it_is_settled(terminal):
    write(terminal, "a", "b", "c", "d")
    assert terminal("apply").code == 0
    assert terminal("add", "mine", "--every", "1h", "--", "sh", "-c", "echo mine >> ran.txt").code == 0
    overdue(terminal)
    write(terminal, "a")
    process, client = served(terminal)
    with client:
        eventually(lambda: ran(terminal), lambda found: "mine" in found)
        assert client.post("/api/jobs/b/run").status_code < 300
        found = eventually(lambda: client.get("/api/jobs/a").json(), lambda job: job["waiting_for"] is not None)
        assert found["waiting_for"] == "file:main"
        assert "its configuration file" in terminal.ask("explain", "a").out
        (alert,) = [one for one in client.get("/api/alerts").json()["items"] if one["kind"] == "config"]
        assert "The file would remove 3 of its 4 jobs" in alert["message"]
        assert "Until this is settled, none of its jobs starts here." in alert["message"]
        assert set(ran(terminal)) == {"mine"}
        assert terminal("apply", "--yes").code == 0
        eventually(lambda: ran(terminal), lambda found: "a" in found)
        eventually(lambda: [one["kind"] for one in client.get("/api/alerts").json()["items"]], lambda kinds: not kinds)
    stop(process)
    assert set(ran(terminal)) == {"mine", "a"}


def test_a_refused_file_is_settled_by_one_that_is_good(terminal):
    write(terminal, "a", "b", "c", "d")
    assert terminal("apply").code == 0
    overdue(terminal)
    write(terminal, "a")
    process, client = served(terminal)
    with client:
        eventually(lambda: client.get("/api/jobs/b").json()["waiting_for"], bool)
        write(terminal, "a", "b", "c")
        eventually(lambda: sorted(ran(terminal)), lambda found: found == ["a", "b", "c"])
    stop(process)


def test_a_file_that_is_refused_while_it_is_served_changes_nothing(terminal):
    write(terminal, "a", "b", "c", "d")
    process, client = served(terminal)
    with client:
        before = client.get("/api/connectors").json()["items"]
        other = "store: sqlite:///t.db\nconnectors:\n  other: {type: file, path: other.jsonl}\nalerts: {to: other}\n"
        write(terminal, "a", head=other)
        eventually(lambda: [one["kind"] for one in client.get("/api/alerts").json()["items"]], bool)
        assert client.get("/api/connectors").json()["items"] == before
        assert client.get("/api/jobs/d").status_code == 200
        assert client.post("/api/connectors/disk/test").json()["status"] == "sent"
        write(terminal, "a", "b", "c", head=other)
        eventually(lambda: client.get("/api/jobs/d").status_code, lambda status: status == 404)
        assert [one["name"] for one in client.get("/api/connectors").json()["items"]] == ["other"]
    stop(process)


def test_what_takes_effect_at_the_next_start_says_so_when_it_is_changed(terminal):
    write(terminal, "a")
    process, client = served(terminal)
    with client:
        write(terminal, "a", head=f"{HEAD}alerts: {{to: disk}}\nlimits: {{max_running: 3, cost_per_day: 5}}\n")
        process.until("what changed in limits takes effect at the next start")
        write(terminal, "a", "b", head=f"{HEAD}limits: {{max_running: 3}}\nretention: {{age: 3d}}\n")
        process.until("what changed in retention and limits takes effect at the next start")
        write(terminal, "a", "b", "c", head=f"{HEAD}limits: {{cost_per_day: 7}}\n")
        eventually(lambda: client.get("/api/jobs/c").status_code, lambda status: status == 200)
    stop(process)
    said = process.ended()
    assert (said.out + said.err).count("at the next start") == 2
