"""The tables and columns that scripts make, read from the scripts themselves.

A table that is added later is known here without a change: `copy` carries it along. And what a database looks like says
which scripts it has seen, where no record does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

Column = tuple[str, str]
"""A table's name and one of its columns."""


class Table(NamedTuple):
    """A table, its columns in order, and those that are its primary key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def tables_after(scripts: Iterable[str]) -> list[Table]:
    """The tables there are once these scripts are done, in the order they came."""
    found: dict[str, Table] = {}
    for script in scripts:
        text = "\n".join(line.partition("--")[0] for line in script.splitlines())
        for statement in text.split(";"):
            _read(" ".join(statement.split()), found)
    return list(found.values())


def columns_after(scripts: Iterable[str]) -> set[Column]:
    """The columns of these tables."""
    return {(table.name, column) for table in tables_after(scripts) for column in table.columns}


def seen_scripts(scripts: Sequence[str], found: AbstractSet[Column], before: Sequence[str] = ()) -> list[int]:
    """How many of `scripts`, from the first on, a database with these columns may have seen; empty when it has other
    columns than after any of them.

    Scripts that change no column leave more than one answer. `before`: what was done before the first of them. Columns
    that no script makes belong to another program.
    """
    base = columns_after(before)
    shapes = [columns_after([*before, *scripts[:count]]) - base for count in range(len(scripts) + 1)]
    theirs = found & set[Column]().union(*shapes)
    return [count for count, shape in enumerate(shapes) if shape == theirs]


def _read(statement: str, found: dict[str, Table]) -> None:
    """What one statement of a script does to the tables."""
    if made := re.fullmatch(r"CREATE TABLE (\w+) \((.*)\)", statement):
        found[made[1]] = _table(made[1], _parts(made[2]))
    elif more := re.match(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", statement):
        table = found[more[1]]
        found[more[1]] = table._replace(columns=(*table.columns, more[2]))
    elif less := re.match(r"ALTER TABLE (\w+) DROP COLUMN (\w+)", statement):
        table = found[less[1]]
        found[less[1]] = table._replace(columns=tuple(name for name in table.columns if name != less[2]))
    elif gone := re.match(r"DROP TABLE (\w+)", statement):
        del found[gone[1]]
    elif re.match(r"ALTER TABLE", statement):
        message = f"unsupported migration statement: {statement}"
        raise ValueError(message)


def _parts(inside: str) -> list[str]:
    """The columns and rules of a table, cut at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _table(name: str, parts: Sequence[str]) -> Table:
    columns, key = list[str](), list[str]()
    for part in parts:
        if rule := re.fullmatch(r"PRIMARY KEY \((.*)\)", part):
            key = [column.strip() for column in rule[1].split(",")]
        elif not re.match(r"(CHECK|UNIQUE|FOREIGN|CONSTRAINT)\b", part):
            columns.append(part.split()[0])
            key += [columns[-1]] if "PRIMARY KEY" in part else []
    return Table(name, tuple(columns), tuple(key))
