"""Plain commands are read without the argument parser, and mean what they mean to it."""

from __future__ import annotations

from importlib import import_module

import pytest
import typer

from wakeful.surfaces.cli import MODULES, command_tree
from wakeful.surfaces.cli.app import app
from wakeful.surfaces.cli.fast_parse import read_plainly

PLACES = {name: module for module, names in MODULES.items() for name in names}
PLAIN = [
    "list", "list --json --status idle --kind=work -n 3 --owner ada --match b", "list --all", "show backup",
    "show backup --json --db x.db", "status --json", "doctor", "next", "next 90m --tz UTC --limit 7", "explain backup",
    "pause a b --note why", "pause --all", "resume a", "remove a b -y", "runs", "runs backup -n 20", "cancel a",
    "retry a", "run backup --wait", "logs a", "approve a", "add backup --every 5m -- ls -l --all",
    "add backup --cron=@daily --json -- true", "edit backup --every 10m", "serve --port 8080", "check", "schema",
]  # fmt: skip
NOT_PLAIN = [
    "", "--help", "-h", "list --help", "list -n3", "list -n many", "list -n 0", "list --lim 3", "list --limit",
    "list extra", "list --json=yes", "list --kind -x", "list --kind a --kind b", "list -- a", "show", "show a b",
    "next -n 99999", "nothing", "lst", "alert list", "token list", "list --no-json", "--db", "--db x", "--version list",
    "add a --env A=1 -- true",
]  # fmt: skip


def test_each_command_is_where_it_is_looked_for():
    groups = {name for name, command in command_tree().commands.items() if hasattr(command, "commands")}
    assert set(PLACES) == set(command_tree().commands) - groups
    functions = {info.name: info.callback for info in app.registered_commands}
    for name, module in PLACES.items():
        assert functions[name] in vars(import_module(f"wakeful.surfaces.cli.{module}")).values(), name


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_mean_what_they_mean_to_the_parser(line):
    name, *rest = line.split()
    call = read_plainly([name, *rest], PLACES)
    assert call is not None
    context = command_tree().commands[name].make_context(name, list(rest))
    mine = {key: value for key, value in call.values.items() if key != "ctx"}
    assert {key: value or None for key, value in mine.items()} == {
        key: value or None for key, value in context.params.items()
    }
    if "ctx" in call.values:
        assert call.values["ctx"].meta.get("argv") == context.meta.get("argv")


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_everything_else_is_left_to_the_parser(line):
    assert read_plainly(line.split(), PLACES) is None


def test_the_store_may_be_named_before_the_command():
    call = read_plainly(["--db", "x.db", "list"], PLACES)
    assert call is not None
    assert call.values["ctx"].obj == {"db": "x.db"}


def test_a_command_that_ends_with_a_code_ends_with_it():
    def fails():
        raise typer.Exit(4)

    call = read_plainly(["list"], PLACES)
    assert call is not None
    assert call._replace(function=fails, values={}).run() == 4
