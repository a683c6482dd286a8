"""docs/agents.md and docs/presets.md cannot lie: what they configure is valid, what they show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tools import keys
from tools.presets import PAGE, render
from wakeful.config.loading import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "agents.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_configuration_is_valid(text, tmp_path):
    path = tmp_path / "wakeful.yaml"
    path.write_text(text)
    assert load(path, {"GITHUB_TOKEN": "x"}).jobs.entries


def test_the_program_prints_what_it_says(tmp_path):
    [program], [promised] = blocks("python"), blocks("text")
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert result.stdout == promised


def test_the_first_agent_answers_as_shown(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        (tmp_path / "agent.sh").write_text(blocks("sh")[0])
        (tmp_path / "agent.sh").chmod(0o755)
        (tmp_path / "wakeful.yaml").write_text(blocks("yaml")[0])
        terminal.serve("--config", "wakeful.yaml").until("applied")
        shown = dict(re.findall(r"^\$ wakeful (.*)\n((?:(?!\$ ).*\n)*)", blocks("console")[0], re.MULTILINE))
        for command in ("run reporter.standup --wait", "agent wake reporter --wait"):
            assert terminal(*command.split()).out == shown[command]
    finally:
        terminal.close()


def test_the_page_of_presets_is_what_they_say():
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/presets.md is out of date: run python -m tools.presets"


def test_the_page_of_keys_is_what_the_schema_says():
    page = keys.PAGE.read_text(encoding="utf-8")
    assert page == keys.render(), "docs/keys.md is out of date: run python -m tools.keys"
    schedules = page.split("## Schedules of agents\n")[1]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", schedules, re.MULTILINE)
    assert {name for name, _ in rows} >= {"model", "timeout", "manual", "env", "prompt"}
    assert [name for name, meaning in rows if not meaning.strip()] == []
