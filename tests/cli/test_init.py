"""`init` writes a file that `check` accepts, from what is on this machine, and asks nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wakeful.config.loading import load
from wakeful.domains.agents.runners.presets import OPTIONS, PRESETS
from wakeful.surfaces.cli.starting import configuration, found_programs

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


def test_whatever_program_is_found_the_file_is_valid(tmp_path, monkeypatch):
    """Also alone: a program that needs more than its name is not chosen."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, preset in PRESETS.items():
        if preset.start[0] == OPTIONS:
            continue
        program = tmp_path / preset.start[0]
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        found = found_programs()
        assert found == ([] if name == "ollama" else [name])
        path = tmp_path / "wakeful.yaml"
        path.write_text(configuration(found, "UTC"))
        assert load(path, {}).jobs.entries
        program.unlink()


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


@pytest.mark.promise("A11")
def test_init_says_how_to_see_the_first_beat_and_replies_go_to_the_terminal(wakeful, here, monkeypatch):
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    lines = wakeful("init").out.splitlines()
    assert lines[3:] == [
        "  next   wakeful check wakeful.yaml, then wakeful serve --config wakeful.yaml",
        "  try    wakeful agent wake assistant --wait, while it serves: the first heartbeat, at once",
        '         wakeful agent ask assistant "What is in this directory?"',
        "  tools  claude mcp add wakeful -- wakeful mcp",
        "         codex mcp add wakeful -- wakeful mcp",
        "         gemini mcp add wakeful -- wakeful mcp",
        "         wakeful skill, which teaches them the command line",
    ]
    assert "What is in this directory" in (here / "workspace" / "HEARTBEAT.md").read_text()
    loaded = load(here / "wakeful.yaml", {})
    assert [(name, one.type) for name, one in loaded.config.connectors.root.items()] == [("terminal", "log")]
    (here / "workspace" / "HEARTBEAT.md").write_text("mine")
    elsewhere = wakeful("init", "second.yaml").out.splitlines()[4]
    assert elsewhere.startswith("  try    wakeful agent wake second-assistant --wait --db wakeful.db, while")
    assert (here / "workspace" / "HEARTBEAT.md").read_text() == "mine"


def test_init_without_an_agent_promises_no_beat(wakeful, here, monkeypatch):
    monkeypatch.setenv("PATH", str(here))
    assert "heartbeat, at once" not in wakeful("init").out


@pytest.mark.parametrize(
    ("cwd", "held"),
    [
        (".", "the configuration (wakeful.yaml) and the store (t.db) and its prompt (look.md)"),
        ("work", None),
        ("prompts", "its prompt (look.md)"),
        ("data", "the store (t.db)"),
    ],
)
def test_check_warns_where_an_agent_can_change_its_instructions(wakeful, here, monkeypatch, cwd, held):
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    (here / cwd).mkdir(exist_ok=True)
    prompt = "prompts/look.md" if cwd == "prompts" else "look.md"
    store = "data/t.db" if cwd == "data" else "t.db"
    agent = f"{{runner: {{preset: claude, cwd: {cwd}}}, heartbeat: {{prompt_file: {prompt}}}}}"
    (here / "wakeful.yaml").write_text(f"store: sqlite:///{store}\nagents:\n  a: {agent}\n")
    answer = wakeful("check")
    assert answer.code == 0
    if held is None:
        assert "warning" not in answer.err
    else:
        folder = (here / cwd).resolve()
        said = f"agents.a.runner.cwd: {folder} holds {held}, which the agent can change: use another directory."
        assert said in answer.err
