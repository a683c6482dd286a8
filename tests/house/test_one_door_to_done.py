"""A run ends in one place: nothing but kernel/engine/ending.py writes a final status."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import modules, strings

PLACE = "wakeful.kernel.engine.ending"
#: Who makes queued runs active, and active ones queued again.
STARTERS = {"wakeful.kernel.engine.claim", "wakeful.kernel.actions.runs"}
RUNS = "wakeful.store.runs"
WRITES_RUNS = re.compile(r"\b(update\s+runs\s+set|insert\s+(or\s+\w+\s+)?into\s+runs)\b", re.IGNORECASE)
WRITES_STATUS = re.compile(r"\bupdate\s+runs\s+set\b[^?]*\b(status|outcome|finished_at)\s*=", re.IGNORECASE)


def users_of(verb, trees):
    """The modules that take that verb of the runs, however they call it."""
    return {
        name
        for name, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == verb and last_name(node.value) in ("runs", "Runs")
    }


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def batch_writers(trees):
    """The modules that write rows of `runs` in batches."""
    return {
        name
        for name, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and last_name(node.func) in ("update_many", "insert_many")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == "runs"
    }


def ours():
    return [(module.name, module.tree) for module in modules()]


def test_only_one_module_ends_runs():
    assert users_of("finish", ours()) == {PLACE}


def test_only_admission_and_release_change_what_a_run_is_doing():
    assert users_of("activate", ours()) == STARTERS


def test_only_the_runs_of_the_store_write_rows_of_runs():
    assert batch_writers(ours()) == {RUNS}
    found = {module.name for module in modules() for text, _ in strings(module) if WRITES_RUNS.search(text)}
    assert found == {RUNS}
    assert [text for module in modules() for text, _ in strings(module) if WRITES_STATUS.search(text)] == []


@pytest.mark.parametrize(
    "code",
    [
        "def end(tx, ends): tx.runs.finish(ends)",
        "def end(tx, ends):\n    write = tx.runs.finish\n    write(ends)",
        "def end(runs, ends): runs.finish(ends)",
        "from wakeful.store.runs import Runs\ndef end(session, ends): Runs(session); Runs.finish(session, ends)",
    ],
)
def test_another_place_is_found(code):
    assert users_of("finish", [("another", ast.parse(code))]) == {"another"}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("UPDATE runs SET status = 'done' WHERE id = ?", True),
        ("update runs\n set phase = NULL, outcome = 'success'", True),
        ("UPDATE runs SET phase = ? WHERE id = ? AND status = 'active'", False),
    ],
)
def test_an_end_that_is_written_as_sql_is_distinguished_from_other_changes(text, ends):
    assert bool(WRITES_STATUS.search(text)) is ends
    assert WRITES_RUNS.search(text)
