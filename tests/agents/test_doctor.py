"""`wakeful doctor` finds an agent whose program is missing or logged out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

FAKES = Path(__file__).parent / "fakes"
FILE = """
store: sqlite:///t.db
agents:
  gone: {runner: {start: [no-such-agent]}}
  nowhere: {runner: {preset: gemini, cwd: nowhere}}
  out: {runner: {preset: claude, cwd: .}}
  keyed: {runner: {preset: claude, cwd: ., env: ["ANTHROPIC_API_KEY=x"]}}
"""


@pytest.fixture
def terminal(tmp_path):
    made = Terminal(tmp_path)
    made.env["PATH"] = f"{FAKES}{os.pathsep}{os.environ['PATH']}"
    (tmp_path / "wakeful.yaml").write_text(FILE)
    assert made.ask("apply").code == 0
    yield made
    made.close()


def problems(terminal):
    found = terminal.ask("doctor", "--json").json["checks"]
    return {check["found"].partition(":")[0]: check for check in found if check["name"] == "job"}


def test_a_missing_and_a_logged_out_program_are_found_with_what_helps(terminal):
    found = problems(terminal)
    assert sorted(found) == ["gone", "nowhere", "out"]
    assert found["gone"]["found"] == "gone: 'no-such-agent' was not found on PATH here"
    assert found["gone"]["do"] == "install it, or change agents.gone.runner in wakeful.yaml"
    assert "nowhere does not exist here" in found["nowhere"]["found"]
    assert found["out"]["found"] == "out: claude is not logged in (checked with claude auth status)"
    assert found["out"]["do"].startswith("log in with claude, or set one of ANTHROPIC_API_KEY, ")
    (terminal.folder / "logged-in").touch()
    assert "out" not in problems(terminal)


def test_a_program_whose_key_is_in_the_env_file_needs_no_login(terminal):
    key = terminal.folder / "agent.env"
    key.write_text("ANTHROPIC_API_KEY=x\n")
    key.chmod(0o600)
    (terminal.folder / "wakeful.yaml").write_text(f"env_file: agent.env\n{FILE}")
    assert "out" not in problems(terminal)
