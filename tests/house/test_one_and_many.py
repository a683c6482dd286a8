"""A number and its noun agree: `1 run`, `3 runs`. `wakeful.counting.counted` writes both."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import modules
from wakeful.counting import counted

NOUNS = """
    actions agents alerts approvals attempts beats bytes changes characters connectors copies days deliveries digits
    entries errors events failures fields files handlers heartbeats hops hours inputs items jobs keys lanes levels lines
    messages minutes mistakes months names nodes questions records requests retries rows runs schedules seconds servers
    sessions skips slots starts steps stores streams threads times tokens topics tries values versions wakes weeks words
    workflows years
""".split()  # noqa: SIM905 - read as a text
AFTER_A_NUMBER = re.compile(rf" (?:(?!(?:of|in|to|as|and|is|by|for|has) )[a-z]+ )?(?:{'|'.join(NOUNS)})\b")
IN_A_FORMAT = re.compile(rf"%[sd](?: [a-z]+)? (?:{'|'.join(NOUNS)})\b")
TEXTS = {
    "run_id", "name", "who", "ref", "job.name", "again.id", "pressed.on", "given[1]", "program", "trigger.type", "url",
    "consumer.name", "_of(folder)", "type(self).__name__",
}  # fmt: skip
"""No numbers: what follows them is a verb."""
MANY = {"step", "many", "facts.runs", "most", "digits", "self._settings.max_depth"}
"""Never 1 where a plural follows them; the last three are limits that the code sets."""


def wrong_plurals(tree: ast.AST) -> list[tuple[int, str]]:
    """Texts that put a plural behind a number which may be 1, each with its line."""
    found: list[tuple[int, str]] = []
    for node, decided in _texts(tree, decided=False):
        if isinstance(node, ast.Constant):
            if IN_A_FORMAT.search(node.value) or (AFTER_A_NUMBER.fullmatch(node.value) and not decided):
                found.append((node.lineno, node.value))
            continue
        for number, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(number, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            shown = ast.unparse(number.value)
            is_left = decided or _is_fixed(number.value) or shown in TEXTS | MANY
            if AFTER_A_NUMBER.match(text.value) and not is_left:
                found.append((node.lineno, f"{{{shown}}}{text.value}"))
    return found


def _texts(node: ast.AST, *, decided: bool):
    """Every text; `decided`: there is another one for 1."""
    for child in ast.iter_child_nodes(node):
        here = decided or (isinstance(node, ast.IfExp) and "1" in ast.unparse(node.test))
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and isinstance(child.value, str)):
            yield child, here
        if isinstance(child, ast.JoinedStr):
            for part in child.values:
                yield from _texts(part, decided=here)
        else:
            yield from _texts(child, decided=here)


def _is_fixed(number: ast.expr) -> bool:
    """Made of constants of the code, which are not 1."""
    names = [one.id for one in ast.walk(number) if isinstance(one, ast.Name)]
    return all(name.isupper() for name in names) and not any(isinstance(one, ast.Call) for one in ast.walk(number))


def test_no_text_has_a_plural_where_there_may_be_one():
    wrong = [
        f"{module.at(line)}: {text!r}: use wakeful.counting.counted"
        for module in modules()
        for line, text in wrong_plurals(module.tree)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "is_wrong"),
    [
        ("f'{n} runs'", True),
        ("f'{len(found)} waiting jobs are due'", True),
        ("f'{self.size} bytes at most'", True),
        ("log.info('%s jobs were paused', n)", True),
        ("part(n, ' runs')", True),
        ("f'{MOST} bytes'", False),
        ("'1 run' if n == 1 else f'{n} runs'", False),
        ("f'{counted(n, \"run\")} ended'", False),
        ("f'{name} has ended'", False),
    ],
)
def test_what_may_be_one_is_noticed(code, is_wrong):
    assert bool(wrong_plurals(ast.parse(code))) is is_wrong


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "run", "0 runs"), (1, "run", "1 run"), (2, "waiting job", "2 waiting jobs"), (1, "entry", "1 entry")],
)
def test_a_number_agrees_with_its_noun(number, noun, text):
    assert counted(number, noun) == text


def test_a_noun_may_have_a_plural_of_its_own():
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(1, "entry", "entries") == "1 entry"
