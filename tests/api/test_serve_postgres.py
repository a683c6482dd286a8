"""Servers that share a PostgreSQL: tokens are good on all of them, and health says when it is out of reach."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from tests.store.postgres_server import PostgresServer, postgres_url
from wakeful.clock import SystemClock


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def serve(terminal, url, node):
    server = Server(terminal, "--db", url, "--node", node)
    said = "".join(server.process._said["err"])
    found = re.search(r"the admin token is in (\S+)", said)
    return server, found[1] if found else None


def test_a_token_is_good_on_every_node_and_worthless_on_every_node_once_revoked(terminal):
    url = postgres_url()
    (one, path), (two, same) = serve(terminal, url, "one"), serve(terminal, url, "two")
    assert path == same
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - named by the server
        token = file.read().strip()
    with one.client(token) as first, two.client(token) as second:
        assert [client.get("/api/me").json()["name"] for client in (first, second)] == ["admin", "admin"]
        assert terminal("token", "revoke", "admin", "--db", url).code == 0
        assert [client.get("/api/me").status_code for client in (first, second)] == [401, 401]


def test_a_name_that_is_alive_is_refused_in_a_sentence(terminal):
    url = postgres_url()
    serve(terminal, url, "one")
    answer = terminal("serve", "--port", "0", "--db", url, "--node", "one")
    assert (answer.code, answer.out, answer.err.count("\n")) == (4, "", 1)
    assert "A node named one is alive" in answer.err


def test_a_database_out_of_reach_is_reported_by_health_until_it_is_back(terminal):
    database = PostgresServer()
    try:
        database.start()
        server, _ = serve(terminal, database.new_database(), "one")
        with server.client() as client:
            assert client.get("/readyz").status_code == 200
            database.stop()
            sick = until(client, 503)
            assert sick["status"] == "unavailable"
            assert sick["reasons"] == ["The database is unavailable: the server's log says why."]
            assert client.get("/livez").status_code == 200
            known = {"Authorization": f"Bearer wk_{'x' * 40}"}
            away = [client.get("/api/jobs", headers=known), client.post("/api/jobs", json={}, headers=known)]
            away += [client.get("/ping/no-such-key"), client.post("/hooks/a/b"), client.get("/api/me", headers=known)]
            for answer in away:  # whoever asks: a token cannot be checked now
                assert (answer.status_code, answer.json()["code"]) == (503, "store_unreachable"), answer.text
                said = answer.json()["error"]
                assert said == "The database is unavailable: try again later. The server's log says why."
            database.start()
            assert until(client, 200) == {"status": "ok", "version": sick["version"], "reasons": []}
    finally:
        database.remove()


def until(client: httpx.Client, status: int):
    """Ask until the server is as it should be; each answer takes a moment."""
    clock = SystemClock()
    end = clock.boot() + PATIENCE * 1000
    while (answer := client.get("/readyz")).status_code != status:
        assert clock.boot() < end, answer.text
    return answer.json()
