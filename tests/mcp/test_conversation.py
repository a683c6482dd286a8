"""A conversation of an official client, over stdio and over HTTP: made, refused, asked, approved, run and removed."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import wakeful as wakeful_package

pytestmark = pytest.mark.promise("X6")

READING = {"list_schedules", "get_schedule", "explain", "status", "upcoming", "get_run", "wait_for_run"}
DESTROYING = {"change_schedule", "remove_schedule", "cancel_run"}
ENV = {**os.environ, "PYTHONPATH": str(Path(wakeful_package.__file__).parents[1])}


def live(test):
    """Run a test that talks to a server, in real time."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 600))

    return run


def wakeful(folder, *words, **env):
    done = subprocess.run(
        [sys.executable, "-m", "wakeful.cli", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**ENV, "WAKEFUL_DB": str(folder / "w.db"), **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def over_stdio(folder, *words, **env):
    known = {"WAKEFUL_DB": str(folder / "w.db"), "PATH": os.environ["PATH"], "PYTHONPATH": ENV["PYTHONPATH"], **env}
    return stdio_client(
        StdioServerParameters(command=sys.executable, args=["-m", "wakeful.cli", "mcp", *words], env=known)
    )


class Served:
    """A server of its own, and connections to its `/mcp`."""

    def __init__(self, folder):
        self.folder, self.url, self.tokens = folder, None, []
        with (folder / "serve.log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wakeful.cli", "serve", "--port", "0"],
                env={**ENV, "WAKEFUL_DB": str(folder / "w.db")},
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def token(self, role):
        """A new token of this role."""
        name = f"{role}-{len(self.tokens)}"
        self.tokens.append(name)
        return re.search(r"wk_[\w-]+", wakeful(self.folder, "token", "create", name, "--role", role))[0]

    async def ready(self):
        for _ in range(2000):
            if found := re.search(r"listening on (http://\S+);", (self.folder / "serve.log").read_text()):
                self.url = found[1]
                return
            await asyncio.sleep(0.1)
        raise AssertionError((self.folder / "serve.log").read_text())

    def end(self):
        self.process.terminate()
        self.process.wait(200)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server for all, because a start takes long."""
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.end()


async def ok(client, tool, **arguments):
    done = await client.call_tool(tool, arguments)
    assert not done.is_error, done.content[0].text
    return done.structured_content


async def refused(client, tool, **arguments):
    done = await client.call_tool(tool, arguments)
    assert done.is_error, done
    return done.content[0].text


async def converse(client, work):
    """Everything a client with full rights does with one schedule."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READING
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == DESTROYING
    assert all(tool.input_schema["type"] == "object" and tool.output_schema for tool in tools.values())
    made = await ok(client, "schedule", name="hello", when="every day at 09:00", **work)
    assert (made["name"], made["status"], len(made["next"])) == ("hello", "active", 3)
    assert "already exists" in await refused(client, "schedule", name="hello", every="1d", **work)
    assert "every blue moon" in await refused(client, "schedule", when="every blue moon", **work)
    changed = await ok(client, "change_schedule", name="hello", when="weekdays at 10:00")
    assert changed["schedule"].startswith("weekdays at 10:00")
    assert [one["name"] for one in (await ok(client, "list_schedules", q="hell"))["schedules"]] == ["hello"]
    (resource,) = [one for one in (await client.list_resources()).resources if one.name == "hello"]
    assert "weekdays at 10:00" in (await client.read_resource(resource.uri)).contents[0].text
    with pytest.raises(MCPError, match="There is no job"):
        await client.read_resource("wakeful://jobs/nobody")


async def removed(client):
    assert (await ok(client, "remove_schedule", name="hello"))["removed"] == "hello"
    assert "There is no job" in await refused(client, "get_schedule", name="hello")


@live
async def test_a_conversation_over_http_with_a_run_that_is_waited_for(served):
    await served.ready()
    admin, viewer = served.token("admin"), served.token("viewer")
    async with connected(served.url, admin) as client:
        assert client.server_info.name == "wakeful"
        await converse(client, {"command": ["sh", "-c", "sleep 3; echo done"]})
        run = await ok(client, "run_now", name="hello")
        seen = []

        async def on_progress(done, total, message):
            seen.append((done, total, message))

        waited = await client.call_tool("wait_for_run", {"run": run["run"]}, progress_callback=on_progress)
        assert (waited.structured_content["outcome"], "done" in waited.structured_content["output"]) == (
            "success",
            True,
        )
        assert seen
        assert seen[0][1] == 30
        assert "done" in (await ok(client, "get_run", run=run["run"], output_limit=100))["output"]
        assert "50" in await refused(client, "wait_for_run", run=run["run"], timeout=51)
        await removed(client)
    async with connected(served.url, viewer) as client:
        assert "only reads" in await refused(client, "schedule", every="1d", url="https://example.org")
        assert (await ok(client, "status"))["sentences"]


@live
async def test_a_connection_needs_a_valid_token_and_post(served):
    await served.ready()
    async with create_mcp_http_client() as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await client.post(f"{served.url}/mcp", json=body)).status_code == 401
        wrong = {"Authorization": "Bearer wk_wrong"}
        assert (await client.post(f"{served.url}/mcp", json=body, headers=wrong)).status_code == 401
        token = {"Authorization": f"Bearer {served.token('viewer')}"}
        for method in ("GET", "DELETE"):
            assert (await client.request(method, f"{served.url}/mcp", headers=token)).status_code == 405


@live
async def test_callers_that_are_no_agents_are_told_what_they_need(served):
    await served.ready()
    async with connected(served.url, served.token("operator")) as client:
        assert "There is no agent 'nobody'" in await refused(
            client, "schedule", every="1d", prompt="Look", agent="nobody"
        )
    fox = served.token("agent")
    async with connected(served.url, fox) as client:
        assert "server.outbound.agents" in await refused(client, "schedule", every="1d", url="https://example.org")
        assert "for agents in their runs" in await refused(client, "remind_me", when="tomorrow at 9", text="x")


# The client leaves the socket of a request that it cancels to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@live
async def test_a_call_that_is_cancelled_ends_and_the_connection_goes_on(served):
    await served.ready()
    async with connected(served.url, served.token("admin")) as client:
        await ok(client, "schedule", name="long", every="1d", command=["sleep", "20"])
        run = (await ok(client, "run_now", name="long"))["run"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.call_tool("wait_for_run", {"run": run, "timeout": 50}), 1)
        assert (await ok(client, "get_run", run=run))["status"] in ("active", "queued")
        await ok(client, "cancel_run", run=run)


@live
async def test_a_conversation_over_stdio_on_a_store(tmp_path):
    async with Client(over_stdio(tmp_path, "--role", "admin")) as client:
        assert client.server_info.name == "wakeful"
        await converse(client, {"command": ["echo", "hi"]})
        assert (await ok(client, "run_now", name="hello"))["status"] == "queued"
        await removed(client)
    async with Client(over_stdio(tmp_path)) as client:
        assert "Only an admin" in await refused(client, "schedule", every="1d", command=["ls"])
    assert "hello" not in wakeful(tmp_path, "list")


@live
async def test_under_a_token_stdio_passes_everything_on_to_the_server(served):
    await served.ready()
    token = served.token("operator")
    env = {"WAKEFUL_TOKEN": token, "WAKEFUL_URL": served.url}
    async with Client(over_stdio(served.folder, **env)) as client:
        await ok(client, "schedule", name="beat", every="1d", url="https://example.org")
        assert "Only an admin" in await refused(client, "schedule", every="1d", command=["ls"])
        assert "beat" in [one.name for one in (await client.list_resources()).resources]
        wakeful(served.folder, "token", "revoke", served.tokens[-1])  # as that of a run when it ends
        assert "The server does not answer" in await refused(client, "status")
        assert "The server does not answer" in await refused(client, "get_schedule", name="beat")
    assert "beat" in wakeful(served.folder, "list")
    wrong = {**ENV, **env, "WAKEFUL_TOKEN": "wk_wrong"}
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "wakeful.cli", "mcp"),
        env=wrong,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, error = await done.communicate()
    assert (done.returncode, out) == (4, b"")
    assert b"cannot be used" in error


def connected(url, token):
    return _Connected(url, token)


class _Connected:
    """A client over HTTP with a bearer token."""

    def __init__(self, url, token):
        self._http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        self._client = Client(streamable_http_client(f"{url}/mcp", http_client=self._http))

    async def __aenter__(self):
        await self._http.__aenter__()
        return await self._client.__aenter__()

    async def __aexit__(self, *error):
        await self._client.__aexit__(*error)
        await self._http.__aexit__(*error)
