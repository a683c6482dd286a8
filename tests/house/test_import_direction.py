"""Dependencies point down only; a room that is not placed below fails until it is."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import Module, imports, modules, read_module

FOREIGN = re.compile(r"\b(HTTP|http|headers|body_hash|POST|GET|PUT|PATCH|prompt)\b")
"""Words of surfaces and domains."""

FOUNDATION, TRIGGERS, STORE, KERNEL, FACADE, DOMAIN, CONFIG, TESTING, SURFACE = range(9)

LAYER = {
    "errors": FOUNDATION,
    "clock": FOUNDATION,
    "callables": FOUNDATION,
    "child_processes": FOUNDATION,
    "counting": FOUNDATION,
    "threads": FOUNDATION,
    "fields": FOUNDATION,
    "ids": FOUNDATION,
    "patterns": FOUNDATION,
    "private_files": FOUNDATION,
    "outbound": FOUNDATION,
    "references": FOUNDATION,
    "trust": FOUNDATION,
    "version": FOUNDATION,
    "triggers": TRIGGERS,
    "store": STORE,
    "kernel": KERNEL,
    "domains": FACADE,
    "scheduler": FACADE,
    "sync": FACADE,
    "__init__": FACADE,
    "command": DOMAIN,
    "http": DOMAIN,
    "agents": DOMAIN,
    "fleet": DOMAIN,
    "monitors": DOMAIN,
    "alerts": DOMAIN,
    "workflows": DOMAIN,
    "delivery": DOMAIN,
    "config": CONFIG,
    "testing": TESTING,
    "workflow_testing": TESTING,
    "api": SURFACE,
    "web": SURFACE,
    "cli": SURFACE,
    "mcp": SURFACE,
    "__main__": SURFACE,
}

#: What a domain adds to the surfaces lies in its own room, in files or folders of these names, and is loaded by them.
SURFACES_OF_A_DOMAIN = {"routes", "route_models", "commands", "configuration"}


def wrong_imports(module: Module) -> list[str]:
    """What the module imports and may not, each with its place and the reason."""
    if module.room not in LAYER:
        return [f"{module.at(1)}: the room {module.room!r} has no layer yet: place it in {__file__}"]
    found = []
    for name, line in imports(module):
        if (reason := refusal(module, name)) is not None:
            found.append(f"{module.at(line)}: {name}: {reason}")
    return found


def refusal(module: Module, imported: str) -> str | None:
    package, _, rest = imported.partition(".")
    if package != "wakeful":
        return None
    room, _, inside = rest.partition(".")
    room = room if room in LAYER else "__init__"
    # The top level exports what the packages define, except the surfaces.
    reach = TESTING if module.room == "__init__" else LAYER[module.room]
    if reach == DOMAIN and not SURFACES_OF_A_DOMAIN.isdisjoint(module.name.split(".")):
        reach = SURFACE
    if LAYER[room] > reach:
        return f"{module.room} lies below {room}; turn the arrow round"
    if LAYER[room] == LAYER[module.room] == DOMAIN and room != module.room and "." in inside:
        return f"{module.room} may use what {room} offers, not its insides"
    return None


@pytest.mark.promise("H18")
def test_every_import_points_down():
    assert [line for module in modules() for line in wrong_imports(module)] == []


@pytest.mark.promise("H18")
def test_the_kernel_has_no_word_for_how_it_is_asked():
    kernel = [module for module in modules() if module.room == "kernel" and not module.is_package]
    assert kernel
    found = {str(module.path): FOREIGN.findall(ast.unparse(module.tree)) for module in kernel}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.promise("H18")
@pytest.mark.parametrize(
    ("path", "line", "allowed"),
    [
        ("kernel/engine/loop.py", "from wakeful.store import Store", True),
        ("kernel/engine/loop.py", "from wakeful.agents import wake", False),
        ("kernel/engine/loop.py", "import wakeful.api.app", False),
        ("kernel/engine/loop.py", "from wakeful import Scheduler", False),
        ("kernel/engine/loop.py", "from ...workflows import phases", False),
        ("kernel/engine/loop.py", "from .policy import settle", True),
        ("kernel/__init__.py", "from .engine.loop import Engine", True),
        ("kernel/engine/loop.py", "def late():\n    from wakeful.cli import main", False),
        ("store/sqlite.py", "from wakeful.kernel.run import Run", False),
        ("agents/wake.py", "from wakeful.delivery import enqueue", True),
        ("agents/wake.py", "from wakeful.delivery.outbox import enqueue", False),
        ("agents/wake.py", "from wakeful.agents.session import Session", True),
        ("agents/wake.py", "from wakeful.api import auth", False),
        ("agents/routes.py", "from wakeful.api import auth", True),
        ("agents/routes/work.py", "from wakeful.api import auth", True),
        ("kernel/routes/work.py", "from wakeful.api import auth", False),
        ("cli/serve.py", "from wakeful.api import app", True),
        ("testing.py", "from wakeful.cli import main", False),
        ("__init__.py", "from wakeful.workflows import Workflow", True),
        ("__init__.py", "from wakeful.cli import main", False),
        ("somewhere/new.py", "import os", False),
    ],
)
def test_an_arrow_back_is_found_in_every_spelling(tmp_path, monkeypatch, path, line, allowed):
    file = tmp_path / "wakeful" / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    monkeypatch.setattr("tests.house.source.ROOT", tmp_path)
    assert (wrong_imports(read_module(file, tmp_path)) == []) is allowed
