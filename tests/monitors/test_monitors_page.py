"""docs/monitors.md cannot lie: its commands, its shell lines, its file and its program are run against one server."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from tests.cli.test_documentation import first_words

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "monitors.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"http://[\w.]+:7878/ping/[0-9a-f]{32}")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("monitors"))
    terminal("add", "offsite", "--ping", "--every", "24h", "--grace", "1h")
    yield Server(terminal)
    terminal.close()


def monitor(server, name="offsite"):
    with server.client(server.token) as client:
        return client.get(f"/api/jobs/{name}").json()["monitor"]


def shell(script, server, url):
    env = {**os.environ, "no_proxy": "*"}
    return subprocess.run(
        ["sh", "-c", EXAMPLE.sub(url, script)], cwd=server.folder, env=env, capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip


def test_the_commands_print_what_is_shown(server):
    for number, block in enumerate(blocks("console")):
        for line, shown in re.findall(r"^\$ wakeful (.+)\n((?:[^$].*\n)+)", block, re.MULTILINE):
            words = shlex.split(line)
            words[1] = words[1] if number else "another"
            answer = server.terminal.ask(*words)
            assert answer.code == 0, answer.err
            assert first_words(shown) == first_words(answer.out), line
            assert re.search(rf"{server.url}/ping/[0-9a-f]{{32}}\n", answer.out)


def test_the_shell_lines_ping(server):
    alone, crontab, watch, alive = blocks("sh")
    url = monitor(server)["ping_url"]
    assert shell(alone, server, url).stdout == "OK"
    assert monitor(server)["state"] == "up"
    (server.folder / "backup.sh").write_text("#!/bin/sh\nexit 3\n")
    (server.folder / "backup.sh").chmod(0o755)
    assert shell(crontab.removeprefix("0 3 * * *"), server, url).stdout == "OKOK"
    with server.client(server.token) as client:
        run = client.get("/api/runs", params={"job": "offsite"}).json()["items"][0]
    assert (run["outcome"], run["error"], run["output"]) == ("error", "it ended with exit code 3", {"exit_code": 3})
    assert monitor(server)["state"] == "down"
    server.terminal(*shlex.split(watch)[1:])
    server.terminal(*shlex.split(EXAMPLE.sub(monitor(server, "host-a")["ping_url"], alive))[1:])
    server.terminal("run", "alive")
    assert monitor(server, "host-a")["state"] == "up"


def test_the_file_makes_the_same_monitors(tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(blocks("yaml")[0])
    assert terminal.ask("check").code == 0
    assert terminal.ask("apply", "--yes").code == 0
    assert terminal.ask("plan").code == 0  # nothing is left to do
    shown = terminal("show", "nightly").out
    assert re.search(r"ping +https://jobs\.example\.org/ping/[0-9a-f]{32}\n", shown)
    assert set(yaml.safe_load(blocks("yaml")[0])["jobs"]) == {"offsite", "nightly"}
    assert "which overwrites this" in terminal.ask("edit", "nightly", "--grace", "2h").err
    rotated = terminal.ask("edit", "nightly", "--rotate-key")
    assert (rotated.code, "overwrites" in rotated.err) == (0, False)  # no file has the key
    assert [action["what"] for action in json.loads(terminal.ask("undo", "--list", "--json").out)][:2] == ["edit"] * 2
    terminal.close()


def test_the_program_runs_as_printed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks("python")[0]],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stdout == "up\n{'text': '12 files'}\n", done.stderr
