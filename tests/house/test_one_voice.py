"""The command line prints in one place, where control characters from outside are made visible."""

from __future__ import annotations

import ast

from tests.house.source import modules

#: Where text leaves, and the tables, which show nothing but what went through `plain`.
VOICES = {"output.py", "tables.py"}


def spoken(tree: ast.AST) -> list[int]:
    """Lines that print, write to a standard stream, or let a library do so."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    found += [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and (call.func.attr in {"echo", "secho", "print", "writelines"} or _is_stream(call.func))
    ]
    return [call.lineno for call in found]


def _is_stream(function: ast.Attribute) -> bool:
    return function.attr == "write" and ast.unparse(function.value).startswith(("sys.stdout", "sys.stderr"))


def test_nothing_in_the_command_line_prints_past_the_one_place():
    wrong = [
        f"{module.at(line)}: use wakeful.console.output"
        for module in modules()
        if module.room == "cli" and module.path.name not in VOICES
        for line in spoken(ast.parse(module.path.read_text(encoding="utf-8")))
    ]
    assert wrong == []


def test_every_way_to_print_is_noticed():
    lines = [
        "print('x')",
        "sys.stdout.write('x')",
        "sys.stdout.buffer.write(b'x')",
        "out.print('x')",
        "typer.echo('x')",
    ]
    assert spoken(ast.parse("\n".join(lines))) == [1, *range(2, 6)]
