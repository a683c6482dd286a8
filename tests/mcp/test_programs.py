"""`mcp: true`: an agent's program is told of the endpoint for its run alone, in the form it takes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from tests.agents.test_runners import Caller
from tests.mcp.test_conversation import ENV, Served, live, wakeful
from wakeful.domains.agents.agents_file import entries_of
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.errors import InvalidJob

TOKEN, URL = "wk_run_planted", "http://127.0.0.1:7878"
NOTES = """
import stat
file = os.environ["WAKEFUL_MCP_CONFIG"]
noted = {"argv": sys.argv[1:], "env": dict(os.environ), "file": file, "config": json.load(open(file)),
         "modes": [stat.S_IMODE(os.stat(path).st_mode) for path in (file, os.path.dirname(file))]}
json.dump(noted, open("noted.json", "w"))
"""
FORMS = {
    "claude": (
        "mcpServers",
        {"type": "http", "url": f"{URL}/mcp"},
        ["--mcp-config", "{file}", "--allowedTools", "mcp__wakeful"],
    ),
    "qwen": ("mcpServers", {"httpUrl": f"{URL}/mcp", "trust": True}, ["--mcp-config", "{file}"]),
    "copilot": (
        "mcpServers",
        {"type": "http", "url": f"{URL}/mcp", "tools": ["*"]},
        ["--additional-mcp-config", "@{file}", "--allow-tool", "wakeful"],
    ),
    "gemini": ("mcpServers", {"httpUrl": f"{URL}/mcp", "trust": True}, []),
    "opencode": ("mcp", {"type": "remote", "url": f"{URL}/mcp", "enabled": True}, []),
    "codex": (
        "mcpServers",
        {"type": "http", "url": f"{URL}/mcp"},
        [
            "-c",
            f'mcp_servers.wakeful.url="{URL}/mcp"',
            "-c",
            'mcp_servers.wakeful.bearer_token_env_var="WAKEFUL_TOKEN"',
        ],
    ),
    "goose": (
        "mcpServers",
        {"type": "http", "url": f"{URL}/mcp"},
        ["--with-extension", f"{sys.executable} -m wakeful.cli mcp"],
    ),
}


@pytest.fixture
def noted(tmp_path, monkeypatch):
    """Calls a preset whose program notes what it was given; what that was."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def call(preset, **runner):
        caller = Caller(tmp_path)
        caller.environment = {"WAKEFUL_TOKEN": TOKEN, "WAKEFUL_URL": URL}
        name = PRESETS[preset].start[0]
        Path(caller.script(NOTES)[0]).rename(tmp_path / name)
        caller("hi", preset=preset, mcp=True, **runner)
        return json.loads((tmp_path / "noted.json").read_text())

    return call


@pytest.mark.promise("X6")
@pytest.mark.parametrize("preset", FORMS)
def test_each_program_is_told_in_its_own_form_and_nothing_is_left_behind(noted, preset):
    section, entry, args = FORMS[preset]
    found = noted(preset)
    assert found["config"] == {section: {"wakeful": {**entry, "headers": {"Authorization": f"Bearer {TOKEN}"}}}}
    wanted = [item.replace("{file}", found["file"]) for item in args]
    argv = found["argv"]
    assert any(argv[place : place + len(wanted)] == wanted for place in range(len(argv)))
    assert TOKEN not in " ".join(argv)  # every user of the machine can read arguments
    assert found["modes"] == [0o600, 0o700]
    assert not Path(found["file"]).parent.exists()


