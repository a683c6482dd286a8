"""docs/mcp.md: its program runs, its table lists the tools, its configuration is valid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.mcp.test_conversation import ENV
from wakeful.config.loading import load
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.self_scheduling.bounds import Bounds, bounds_of
from wakeful.surfaces.mcp.tools import TOOLS

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def test_the_program_prints_what_the_page_says(tmp_path):
    ((program, promised),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    command = tmp_path / "wakeful"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ENV["PYTHONPATH"]} exec {sys.executable} -m wakeful.cli "$@"\n')
    command.chmod(0o755)
    env = {**ENV, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert re.fullmatch(re.escape(promised).replace(re.escape("..."), ".*"), done.stdout), done.stderr


def test_the_table_lists_every_tool_with_its_arguments():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| [A-Z]", PAGE, re.MULTILINE)
    shown = {name: set(re.findall(r"`(\w+)`", arguments)) for name, arguments in rows if name in TOOLS}
    assert shown == {name: set(tool.fields) for name, tool in TOOLS.items()}


def test_the_configuration_is_valid_and_says_the_defaults(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "wakeful.yaml"
    path.write_text(text)
    (wake,) = [entry.new for entry in load(path, {}).jobs.entries]
    assert bounds_of(wake.payload["self_schedule"]) == Bounds()
    assert wake.payload["runner"]["mcp"] is True


def test_the_programs_that_can_be_told_are_named():
    told = re.search(r"^(`claude`.*?) support this", PAGE, re.MULTILINE)[1]
    assert set(re.findall(r"`(\w+)`", told)) == {name for name, preset in PRESETS.items() if preset.mcp is not None}
