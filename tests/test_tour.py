"""The first pages cannot lie: their files are written and their commands typed, and they print what is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import PATIENCE, Terminal
from tests.cli.test_documentation import first_words

DOCS = Path(__file__).parent.parent / "docs"
BIN = Path(sys.executable).parent
FILES = re.compile(r"this is `([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)```", re.DOTALL | re.IGNORECASE)
STEPS = re.compile(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", re.MULTILINE)
CLAUDE = """#!/usr/bin/env python3
import json, os, sys
if "--version" in sys.argv:
    sys.exit(print("2.1.325 (Claude Code)"))
session = "5f0c1c1e-0000-4000-8000-000000000001"
used = {"total_cost_usd": 0.02, "usage": {"input_tokens": 10, "output_tokens": 5}}
key = os.environ["ANTHROPIC_API_KEY"]
said = f"You said: {sys.stdin.readline().strip()}"
print(f"the key is {key}", file=sys.stderr)
print(json.dumps({"type": "system", "subtype": "init", "session_id": session}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": said, "session_id": session, **used}))
"""  # noqa: E501 - a line of what the program prints


class Tour:
    """A page, in a directory of its own."""

    def __init__(self, page, folder):
        self.text = (DOCS / page).read_text(encoding="utf-8")
        self.terminal = Terminal(folder)
        for name, content in FILES.findall(self.text):
            (folder / name).write_text(content)
            (folder / name).chmod(0o755 if name.endswith(".sh") else 0o600)
        self.steps = STEPS.findall("".join(re.findall(r"```console\n(.*?)```", self.text, re.DOTALL)))

    def type(self, command):
        """What a shell prints, on both streams, and the exit code."""
        path = f"{self.terminal.folder}/bin:{BIN}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.terminal.folder, env={**self.terminal.env, "PATH": path},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr, done.returncode

    def walk(self):
        """Every command prints what the page says it does, and fails where the page says so."""
        printed = {}
        for command, shown in self.steps:
            said, code = self.type(command)
            here = said.replace(f"{self.terminal.folder}/", "")
            assert set(first_words(shown)) <= set(first_words(here)), f"{command}\n{said}"
            assert (code == 0) == ("Error:" not in shown), f"{command}\n{said}"
            printed[command] = said
        return printed


def test_five_minutes_go_as_the_page_says(tmp_path):
    tour = Tour("start.md", tmp_path)
    try:
        printed = tour.walk()
    finally:
        tour.terminal.close()
    assert len(printed) == 9  # run report is typed twice
    assert printed["wakeful run reporter.standup"].startswith("You asked: Summarise yesterday's commits.\n")


@pytest.mark.promise("X18")
def test_a_coding_agent_on_a_server_has_its_key_and_nobody_else_sees_it(tmp_path):
    tour = Tour("coding-agent.md", tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text(CLAUDE)
    (tmp_path / "bin" / "claude").chmod(0o755)
    try:
        [login] = re.findall(r"```sh\n(.*?)```", tour.text, re.DOTALL)
        assert tour.type(login)[1] == 0
        printed = tour.walk()
    finally:
        tour.terminal.close()
    log = printed["wakeful logs coder.week"]
    assert "[stderr] the key is [redacted]" in log
    assert "sk-ant" not in "".join(printed.values())
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*wakeful.db*") if path.is_file())
    assert b"sk-ant" not in stored
