"""`wakeful skill`: what it teaches is short, and every command in it runs."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from wakeful.surfaces.cli.skill import SOURCE

FAKES = Path(__file__).parents[1] / "agents" / "fakes"
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", SOURCE.read_text(), re.DOTALL) for line in block.splitlines()
]


def test_the_skill_has_a_name_and_a_description_and_is_short(wakeful, tmp_path):
    done = wakeful("skill", str(tmp_path / "skills" / "wakeful"))
    written = tmp_path / "skills" / "wakeful" / "SKILL.md"
    assert done.out == f"Wrote {written}.\n"
    text = written.read_text()
    assert re.match(r"---\nname: wakeful\ndescription: .{40,}\n---\n", text)
    assert len(text.splitlines()) < 150
    again = wakeful("skill", str(written.parent))
    assert (again.code, again.err, len(list(written.parent.iterdir()))) == (0, "", 1)
    written.write_text(f"{text}Ask Ada first.\n")
    edited = wakeful("skill", str(written.parent))
    kept = written.with_name("SKILL.md.before")
    assert (edited.code, written.read_text(), kept.read_text()) == (0, text, f"{text}Ask Ada first.\n")
    assert f"Note: the one before was an older one, or was edited: it is now {kept}" in edited.err
    written.write_text("# Something else")
    refused = wakeful("skill", str(written.parent))
    assert (refused.code, written.read_text()) == (4, "# Something else")


def test_every_command_of_the_skill_runs(wakeful):
    assert len(COMMANDS) > 15
    for line in COMMANDS:
        program, *words = shlex.split(line)
        done = wakeful(*words)
        assert (program, done.code) == ("wakeful", 0), (line, done.err)


@pytest.mark.parametrize("word", sorted(set(re.findall(r"`wakeful ([a-z]+)", SOURCE.read_text()))))
def test_every_command_that_the_skill_names_exists(wakeful, word):
    assert wakeful(word, "--help").code == 0


def test_init_offers_the_skill_and_mcp_for_the_tools_it_found(wakeful, here, monkeypatch):
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    done = wakeful("init")
    assert "claude mcp add wakeful -- wakeful mcp" in done.out
    assert "codex mcp add wakeful -- wakeful mcp" in done.out
    assert "wakeful skill" in done.out
    assert "# mcp: true" in (here / "wakeful.yaml").read_text()
