"""What can be said about proposed code without running any of it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping


def refuse_syntax(files: Mapping[str, str]) -> str | None:
    """Why these texts are not Python; None where all of them are."""
    for name, text in files.items():
        try:
            compile(text, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            return f"{type(error).__name__}: {error}"
    return None


def refuse_other_workflow(source: str, attribute: str, name: str) -> str | None:
    """Why the file cannot hold that workflow under that attribute; None where it does, or only running it shows.

    `source` is Python, as `refuse_syntax` has found.
    """
    tree = ast.parse(source)
    bound = [value for target, value in _bindings(tree) if target in (attribute, "*")]
    if not bound:
        return f"it has no workflow called {attribute}"
    call = bound[-1]
    if not isinstance(call, ast.Call) or not _is_workflow(call.func):
        return None
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "name")]
    other = given[0].value if len(given) == 1 and isinstance(given[0], ast.Constant) else name
    if other != name:
        return f"it is of a workflow called {other!r:.80}"
    return None


def _is_workflow(function: ast.expr) -> bool:
    return (isinstance(function, ast.Name) and function.id == "Workflow") or (
        isinstance(function, ast.Attribute) and function.attr == "Workflow"
    )


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that the module may bind, in order, each with its value where that is plain; `*` may be any."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            names = [one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
            yield from ((one, node.value if plain else None) for one in names)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.partition(".")[0], None) for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, None
