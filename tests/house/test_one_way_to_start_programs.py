"""Only child_processes.py starts programs: with a clean environment, and what is listed for each."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.source import Module, imports, modules, read_module, uses

STARTER = "wakeful.child_processes"
MODULES = re.compile(
    r"(subprocess|pty|multiprocessing|webbrowser|_posixsubprocess|posix|asyncio\.subprocess|pexpect|plumbum)\b"
)
CALLS = re.compile(
    r"os\.(system|popen\d?|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|fork|forkpty|startfile)"
    r"|asyncio\.create_subprocess_(exec|shell)"
    r"|concurrent\.futures\.(process\.)?ProcessPoolExecutor"
    r"|(click|typer)\.(launch|edit)"
)
METHODS = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "Popen"}


def starts(module: Module) -> list[str]:
    """Where a module could start a program."""
    found = {(name, line) for name, line in imports(module) if MODULES.match(name)}
    found |= {(name, line) for name, line in [*imports(module), *uses(module)] if CALLS.fullmatch(name)}
    found |= {
        (node.func.attr, node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
    }
    return [f"{module.at(line)}: {name}" for name, line in sorted(found, key=lambda one: (one[1], one[0]))]


def test_only_one_module_starts_programs():
    assert [found for module in modules() if module.name != STARTER for found in starts(module)] == []


def test_that_module_starts_them_in_one_place_which_asks_for_an_environment():
    [module] = [one for one in modules() if one.name == STARTER]
    calls = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Popen", "_exec", "_shell", ".run", ".call"))
    ]
    assert [ast.unparse(call.func) for call in calls] == ["subprocess.Popen"]
    assert "env" in {keyword.arg for keyword in calls[0].keywords}
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
    [starter] = [function for function in functions if calls[0] in ast.walk(function)]
    options = zip(starter.args.kwonlyargs, starter.args.kw_defaults, strict=True)
    assert "env" in {option.arg for option, default in options if default is None}


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess\nsubprocess.run(['ls'])",
        "from subprocess import Popen as p\np(['ls'])",
        "import asyncio\nasyncio.create_subprocess_exec('ls')",
        "from asyncio import create_subprocess_shell as c\nc('ls')",
        "from asyncio.subprocess import create_subprocess_exec",
        "import os\nos.system('ls')",
        "import os as o\no.execvpe('ls', [], {})",
        "from os import posix_spawn\nposix_spawn('ls', [], {})",
        "import os\nos.popen('ls')",
        "import os\nos.fork()",
        "import multiprocessing as m\nm.Process()",
        "from concurrent.futures import ProcessPoolExecutor",
        "import pty\npty.spawn('sh')",
        "import typer\ntyper.launch('https://x')",
        "async def f(loop):\n    await loop.subprocess_exec(None, 'ls')",
    ],
)
def test_every_way_to_start_a_program_is_found(tmp_path, monkeypatch, code):
    monkeypatch.setattr("tests.house.source.ROOT", tmp_path)
    (tmp_path / "part.py").write_text(code)
    assert starts(read_module(tmp_path / "part.py", tmp_path)) != []
