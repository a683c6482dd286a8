"""The benchmarks are run seldom: what they use of the package is there, whenever they are."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from tests.house.source import ROOT

MODULES = sorted(path for path in (ROOT / "bench").rglob("*.py") if "__pycache__" not in path.parts)


def used(path: Path) -> list[tuple[str, str]]:
    """The names of our own that a module imports, each with the module it is said to be in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if node.module.split(".")[0] in ("wakeful", "tests")
    ]


def is_there(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES])
def test_what_a_benchmark_imports_of_the_package_exists(path: Path) -> None:
    assert [f"{module}.{name}" for module, name in used(path) if not is_there(module, name)] == []


def test_the_benchmarks_import_something_of_the_package() -> None:
    assert len([pair for path in MODULES for pair in used(path)]) > 10


def test_the_command_that_runs_them_knows_every_measure() -> None:
    command = importlib.import_module("bench.__main__")
    measures = {path.stem for path in (ROOT / "bench/measures").glob("*.py")} - {"__init__"}
    assert set(command.MEASURES) == measures


def test_where_no_peer_is_measured_none_is_set_up() -> None:
    command = importlib.import_module("bench.__main__")
    texts = {name: (ROOT / f"bench/measures/{name}.py").read_text(encoding="utf-8") for name in command.MEASURES}
    assert {name for name, text in texts.items() if not re.search(r"plan\.peers", text)} == command.ALONE
