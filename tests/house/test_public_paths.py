"""The paths that programs import from stay where they are, wherever the code behind them lies."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

import wakeful
from tests.house.rooms import current
from tests.house.source import PACKAGE

PATHS = {
    "wakeful.agents": {"Reply", "SessionSettings", "Turn", "install"},
    "wakeful.alerts": {"configure", "snooze"},
    "wakeful.cli": {"main"},
    "wakeful.delivery": {"Permanent", "Post", "Temporary", "Unclear", "button", "enqueue"},
    "wakeful.http": {"HttpSettings", "OutboundPolicy", "install"},
    "wakeful.monitors": {"Report", "ping", "ping_key", "rotate_key"},
    "wakeful.workflows": {
        "Applied", "Context", "Event", "Events", "FixRequest", "LogicError", "MutationResult", "NotApplied",
        "PlainContext", "Prepared", "StepFailed", "Unknown", "Workflow",
    },
}  # fmt: skip
OF_PROGRAMS = ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.If


@pytest.mark.parametrize(("path", "names"), PATHS.items())
def test_a_public_path_offers_its_names_and_holds_no_code(path, names):
    module = importlib.import_module(path)
    assert set(module.__all__) == names
    assert {name for name in names if not hasattr(module, name)} == set()
    assert getattr(wakeful, path.removeprefix("wakeful.")) is module
    tree = ast.parse((PACKAGE / f"{path.removeprefix('wakeful.')}.py").read_text(encoding="utf-8"))
    assert [ast.unparse(node) for node in tree.body if not isinstance(node, OF_PROGRAMS)] == []


def test_our_own_code_uses_none_of_them():
    public = {path.removeprefix("wakeful.") for path in PATHS}
    assert {room: used & public for room, used in current().items() if used & public} == {}


def test_the_errors_of_a_connector_are_also_where_they_were_before():
    assert importlib.import_module("wakeful.delivery.connector").Temporary is wakeful.delivery.Temporary


def test_the_command_line_starts_as_a_module():
    command = [sys.executable, "-m", "wakeful.cli", "--version"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert said == f"wakeful {wakeful.__version__}\n"
