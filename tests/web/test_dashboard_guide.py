"""The guide to the dashboard: its commands work, and its pages are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytestmark = pytest.mark.promise("X28")
GUIDE = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text(encoding="utf-8")
COMMANDS = [
    line[2:]
    for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_guides_commands_work(server, command):
    answer = server.terminal.ask(*shlex.split(command)[1:])
    assert answer.code == 0, answer.err
    if "link" in command:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/in/[0-9a-z]{20}\n", answer.out)


def test_the_guides_pages_are_there(visitor):
    paths = [path for path in re.findall(r"`(/[a-z]*(?:/new)?)`", GUIDE) if not path.startswith("/api")]
    assert len(set(paths)) >= 12
    for path in set(paths):
        assert visitor("admin").get(path).status_code == 200, path
