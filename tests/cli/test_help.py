"""Help reads well: one line for each thing, in groups, and nothing that only a parser understands."""

from __future__ import annotations

import re

import pytest

from wakeful.surfaces.cli import command_tree
from wakeful.surfaces.cli.help import summary

FOREIGN = ("<bool>", "<str>", "<int>", "<path>", "[[", "]]", "{", "(dynamic)", "<x<", "<=x", "[required]", "│", "None")
WITHOUT_JSON = {
    "serve", "demo",  # run until they are stopped
    "schema", "completion",  # what they print is a document in a form of its own
    "mcp",  # what it prints are messages of a protocol
}  # fmt: skip


def walk(command, path=()):
    """Every command with the words that call it."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*path, name))


COMMANDS = dict(walk(command_tree()))
LEAVES = {path: command for path, command in COMMANDS.items() if not getattr(command, "commands", None)}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_has_no_word_of_the_parser_and_fits(wakeful, monkeypatch, path):
    monkeypatch.setenv("COLUMNS", "80")
    answer = wakeful(*path, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert [word for word in FOREIGN if word in answer.out] == []
    assert max(len(line) for line in answer.out.splitlines()) <= 80
    assert answer.out.startswith(f"Usage: {' '.join(('wakeful', *path))}")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_is_explained_in_a_sentence(wakeful, path):
    ctx = COMMANDS[path].make_context("wakeful", [], resilient_parsing=True)
    for one in COMMANDS[path].get_params(ctx):
        assert re.match(r"^[A-Z'\"0-9-].*[.)]$", one.help or ""), (path, one.name, one.help)


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_a_command_is_described_in_one_line_that_says_what_it_does(path):
    said = summary(COMMANDS[path].help)
    assert len(said) <= 66, said
    assert re.match(r"^[A-Z][a-z]+,? ", said), said  # a verb, not "Nodes:"
    assert said.endswith(".")


def test_arguments_are_shown_as_they_are_typed(wakeful):
    assert wakeful("add", "--help").out.startswith("Usage: wakeful add NAME [OPTIONS] -- COMMAND...\n")
    assert wakeful("next", "--help").out.startswith("Usage: wakeful next [EXPR] [OPTIONS]\n")
    assert wakeful("pause", "--help").out.startswith("Usage: wakeful pause [NAME...] [OPTIONS]\n")
    assert wakeful("remove", "--help").out.startswith("Usage: wakeful remove NAME... [OPTIONS]\n")


def test_the_options_of_add_are_in_groups(wakeful):
    said = wakeful("add", "--help").out
    positions = [
        said.index(f"\n{group}:\n") for group in ("Arguments", "When it runs", "How it runs", "What it runs", "Options")
    ]
    assert positions == sorted(positions)


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_that_answers_can_answer_in_json(path):
    flags = {flag for one in LEAVES[path].params for flag in one.opts}
    assert ("--json" in flags) is (path[0] not in WITHOUT_JSON)


def without_action(data):
    """What a command says, but for the id by which it can be undone."""
    assert data.pop("action").startswith("act_")
    return data


def test_the_answers_of_commands_that_change_something_are_json(wakeful):
    wakeful("add", "a", "--manual", "--", "sh", "-c", "echo out; exit 1")
    wakeful("add", "b", "--every", "1d", "--approval", "--", "true")
    assert without_action(wakeful("pause", "a", "--json").json) == {"count": 1, "names": ["a"]}
    assert without_action(wakeful("resume", "a", "--json").json) == {"count": 1, "names": ["a"], "refused": {}}
    assert wakeful("pause", "--all", "--json").json["held"] is True
    assert without_action(wakeful("resume", "--all", "--json").json) == {"held": False}
    failed = wakeful("run", "a", "--wait", "--json").json
    log = wakeful("logs", "a", "--json").json
    assert (log["run"], log["output"], log["outcome"], log["truncated"]) == (failed["id"], "out\n", "error", False)
    again = wakeful("retry", failed["id"], "--json").json
    assert (again["retry_of"], again["status"]) == (failed["id"], "queued")
    assert wakeful("cancel", again["id"], "--json").json["outcome"] == "cancelled"
    assert without_action(wakeful("remove", "a", "b", "--json").json) == {"count": 2, "names": ["a", "b"]}
    token = wakeful("token", "create", "me", "--role", "viewer", "--json").json
    assert (token["name"], token["role"], token["token"][:3]) == ("me", "viewer", "wk_")
    assert wakeful("token", "revoke", "me", "--json").json == {"name": "me", "revoked": True}


def test_a_log_that_is_followed_is_no_json(wakeful):
    wakeful("add", "a", "--manual", "--", "true")
    assert wakeful("logs", "a", "-f", "--json").code == 2
