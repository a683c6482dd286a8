"""What blocks has threads of its own: nothing uses those of the event loop, which one hung call would take from all."""

from __future__ import annotations

import ast

from tests.house.source import modules, uses


def test_nothing_uses_the_default_threads_of_the_loop():
    found = [
        f"{module.at(node.lineno)}: run_in_executor(None, …)"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "run_in_executor"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    names = [(module.at(line), name) for module in modules() for name, line in uses(module)]
    found += [f"{place}: {name}" for place, name in names if name == "asyncio.to_thread"]
    assert found == []
