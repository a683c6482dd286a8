"""`Idempotency-Key`: a request that is sent again is done once, no matter which process dies in between."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from wakeful.routing.idempotency import Keyed, answer


def keyed(client, path, body, key, how="POST"):
    return client.request(how, path, json=body, headers={"Idempotency-Key": key})


def test_the_same_request_is_answered_the_same_and_done_once(client, name):
    body = {"name": name, "every": "6h"}
    first, second = (keyed(client, "/api/jobs", body, f"make-{name}") for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    for header in ("Location", "ETag", "content-type"):
        assert first.headers[header] == second.headers[header]
    assert ("Idempotent-Replayed" in first.headers, second.headers["Idempotent-Replayed"]) == (False, "true")
    runs = [keyed(client, f"/api/jobs/{name}/run", {}, f"run-{name}") for _ in range(3)]
    assert {answer.status_code for answer in runs} == {202}
    assert len({answer.headers["Location"] for answer in runs}) == 1
    assert len(client.get(f"/api/jobs/{name}/runs").json()["items"]) == 1


def test_the_order_of_fields_makes_no_other_request(client, name):
    assert keyed(client, "/api/jobs", {"name": name, "every": "6h"}, name).status_code == 201
    assert keyed(client, "/api/jobs", {"every": "6h", "name": name}, name).status_code == 201


def test_a_key_is_for_one_request(client, name):
    keyed(client, "/api/jobs", {"name": name, "every": "6h"}, name)
    other = keyed(client, "/api/jobs", {"name": name, "every": "7h"}, name)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert keyed(client, f"/api/jobs/{name}/run", {"name": name}, name).status_code == 422
    assert client.get(f"/api/jobs/{name}").json()["trigger"]["interval"] == "6h"


def test_a_key_is_for_one_method_and_one_address():
    asked = []

    async def work(once):
        asked.append((once.caller, once.key, once.request))

    for how, path in (("POST", "/api/jobs"), ("PUT", "/api/jobs"), ("POST", "/api/jobs/a/run")):
        asyncio.run(Keyed("ann", "one", how, path, "hash").do(work, lambda _: answer(200, None)))
    assert len(set(asked)) == 3


def test_each_caller_has_keys_of_its_own(client, client_for, name):
    keyed(client, "/api/jobs", {"name": name, "every": "6h"}, "shared")
    other = keyed(client_for("operator"), "/api/jobs", {"name": f"{name}-2", "every": "6h"}, "shared")
    assert (other.status_code, "Idempotent-Replayed" in other.headers) == (201, False)


def test_what_was_refused_leaves_the_key_free(client, name):
    assert keyed(client, f"/api/jobs/{name}/run", {}, name).status_code == 404
    client.post("/api/jobs", json={"name": name, "every": "6h"})
    assert keyed(client, f"/api/jobs/{name}/run", {}, name).status_code == 202


@pytest.mark.parametrize("key", ["", "x" * 201, "\u00fc", "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(client, name, key):
    answer = client.post(
        "/api/jobs", json={"name": name, "every": "6h"}, headers={"Idempotency-Key": key.encode("latin-1")}
    )
    assert answer.status_code == 400
    assert client.get(f"/api/jobs/{name}").status_code == 404


def test_of_many_at_once_one_is_done_and_all_are_answered_alike(client, server, name):
    client.post("/api/jobs", json={"name": name, "every": "6h", "kind": "nobody's"})

    def ask(_):
        with server.client(server.token) as own:
            return keyed(own, f"/api/jobs/{name}/run", {}, name)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 23
    assert len(client.get(f"/api/jobs/{name}/runs").json()["items"]) == 1


def test_servers_that_are_killed_do_nothing_twice_and_forget_nothing(tmp_path):
    """Each job is asked for until there is an answer. Done twice it would be refused, for its name is taken."""
    terminal = Terminal(tmp_path)
    try:
        server, killed = Server(terminal), 0
        for number in range(60):
            if number % 15 == 14:  # in the middle of a request, somewhere
                with ThreadPoolExecutor(1) as pool:
                    going = pool.submit(_make, server, number)
                    server.process.signal(signal.SIGKILL)
                    killed += 1
                    answer = going.result()
                server.process.ended()
                server = Server(terminal)
                if answer is not None:
                    assert _make(server, number).headers["Idempotent-Replayed"] == "true"
            answer = _make(server, number)
            assert answer is not None
            assert answer.status_code == 201, answer.text
        with server.client(server.token) as client:
            assert len(client.get("/api/jobs", params={"limit": 500}).json()["items"]) == 60
        assert killed == 4
    finally:
        terminal.close()


def _make(server, number):
    """The answer, or None when the server died before it gave one."""
    with server.client(server.token) as client:
        try:
            return keyed(client, "/api/jobs", {"name": f"job-{number:03}", "every": "6h"}, f"key-{number}")
        except httpx.TransportError:
            return None
