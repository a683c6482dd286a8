"""How large the source is: lines of code per room without blanks, comments and docstrings, files, and names used twice.

python -m tools.sizes
git worktree add /tmp/before v0.2.0 && python -m tools.sizes /tmp/before/src/wakeful
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "wakeful"
WITHOUT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
WITHOUT_CODE |= {tokenize.ENDMARKER, tokenize.ENCODING}
SMALL, LARGE = 60, 400
DEFINES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class File(NamedTuple):
    """One module, read."""

    room: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def lines_of_code(self) -> int:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        code = {
            line
            for token in tokens
            if token.type not in WITHOUT_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
        return len(code - docstring_lines(self.tree))

    def classes(self) -> list[str]:
        return [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    def has_late_imports(self) -> bool:
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        functions = {node.name for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        return "TYPE_CHECKING" in names or "__getattr__" in functions


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of all texts that stand alone: docstrings, and what explains a name above them."""
    found: set[int] = set()
    for node in ast.walk(tree):
        for one in node.body if isinstance(node, DEFINES) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
                found.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    return found


def read(root: Path) -> list[File]:
    files = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts[:-1]
        text = path.read_text()
        files.append(File("/".join(parts[:2]) or ".", text, ast.parse(text)))
    return files


def print_sizes(files: list[File]) -> None:
    print(f"{'room':24}{'files':>7}{'lines':>8}{'code':>8}")
    for room in sorted({file.room for file in files}):
        inside = [file for file in files if file.room == room]
        code = sum(file.lines_of_code for file in inside)
        print(f"{room:24}{len(inside):7}{sum(file.lines for file in inside):8}{code:8}")
    code = sum(file.lines_of_code for file in files)
    print(f"{'all':24}{len(files):7}{sum(file.lines for file in files):8}{code:8}")
    names = Counter(name for file in files for name in file.classes())
    again = {name: count for name, count in names.items() if count > 1}
    small = sum(file.lines <= SMALL for file in files)
    print(f"\n{names.total()} classes, {len(again)} names used more than once")
    print(", ".join(f"{name} {count}" for name, count in sorted(again.items(), key=lambda one: (-one[1], one[0]))))
    print(f"{small} files of at most {SMALL} lines, {sum(file.lines > LARGE for file in files)} of more than {LARGE}")
    print(f"{sum(file.has_late_imports() for file in files)} files with TYPE_CHECKING or __getattr__")


if __name__ == "__main__":
    print_sizes(read(Path(sys.argv[1]) if sys.argv[1:] else SOURCE))
