"""Tokens and roles: who gets in, as what, and what becomes of those who guess."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest

from wakeful import Scheduler
from wakeful.clock import ManualClock
from wakeful.routing.auth import (
    FREE_FAILURES,
    MOST_ADDRESSES,
    WINDOW_MS,
    Admin,
    Anyone,
    Failures,
    Gate,
    Operator,
    Viewer,
)
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app


def test_without_a_token_there_is_no_answer_but_how_to_send_one(server):
    with server.client() as client:
        answer = client.get("/api/me")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    data = answer.json()
    assert (data["code"], data["status"], data["title"]) == ("unauthorized", 401, "Unauthorized")
    assert data["error"] == data["detail"] == "This needs a token: send it as Authorization: Bearer wk_…."


@pytest.mark.parametrize("role", ["viewer", "operator", "admin", "agent"])
def test_a_token_has_the_role_it_was_created_with(client_for, role):
    assert client_for(role).get("/api/me").json() == {"name": f"{role}-token", "role": role}


def test_a_token_made_beside_a_running_server_is_good_at_once_and_worthless_once_revoked(server):
    token = server.terminal.ask("token", "create", "short", "--role", "viewer").out.strip()
    with server.client(token) as client:
        assert client.get("/api/me").status_code == 200
        assert server.terminal.ask("token", "revoke", "short").code == 0
        assert client.get("/api/me").status_code == 401


@pytest.mark.parametrize(
    "sent",
    ["wk_nobody", "Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer wk_\xff", "Bearer " + "x" * 5000, "wk_"],
)
def test_whatever_else_is_sent_is_no_token(server, sent):
    with server.client() as client:
        answer = client.get("/api/me", headers={"Authorization": sent.encode("latin-1")})
    assert answer.status_code == 401


def test_no_token_is_stored_or_shown(server, token_for):
    secret = token_for("viewer")
    with server.client(secret) as client:
        assert client.post("/api/nothing", params={"token": secret}).status_code == 404
    stored = b"".join(file.read_bytes() for file in (server.folder / ".wakeful").glob("wakeful.db*") if file.is_file())
    assert server.token.encode() in stored  # in the file that is there for it, and nowhere else
    assert stored.count(server.token.encode()) == 1
    assert secret.encode() not in stored
    said = "".join(line for lines in server.process._said.values() for line in lines)
    assert secret not in said
    assert server.token not in said


# -- roles ------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def opened(tmp_path, clock=None):
    """A scheduler with a token of each role, and an app with a route for each."""
    async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
        app = create_app(scheduler, ServerSettings())
        if clock is not None:
            app.state.gate = Gate(scheduler, clock)

        @app.get("/anyone")
        async def anyone(caller: Anyone) -> str:
            return caller.name

        @app.get("/viewer")
        async def viewer(caller: Viewer) -> str:
            return caller.name

        @app.get("/operator")
        async def operator(caller: Operator) -> str:
            return caller.name

        @app.get("/admin")
        async def admin(caller: Admin) -> str:
            return caller.name

        tokens = {role: await scheduler.create_token(role, role) for role in ("viewer", "operator", "admin", "agent")}
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:

            async def ask(path, secret):
                return await client.get(path, headers={"Authorization": f"Bearer {secret}"})

            yield scheduler, app, tokens, ask
        await app.state.gate.finish()


def test_each_role_may_what_it_may_and_an_agent_only_what_asks_for_anyone(tmp_path):
    async def main():
        async with opened(tmp_path) as (_, _, tokens, ask):
            return {
                role: [
                    (await ask(f"/{route}", secret)).status_code for route in ("anyone", "viewer", "operator", "admin")
                ]
                for role, secret in tokens.items()
            }

    assert asyncio.run(main()) == {
        "viewer": [200, 200, 403, 403],
        "operator": [200, 200, 200, 403],
        "admin": [200, 200, 200, 200],
        "agent": [200, 403, 403, 403],
    }


def test_a_refusal_says_what_is_needed(tmp_path):
    async def main():
        async with opened(tmp_path) as (_, _, tokens, ask):
            return (await ask("/admin", tokens["viewer"])).json()

    data = asyncio.run(main())
    assert (data["code"], data["error"]) == ("forbidden", "Token viewer has the role viewer; this needs admin.")


# -- guessing ---------------------------------------------------------------------------------------------------------


def test_who_guesses_waits_and_who_holds_a_token_does_not(tmp_path):
    clock = ManualClock()

    async def main():
        async with opened(tmp_path, clock) as (_, _, tokens, ask):
            wrong = [await ask("/anyone", f"wk_{number}") for number in range(FREE_FAILURES + 1)]
            assert [answer.status_code for answer in wrong] == [401] * FREE_FAILURES + [429]
            assert int(wrong[-1].headers["retry-after"]) == 60
            assert wrong[-1].json()["code"] == "too_many_failures"
            # Never seen before from this address, and right: it is let in.
            assert [(await ask("/anyone", secret)).status_code for secret in tokens.values()] == [200] * len(tokens)
            assert (await ask("/anyone", "wk_more")).status_code == 429
            clock.elapse(60)
            assert (await ask("/anyone", "wk_again")).status_code == 401

    asyncio.run(main())


def test_guessing_tokens_locks_no_valid_caller_out(server):
    fresh = server.terminal.ask("token", "create", "late", "--role", "viewer").out.strip()
    with server.client() as anonymous:
        statuses = [
            anonymous.get("/api/me", headers={"Authorization": f"Bearer wk_{number}"}).status_code
            for number in range(FREE_FAILURES + 10)
        ]
        assert statuses[-1] == 429
        report = anonymous.post("/api/runs/run_1hbmhnjhtmxy3/complete", params={"token": "0" * 64}, json={})
        assert report.status_code == 429
    with server.client(fresh) as client:
        assert client.get("/api/me").json()["name"] == "late"
        assert client.post("/api/jobs", json={}).status_code != 429


def test_the_table_of_those_who_guessed_is_bounded_and_forgets_the_oldest():
    clock = ManualClock()
    failures = Failures(clock)
    for _ in range(FREE_FAILURES):
        failures.count("first")
    assert failures.wait("first") == 60
    for number in range(MOST_ADDRESSES):
        failures.count(f"192.0.2.{number}")
    assert failures.wait("first") == 0
    assert len(failures._seen) == MOST_ADDRESSES


def test_who_guesses_again_after_waiting_waits_again():
    clock = ManualClock()
    failures = Failures(clock)
    for _ in range(2):
        assert failures.wait("here") == 0
        for _ in range(FREE_FAILURES):
            failures.count("here")
        assert failures.wait("here") == WINDOW_MS // 1000
        clock.elapse(WINDOW_MS / 1000)


def test_the_use_of_a_token_is_noted_once_a_minute(tmp_path):
    clock = ManualClock()

    async def main():
        async with opened(tmp_path, clock) as (scheduler, app, tokens, ask):

            async def used():
                await app.state.gate.finish()
                return {token.name: token.last_used_at for token in await scheduler.list_tokens()}["viewer"]

            assert await used() is None
            await ask("/anyone", tokens["viewer"])
            first = await used()
            assert first is not None
            await ask("/anyone", tokens["viewer"])
            assert (await used(), app.state.gate._notes) == (first, set())
            clock.elapse(60)
            await ask("/anyone", tokens["viewer"])
            assert len(app.state.gate._notes) == 1
            assert await used() >= first

    asyncio.run(main())
