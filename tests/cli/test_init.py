"""`init` writes a file that `check` accepts, from what is on this machine, and asks nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wakeful.cli.starting import configuration
from wakeful.config.loading import load

FAKES = Path(__file__).parents[1] / "agents" / "fakes"


@pytest.mark.parametrize("programs", [[], ["claude"], ["codex", "gemini"]])
def test_what_init_writes_is_valid_whatever_is_found(tmp_path, programs):
    path = tmp_path / "wakeful.yaml"
    path.write_text(configuration(programs, "Europe/Berlin"))
    jobs = {entry.new.name: entry for entry in load(path, {}).jobs.entries}
    assert list(jobs) == ["hello", *(["assistant.wake", "assistant.standup"] if programs else [])]
    if programs:
        assert jobs["assistant.wake"].new.payload["runner"]["preset"] == programs[0]
        assert not jobs["assistant.standup"].enabled  # nothing is spent before a person enables it


def test_a_file_is_written_once_and_check_has_nothing_to_say(wakeful, here, monkeypatch):
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    answer = wakeful("init")
    assert (answer.code, answer.out.splitlines()[:2]) == (
        0,
        ["Wrote wakeful.yaml.", "  agent  assistant, asked by claude"],
    )
    assert "found here, too: codex, gemini, opencode" in (here / "wakeful.yaml").read_text()
    assert (here / "workspace").is_dir()
    assert wakeful("check") == (0, f"{here / 'wakeful.yaml'}: valid\n", "")
    (here / "wakeful.yaml").write_text("jobs: {}\n")
    again = wakeful("init")
    assert again.code == 4
    assert "wakeful.yaml exists already, and is left as it is" in again.err
    assert (here / "wakeful.yaml").read_text() == "jobs: {}\n"
    assert wakeful("init", "other.yaml", "--json").json["agents"][0] == "claude"
    assert wakeful("init", "nowhere/at/all.yaml").code == 2


@pytest.mark.parametrize(
    ("cwd", "held"),
    [
        (".", "the configuration (wakeful.yaml) and the store (t.db) and its prompt (look.md)"),
        ("work", None),
        ("prompts", "its prompt (look.md)"),
        ("data", "the store (t.db)"),
    ],
)
def test_check_warns_where_an_agent_can_change_its_instructions(wakeful, here, cwd, held):
    prompt = "prompts/look.md" if cwd == "prompts" else "look.md"
    store = "data/t.db" if cwd == "data" else "t.db"
    agent = f"{{runner: {{preset: claude, cwd: {cwd}}}, heartbeat: {{prompt_file: {prompt}}}}}"
    (here / "wakeful.yaml").write_text(f"store: sqlite:///{store}\nagents:\n  a: {agent}\n")
    answer = wakeful("check")
    assert answer.code == 0
    if held is None:
        assert answer.err == ""
    else:
        folder = (here / cwd).resolve()
        said = f"agents.a.runner.cwd: {folder} holds {held}, which the agent can change: use another directory."
        assert said in answer.err
