"""Every test can fail by what it looks at: it asserts something, itself or in a helper of the tests that it calls."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.house.source import ROOT

TESTS = ROOT / "tests"
EXPECTING = {"raises", "warns", "fail"}  # of pytest


class File:
    """A file of the tests: its functions and methods by name, and the files that it imports them from."""

    def __init__(self, tree, base=ROOT):
        self.functions = {}
        self.sources = []
        self._asserting = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                paths = [base / f"{name.replace('.', '/')}.py" for name in names]
                self.sources += [path for path in paths if path.is_file()]

    def find(self, name, seen=()):
        """The functions that a name may stand for, and where each is: here, else where this file imports from."""
        if name in self.functions:
            return [(self, function) for function in self.functions[name]]
        return [found for path in self.sources if path not in seen for found in read(path).find(name, (*seen, path))]

    def asserts(self, function):
        """Whether the function asserts, or one that it calls or hands on does. Circles add nothing."""
        if function not in self._asserting:
            self._asserting[function] = False
            self._asserting[function] = any(map(_expects, ast.walk(function))) or any(
                file.asserts(found)
                for name in sorted(_used(function))
                for file, found in self.find(name)
                if not found.name.startswith("test_")
            )
        return self._asserting[function]


def _expects(node):
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "pytest" and node.attr in EXPECTING
    return isinstance(node, ast.Assert)


def _used(function):
    """Every name and attribute in it."""
    nodes = [*ast.walk(function)]
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


@cache
def read(path: Path) -> File:
    return File(ast.parse(path.read_text(encoding="utf-8"), str(path)))


def silent_tests(file):
    return [
        function
        for name, functions in file.functions.items()
        if name.startswith("test_")
        for function in functions
        if not file.asserts(function)
    ]


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in TESTS.rglob("test_*.py")}), ids=lambda path: path.name
)
def test_every_test_asserts_something(folder):
    silent = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in sorted(folder.glob("test_*.py"))
        for function in silent_tests(read(path))
    ]
    assert not silent, "these assert nothing: " + ", ".join(silent)


@pytest.mark.parametrize(
    ("body", "silent"),
    [
        ("go()", True),
        ("assert go()", False),
        ("with pytest.raises(ValueError): go()", False),
        ("helper()", False),
        ("through()", False),
        ("thing.method()", False),
        ("run(inner)", True),
        ("run(helper)", False),
        ("test_other()", True),
        ("circle()", True),
    ],
)
def test_a_test_without_an_assertion_is_found(body, silent):
    code = f"""
def test_it():
    {body}
def test_other(): assert True
def helper(): assert True
def through(): helper()
def circle(): circle()
class Thing:
    def method(self): assert True
"""
    assert [found.name for found in silent_tests(File(ast.parse(code)))] == ["test_it"] * silent
