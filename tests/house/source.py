"""Our own source, read as syntax trees: which names a module uses and where, and which strings it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = SRC / "wakeful"


@dataclass(frozen=True)
class Module:
    """One file of the package: its dotted name, whether it is a package's `__init__`, and its tree."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def room(self) -> str:
        """The package it belongs to: `kernel` for wakeful.kernel.loop.loop, `cli` for wakeful.surfaces.cli.app."""
        _, _, rest = self.name.partition(".")
        first, _, inner = rest.partition(".")
        return (inner if first in ("domains", "surfaces") else rest).partition(".")[0] or "__init__"

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


@cache
def modules() -> tuple[Module, ...]:
    return tuple(read_module(path, SRC) for path in sorted(PACKAGE.rglob("*.py")))


def read_module(path: Path, base: Path) -> Module:
    parts = path.relative_to(base).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, ast.parse(path.read_text(encoding="utf-8"), str(path)))


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """Every dotted name the module imports, with its line; `from a import b` is `a.b`, relative ones are resolved."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def uses(module: Module) -> Iterator[tuple[str, int]]:
    """Every use of an imported name by its full dotted path, whatever it is called here: `t.sleep` is `time.sleep`."""
    known: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names if alias.asname}
            known |= {alias.name.partition(".")[0]: alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            known |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute | ast.Name) and (name := _dotted(node, known)):
            yield name, node.lineno


def _dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute) and (origin := _dotted(node.value, known)):
        return f"{origin}.{node.attr}"
    return None


def strings(module: Module) -> Iterator[tuple[str, int]]:
    """Every string the module holds but its docstrings; of an f-string, the fixed parts."""
    documentation = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value, node.lineno