@pytest.mark.promise("X6")
def test_what_a_killed_server_left_behind_is_removed_and_what_another_uses_is_not(noted, tmp_path, monkeypatch):
    temporary, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    left, used, new = (temporary / f"wakeful-mcp-{name}" for name in ("left", "used", "new"))
    for folder in (left, used, new, elsewhere):
        folder.mkdir(parents=True)
    for folder in (left, used, elsewhere):
        (folder / "mcp.json").write_text(TOKEN)
    (temporary / "wakeful-mcp-link").symlink_to(elsewhere)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    fd = os.open(used, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # as a server holds it that is at work
        noted("claude")
        assert sorted(path.name for path in temporary.glob("wakeful-mcp-*")) == [
            "wakeful-mcp-link",
            "wakeful-mcp-new",  # whose server is about to write its file
            "wakeful-mcp-used",
        ]
        assert (elsewhere / "mcp.json").exists()
    finally:
        os.close(fd)
    noted("claude")
    assert not used.exists()


def test_programs_that_read_variables_find_the_endpoint_there(noted):
    gemini = noted("gemini")
    assert gemini["env"]["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] == gemini["file"]
    assert json.loads(noted("opencode")["env"]["OPENCODE_CONFIG_CONTENT"])["mcp"]["wakeful"]["url"] == f"{URL}/mcp"


def test_every_preset_that_can_be_told_is_tested_here():
    assert {name for name, preset in PRESETS.items() if preset.mcp is not None} == set(FORMS)


@pytest.mark.parametrize(
    ("runner", "why"),
    [
        ({"preset": "aider"}, "the preset aider takes no MCP server for one run"),
        ({"python": "tests.agents.virtual_agents:reply"}, "is for programs"),
        ({"url": "http://127.0.0.1:1/"}, "is for programs"),
    ],
)
def test_a_runner_that_cannot_be_told_is_refused_where_it_is_written(tmp_path, runner, why):
    with pytest.raises(InvalidJob, match=why):
        entries_of({"a": {"runner": runner, "mcp": True}}, tmp_path, "UTC")


AGENT = """
import asyncio, json, os
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

server = json.load(open(os.environ["WAKEFUL_MCP_CONFIG"]))["mcpServers"]["wakeful"]


async def main():
    async with create_mcp_http_client(headers=server["headers"]) as http:
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            wanted = {"name": "prices", "when": "every day at 09:00", "prompt": "Look"}
            done = await client.call_tool("schedule", wanted)
            print(json.dumps(done.structured_content or done.content[0].text))
    with open("token", "w") as file:
        file.write(os.environ["WAKEFUL_TOKEN"])


asyncio.run(main())
"""


@pytest.mark.promise("X6", "X15")
@live
async def test_a_program_schedules_for_its_agent_a_person_approves_and_its_token_ends_with_the_run(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    file = tmp_path / "wakeful.yaml"
    runner = f"{{start: [{sys.executable}, agent.py], env: [PYTHONPATH={ENV['PYTHONPATH']}]}}"
    text = f"agents:\n  reporter:\n    mcp: true\n    runner: {runner}\n"
    file.write_text(text)
    server = Served(tmp_path)
    try:
        await server.ready()
        call = lambda *words: asyncio.to_thread(wakeful, tmp_path, *words)  # noqa: E731
        said = await call("agent", "wake", "reporter", "--wait")
        approvals = json.loads(await call("approvals", "--json"))
        assert [one["job"] for one in approvals] == ["reporter.prices"], said
        shown = await call("agent", "show", "reporter")
        assert "waits for approval" in shown
        assert approvals[0]["run"] in shown
        said = await call("approve", approvals[0]["run"])
        assert "reporter.prices is approved, and starts every day at 09:00" in said
        (job,) = [one for one in json.loads(await call("list", "--json")) if one["name"] == "reporter.prices"]
        assert (job["status"], job["source"]) == ("idle", "mcp")
        file.write_text(text + "jobs:\n  other: {every: 1d, command: [echo, hi]}\n")
        await eventually_listed(call, "other")
        listed = {one["name"]: one for one in json.loads(await call("list", "--json"))}
        assert listed["reporter.prices"]["source"] == "mcp"  # a file leaves alone what an agent made
        secret = {"Authorization": f"Bearer {(tmp_path / 'token').read_text()}"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx.AsyncClient() as client:
            assert (await client.post(f"{server.url}/mcp", json=body, headers=secret)).status_code == 401
    finally:
        server.end()


async def eventually_listed(call, name):
    for _ in range(240):
        if name in await call("list"):
            return
        await asyncio.sleep(0.5)
    raise AssertionError(name)
