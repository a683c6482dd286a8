"""One word per thing: the glossary is in order, and names in the code use its words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.source import PACKAGE, ROOT, Module, modules

#: Words that stood for something the glossary has another word for, and that word.
REPLACED = {
    "bury": "take over",
    "mind": "tick",
    "poke": "wake",
    "pulse": "heartbeat",
    "tell": "report, render, notify",
    "told": "reported, rendered, notified",
    "treasure": "row count",
    "unpark": "requeue",
    "welcome": "requeue",
    "witness": "observer",
}
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def names(module: Module) -> Iterator[tuple[str, int]]:
    """Every name that the module makes: of modules, functions, classes, parameters, variables and attributes."""
    yield module.path.stem, 1
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def replaced(module: Module) -> list[str]:
    return [
        f"{module.at(line)}: {name}: say {REPLACED[part]}"
        for name, line in names(module)
        for part in map(str.lower, PART.findall(name))
        if part in REPLACED
    ]


def test_the_glossary_has_every_word_once_and_in_order():
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert words == sorted(set(words))
    assert set(REPLACED) & set(words) == set()


def test_no_name_uses_a_word_that_was_replaced():
    assert [found for module in modules() for found in replaced(module)] == []


@pytest.mark.parametrize(
    "code", ["def _tell(): ...", "class Tell: told = 1", "self.unpark_all = 2", "f = lambda poke: 1"]
)
def test_a_replaced_word_is_found_in_every_kind_of_name(code):
    assert replaced(Module(PACKAGE / "clock.py", "wakeful.clock", ast.parse(code))) != []
