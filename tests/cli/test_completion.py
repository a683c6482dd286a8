"""Completion: what a shell offers at Tab, in a real bash; and that a job's name is never run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wakeful.store.listing import STATUS_SQL
from wakeful.surfaces.cli import completing
from wakeful.surfaces.cli.completing import Candidate, candidates, joined, shown
from wakeful.surfaces.cli.completion import SCRIPTS

HOSTILE = "x; $(touch owned) 'y' *"
SCRIPT = Path(sys.prefix) / "bin" / "wakeful"


def words(*typed):
    return [one.word for one in candidates(typed)]


@pytest.fixture
def jobs(wakeful, here):
    for name in ("backup", "backup-db", "report", "ns:one", HOSTILE):
        assert wakeful("add", name, "--manual", "--", "true").code == 0
    return here


def bash(script, folder):
    """What a real bash says, with the completion loaded."""
    code = f"{SCRIPTS['bash']}\n{script}"
    done = subprocess.run(
        ["bash", "--norc", "-c", code], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def offered(folder, *typed):
    """What bash offers for these words, called as it calls a completion."""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in ("wakeful", *typed))
    ask = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(typed)}; _wakeful '{SCRIPT}' x y; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return [line for line in bash(ask, folder) if line]


def test_commands_options_and_values_are_offered(jobs):
    assert {"add", "list", "run", "completion"} <= set(words(""))
    assert words("sta") == ["status"]
    assert words("node", "") == ["list", "drain"]
    assert words("list", "--st") == ["--status"]
    assert words("list", "--json", "--js") == []
    assert words("list", "--status", "p") == ["paused"]
    assert sorted(words("list", "--status", "")) == sorted(STATUS_SQL), "every status that list takes"
    assert words("list", "--status=p") == ["--status=paused"]
    assert words("completion", "") == ["bash", "zsh", "fish"]
    assert "--env" in words("add", "x", "--env", "A=1", "--env")
    assert "--help" in words("show", "--")


def test_job_names_are_offered_where_a_job_is_meant(jobs):
    for command in sorted(completing.TAKES_JOBS):
        assert words(command, "back") == ["backup", "backup-db"], command
    assert words("show", "backup") == ["backup", "backup-db"]
    assert words("show", "zzz") == []
    assert len(words("show", "")) == 5


def test_names_are_offered_once_or_for_every_place(jobs):
    assert words("show", "backup", "rep") == []
    assert words("pause", "backup", "rep") == ["report"]
    assert words("show", "--json", "rep") == ["report"]
    assert words("add", "x", "--after", "rep") == ["report"]
    assert words("pause", "backup", "--note", "rep") == []
    assert words("add", "x", "--every", "1h", "--", "rep") == []


def test_names_come_from_the_store_that_is_named(jobs, wakeful, tmp_path):
    other = str(tmp_path / "other.db")
    wakeful("add", "elsewhere", "--manual", "--db", other, "--", "true")
    assert words("--db", other, "run", "") == ["elsewhere"]
    assert words("run", f"--db={other}", "") == ["elsewhere"]
    assert words("run", "--db", str(tmp_path / "none.db"), "") == []
    assert not (tmp_path / "none.db").exists()


def test_a_store_that_cannot_be_read_offers_nothing(jobs):
    (jobs / "broken.db").write_text("this is no database, and long enough to be seen as none")
    assert words("run", "--db", "broken.db", "") == []


def test_no_more_names_are_read_than_are_offered(jobs, wakeful, monkeypatch):
    monkeypatch.setattr(completing, "MOST", 2)
    assert len(words("run", "")) == 2


def test_bash_completes_commands_options_and_names(jobs):
    assert offered(jobs, "sta") == ["status"]
    assert offered(jobs, "list", "--st") == ["--status"]
    assert offered(jobs, "run", "back") == ["backup", "backup-db"]
    assert offered(jobs, "list", "--status", "=", "p") == ["paused"]
    assert offered(jobs, "run", "ns", ":", "o") == ["one"]
    assert offered(jobs, "run", '"back') == ["backup", "backup-db"]


def test_bash_is_given_names_that_run_nothing(jobs):
    (found,) = offered(jobs, "show", "x")
    assert bash(f"printf '%s\\n' {found}", jobs) == [HOSTILE]
    assert offered(jobs, "show", "x\\;") == [found]
    assert offered(jobs, "show", '"x') == []
    assert not (jobs / "owned").exists()


def test_bash_uses_it(tmp_path):
    assert bash("complete -p wakeful", tmp_path) == ["complete -o bashdefault -o default -F _wakeful wakeful"]


def test_words_that_bash_took_apart_are_put_together():
    assert joined(["run", "a", ":", "b"]) == (["run", "a:b"], "a:")
    assert joined(["list", "--status", "=", "id"]) == (["list", "--status=id"], "--status=")
    assert joined(["list", "--status", "="]) == (["list", "--status="], "--status=")
    assert joined([""]) == ([""], "")


def test_zsh_and_fish_are_given_a_word_and_what_it_means():
    assert shown(Candidate("ns:one", "every: 1h"), "zsh") == "ns\\:one:every: 1h"
    assert shown(Candidate("ns:one", "every: 1h"), "fish") == "ns:one\tevery: 1h"


def test_a_real_fish_completes_commands_values_and_names(jobs, monkeypatch):
    """Where there is one: fish can be asked without a terminal."""
    if (fish := shutil.which("fish")) is None:
        return
    monkeypatch.setenv("PATH", f"{SCRIPT.parent}:{os.environ['PATH']}")
    lines = ["sta", "list --status=p", "run back", "show ns:o"]
    asked = "\n".join(f"complete -C 'wakeful {line}'" for line in lines)
    done = subprocess.run(
        [fish, "--no-config", "-c", f"{SCRIPTS['fish']}\n{asked}"],
        cwd=jobs,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert found == ["status", "--status=paused", "backup", "backup-db", "ns:one"]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_script_is_printed_and_is_one_of_its_shell(wakeful, tmp_path, shell):
    answer = wakeful("completion", shell)
    assert (answer.code, answer.out) == (0, SCRIPTS[shell])
    if (program := shutil.which(shell)) is not None:
        file = tmp_path / f"wakeful.{shell}"
        file.write_text(answer.out)
        done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_another_shell_is_refused(wakeful):
    answer = wakeful("completion", "tcsh")
    assert (answer.code, answer.err) == (2, "Error: There is no completion for 'tcsh': name one of bash, zsh, fish.\n")
