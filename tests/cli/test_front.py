"""What holds for every command: help, the store, errors and exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import wakeful as package
from wakeful.surfaces.cli import command_tree, main

EXPECTED = {
    "add", "agent", "alert", "apply", "approvals", "approve", "cancel", "check", "completion", "connector", "copy",
    "delivery", "demo", "doctor", "edit", "explain", "init", "link", "undo",
    "ledger", "list", "logs", "next", "node", "pause", "plan", "reject", "remove", "resume", "retry", "run", "runs",
    "schema", "serve", "show", "status", "token", "work", "workflow",
    "backup", "restore",
    "request",
    "export", "forecast", "import", "mcp", "service", "simulate", "skill",
}  # fmt: skip
LISTINGS = [
    ["list"],
    ["runs"],
    ["next"],
    ["status"],
    ["alert", "list"],
    ["node", "list"],
    ["token", "list"],
    ["doctor"],
    ["show", "job"],
    ["explain", "job"],
    ["ledger"],
]


def test_the_version_is_printed(wakeful):
    assert wakeful("--version") == (0, f"wakeful {package.__version__}\n", "")


def test_the_script_is_installed():
    answer = subprocess.run([f"{sys.prefix}/bin/wakeful", "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == f"wakeful {package.__version__}\n"


def test_help_shows_the_groups_and_nothing_that_is_not_there(wakeful):
    assert set(command_tree().commands) == EXPECTED
    for argv in (["--help"], ["-h"], []):
        answer = wakeful(*argv)
        assert answer.code == 0
        positions = [answer.out.index(f"\n{group}:\n") for group in ("Jobs", "Runs", "Time", "Server and store")]
        assert positions == sorted(positions)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_command_explains_itself_and_takes_a_store(wakeful, name):
    command = command_tree().commands[name]
    commands = getattr(command, "commands", {name: command})
    for inner, each in commands.items():
        options = {flag for parameter in each.params for flag in parameter.opts}
        assert (
            inner in ("check", "completion", "copy", "demo", "init", "schema", "skill", "status", "uninstall")
            or "--db" in options
        )
        assert all(parameter.help for parameter in each.params if parameter.name != "ctx")
        assert each.help
    assert wakeful(name, "--help").code == 0


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize("argv", LISTINGS, ids=" ".join)
def test_every_listing_speaks_json_and_nothing_else(wakeful, argv):
    answer = wakeful(*argv, "--json")
    assert answer.json is not None
    assert answer.err == ""


@pytest.mark.usefixtures("stocked")
def test_the_store_may_be_named_before_or_after_the_command(wakeful, here):
    wakeful("--db", "a.db", "add", "in-a", "--every", "1h", "--", "true")
    wakeful("add", "in-b", "--every", "1h", "--db", "sqlite:///b.db", "--", "true")
    assert [job["name"] for job in wakeful("list", "--db", "a.db", "--json").json] == ["in-a"]
    assert [job["name"] for job in wakeful("--db", str(here / "b.db"), "list", "--json").json] == ["in-b"]
    assert [job["name"] for job in wakeful("--db", "a.db", "list", "--db", "b.db", "--json").json] == ["in-b"]
    assert [job["name"] for job in wakeful("list", "--json").json] == ["job", "other"]


@pytest.mark.usefixtures("stocked")
def test_the_nearest_folder_upward_is_found(wakeful, here, monkeypatch):
    (here / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(here / "deep" / "down")
    assert [job["name"] for job in wakeful("list", "--json").json] == ["job", "other"]


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["lst"], 2, "No such command 'lst'. Did you mean 'list'? See wakeful --help."),
        (["int"], 2, "No such command 'int'"),
        (["--nonsense"], 2, "No such option: --nonsense"),
        (["list", "--nonsense"], 2, "No such option: --nonsense. See wakeful list --help."),
        (["list", "--jsn"], 2, "No such option: --jsn. Did you mean --json? See wakeful list --help."),
        (
            ["list", "--status", "well"],
            2,
            "--status 'well' is not a status: use idle, running, waiting, paused, done or disabled.",
        ),
        (["list", "extra"], 2, "unexpected extra argument"),
        (["show"], 2, "Missing argument 'ID'."),
        (["runs", "-n", "x"], 2, "--limit must be a whole number."),
        (["list", "--db"], 2, "--db"),
        (["list", "--db", ""], 2, "--db needs the address of a store"),
        (["serve", "--shutdown-wait", "5"], 2, "Missing time unit"),
        (["alert", "lst"], 2, "Did you mean 'list'?"),
        (["show", "run_0000000000000"], 3, "There is no run run_0000000000000"),
        (["show", "job_0000000000000"], 3, "There is no job 'job_0000000000000'."),
        (["cancel", "nobody"], 3, "There is no job 'nobody'."),
        (["run", "nobody"], 3, "There is no job 'nobody'."),
        (["cancel", "job"], 4, "job is not running."),
        (["add", "job", "--every", "1h", "--", "true"], 4, "A job named 'job' already exists"),
        (["list", "--db", "mysql://x/y"], 2, "is not a store's address"),
    ],
)
def test_every_error_is_one_sentence_with_its_own_code(wakeful, argv, code, said):
    answer = wakeful(*argv)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert re.fullmatch(r"Error: [^\n]+\n", answer.err)


def test_a_file_that_is_no_store_is_reported_and_left_alone(wakeful, here):
    (here / "text.db").write_text("this is not a database " * 100)
    for argv in (["list"], ["add", "x", "--every", "1h", "--", "true"], ["serve", "--port", "0"]):
        answer = wakeful(argv[0], "--db", "text.db", *argv[1:])
        assert answer.code == 1
        assert f"{here / 'text.db'} is not a database" in answer.err
    assert (here / "text.db").read_text().startswith("this is not")


def test_a_directory_is_no_store(wakeful, here):
    answer = wakeful("list", "--db", str(here))
    assert (answer.code, answer.err.startswith(f"Error: {here} is a directory")) == (1, True)


def test_a_traceback_is_shown_to_those_who_ask(wakeful, monkeypatch):
    assert "Traceback" not in wakeful("add", "x", "--every", "5").err
    monkeypatch.setenv("WAKEFUL_DEBUG", "1")
    answer = wakeful("add", "x", "--every", "5", "--", "true")
    assert answer.code == 2
    assert "Traceback" in answer.err


@pytest.mark.parametrize("command", [["next", "* * * * *", "-n", "5000"], ["list"], ["status"]])
def test_a_reader_that_has_seen_enough_ends_it_quietly(terminal, command):
    terminal("add", "job", "--every", "1h", "--", "true")
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "wakeful.cli", *command],
        stdout=write_end, stderr=subprocess.PIPE, text=True, env=terminal.env, cwd=terminal.folder, check=False,
    )  # fmt: skip
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


def test_letters_a_terminal_cannot_show_do_not_end_it(terminal):
    answer = terminal("doctor", PYTHONIOENCODING="latin-1")
    assert answer.code == 0
    assert "program" in answer.out


def test_main_takes_its_words_from_the_command_line_unless_given(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["wakeful", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("wakeful ")
