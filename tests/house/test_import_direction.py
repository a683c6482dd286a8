"""Dependencies point one way, from room to room, as docs/architecture.md shows; there is no list of exceptions."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.rooms import DOMAINS, SURFACES, circle, current, drawn, free_for_all, ordered, room_of, used_by
from tests.house.source import Module, modules, read_module

FOREIGN = re.compile(r"\b(HTTP|http|headers|body_hash|POST|GET|PUT|PATCH|prompt)\b")
"""Words of surfaces and domains."""


def wrong_imports(module: Module) -> list[str]:
    """What the module imports and may not, each with its place and the reason."""
    shown, own = drawn(), room_of(module.name)
    order = list(shown)
    found = []
    for name, line in used_by(module):
        room = room_of(name)
        if room == own or room in free_for_all():
            continue
        if own not in shown and own not in free_for_all():
            found.append(f"{module.at(line)}: docs/architecture.md does not show the room {own!r}")
        elif own in free_for_all() or order.index(room) < order.index(own):
            found.append(f"{module.at(line)}: {name}: {own} lies below {room}; turn the arrow round")
        elif {own, room} <= DOMAINS and name.count(".") > len(("wakeful", "domains", "its name")):
            found.append(f"{module.at(line)}: {name}: {own} may use what {room} offers, not its insides")
    return found


@pytest.mark.promise("H18")
def test_every_import_points_down():
    """Also those inside of functions, those for types alone, and references such as `module:name`."""
    ordered(current())
    assert [line for module in modules() for line in wrong_imports(module)] == []


@pytest.mark.promise("H18")
def test_the_architecture_shows_every_room_with_those_it_uses():
    graph, beside = current(), free_for_all()
    wanted = {room: used - beside for room, used in graph.items() if room not in beside}
    order = [room for room in ordered(graph) if room in wanted]
    text = "\n".join(f"{room:17} : {' '.join(sorted(wanted[room]))}".rstrip() for room in order)
    assert drawn() == wanted, f"docs/architecture.md should show:\n{text}"
    above = {room: set(list(drawn())[: place + 1]) for place, room in enumerate(drawn())}
    assert {room: used & above[room] for room, used in drawn().items() if used & above[room]} == {}


@pytest.mark.promise("H18")
def test_a_domain_uses_no_surface_and_the_kernel_no_domain():
    graph, below = current(), {"__init__", *SURFACES}
    assert {room: used & below for room, used in graph.items() if room in DOMAINS and used & below} == {}
    kernel = {room: used & DOMAINS for room, used in graph.items() if room.startswith(("kernel", "store", "scheduler"))}
    assert kernel
    assert set().union(*kernel.values()) == set()


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
        ("kernel/loop/loop.py", "from wakeful.store import Store", True),
        ("kernel/loop/loop.py", "from wakeful.kernel.engine.turn import turn", True),
        ("kernel/engine/turn.py", "from wakeful.kernel.loop.loop import Engine", False),
        ("kernel/engine/turn.py", "from wakeful.kernel.actions.runs import release_runs", False),
        ("kernel/actions/runs.py", "from wakeful.kernel.views import history", False),
        ("kernel/rules/settle.py", "from wakeful.kernel.context import Context", False),
        ("kernel/loop/loop.py", "from wakeful.domains.agents import wake", False),
        ("kernel/loop/loop.py", "import wakeful.surfaces.api.app", False),
        ("kernel/loop/loop.py", "from wakeful import Scheduler", False),
        ("kernel/loop/loop.py", "from ...domains.workflows import phases", False),
        ("kernel/loop/loop.py", "from .policy import settle", True),
        ("kernel/loop/__init__.py", "from .loop import Engine", True),
        ("kernel/loop/loop.py", "def late():\n    from wakeful.surfaces.cli import main", False),
        ("kernel/loop/loop.py", 'late = "wakeful.domains.agents.wake:wake"', False),
        ("store/sqlite.py", "from wakeful.kernel.run import Run", False),
        ("errors.py", "from wakeful.store import Store", False),
        ("domains/agents/wake.py", "from wakeful.domains.delivery import enqueue", True),
        ("domains/agents/wake.py", "from wakeful.domains.delivery.outbox import enqueue", False),
        ("domains/agents/wake.py", "from wakeful.domains.agents.session import Session", True),
        ("domains/agents/routes.py", "from wakeful.routing import auth", True),
        ("domains/agents/routes.py", "from wakeful.surfaces.api import app", False),
        ("domains/agents/commands.py", "def late():\n    from wakeful.surfaces.cli import main", False),
        ("domains/agents/commands.py", "if TYPE_CHECKING:\n    from wakeful.surfaces.cli.app import app", False),
        ("surfaces/cli/serve.py", "from wakeful.surfaces.api import app", True),
        ("testing.py", "from wakeful.cli import main", False),
        ("__init__.py", "from wakeful.domains.workflows import Workflow", True),
        ("__init__.py", "from wakeful.cli import main", False),
    ],
)
def test_an_arrow_back_is_found_in_every_spelling(tmp_path, monkeypatch, path, line, allowed):
    file = tmp_path / "wakeful" / path
    file.parent.mkdir(parents=True)
    file.write_text(line)
    module = read_module(file, tmp_path)
    monkeypatch.setattr("tests.house.source.ROOT", tmp_path)
    assert (wrong_imports(module) == []) is allowed


def test_a_circle_is_named():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}
    with pytest.raises(AssertionError, match="a circle: b -> c -> b"):
        ordered(graph)
    assert circle({"b": {"c"}, "c": {"b"}}) == "b -> c -> b"
