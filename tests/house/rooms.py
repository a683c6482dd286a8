"""The rooms of the code and which of them uses which, read from all imports: also those in functions and for types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from tests.house.source import PACKAGE, ROOT, Module, imports, modules, strings
from wakeful.domains import MODULES

TOP = "__init__"
REFERENCE = re.compile(r"wakeful(?:\.\w+)+:\w+")
"""`module:name`: an import that is made when it is needed."""

GROUPS = ("kernel", "domains", "surfaces")
"""Folders whose folders are rooms."""

DOMAINS = {f"domains/{module.split('.')[2]}" for module in MODULES}
SURFACES = {f"surfaces/{path.parent.name}" for path in PACKAGE.glob("surfaces/*/__init__.py")}


def room_of(name: str) -> str:
    """The room of a dotted name below `wakeful`: a folder or a file at the top, or a folder of a group."""
    _, first, second, *_ = [*name.split("."), "", ""]
    if first in GROUPS and (PACKAGE / first / second).is_dir() and second:
        return f"{first}/{second}"
    if first and ((PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").is_file()):
        return first
    return TOP


def used_by(module: Module) -> Iterable[tuple[str, int]]:
    """Every name of ours that the module imports or refers to, with its line."""
    yield from ((name, line) for name, line in imports(module) if name.partition(".")[0] == "wakeful")
    for text, line in strings(module):
        if REFERENCE.fullmatch(text):
            yield text.replace(":", "."), line


def graph_of(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Each room with those it uses."""
    graph: dict[str, set[str]] = {}
    for module in modules:
        own = room_of(module.name)
        graph.setdefault(own, set()).update(room_of(name) for name, _ in used_by(module))
    return {room: used - {room} for room, used in graph.items()}


@cache
def current() -> dict[str, set[str]]:
    """The graph of our own code."""
    return graph_of(modules())


@cache
def free_for_all() -> set[str]:
    """The foundation of our own code."""
    return foundation(current())


def foundation(graph: dict[str, set[str]]) -> set[str]:
    """The files at the top that use nothing but each other: every room may use them."""
    found = {room for room in graph if (PACKAGE / f"{room}.py").is_file() and room != TOP}
    while above := {room for room in found if not graph[room] <= found}:
        found -= above
    return found


@cache
def drawn() -> dict[str, set[str]]:
    """The graph that docs/architecture.md shows, top down: a line for each room, `room: those it uses`."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"### Which room uses which\n.*?```\n(.*?)```", text, re.DOTALL)
    assert block is not None, "docs/architecture.md shows no graph of rooms"
    lines = [line.split(":") for line in block[1].splitlines()]
    return {room.strip(): set(used.split()) for room, used in lines}


def ordered(graph: dict[str, set[str]]) -> list[str]:
    """The rooms with every one above those it uses, or AssertionError with a circle."""
    below, found = dict(graph), list[str]()
    while below:
        free = sorted(room for room, used in below.items() if used.isdisjoint(below))
        assert free, f"a circle: {circle(below)}"
        found += free
        below = {room: used for room, used in below.items() if room not in free}
    return found[::-1]


def circle(graph: dict[str, set[str]]) -> str:
    """One circle in a graph in which every room uses another one."""
    path = [next(iter(sorted(graph)))]
    while path[-1] not in path[:-1]:
        path.append(min(graph[path[-1]] & graph.keys()))
    return " -> ".join(path[path.index(path[-1]) :])
