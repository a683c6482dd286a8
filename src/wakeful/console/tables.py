"""Listings: tables that fit the terminal for people, JSON for programs.

Through a pipe a table keeps its natural width, so that nothing is cut from what another program reads.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful.console.humanize import plain, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
HowMany = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, max=10_000, help="How many.")]

GAP = 2
NATURAL = 4096  # wider than any line: nothing is cut
#: Where one of these is set, text is laid out as for a terminal although it goes elsewhere.
_FOR_CONSOLES = ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")

STYLES = {
    "running": "cyan",
    "active": "cyan",
    "queued": "blue",
    "waiting": "blue",
    "idle": "",
    "paused": "yellow",
    "done": "green",
    "disabled": "red",
    "success": "green",
    "noop": "green",
    "skipped": "yellow",
    "deferred": "yellow",
    "cancelled": "yellow",
    "error": "red",
    "timeout": "red",
    "crashed": "red",
    "unknown": "red",
}


class Column(NamedTuple):
    """A column: its title, how far it may be cut, and when it goes altogether (the highest `spare` first)."""

    title: str
    least: int = 6
    spare: int = 0  # 0: never left out


class Cell(NamedTuple):
    """A cell that has a colour."""

    text: str
    style: str = ""


def print_json(value: Any) -> None:
    """JSON and nothing else; control characters in it are escaped, so it is the same value to any reader."""
    print(_json_text(json.dumps(value, indent=2, ensure_ascii=False)))


def _json_text(text: str) -> str:
    return visible(text, keep="\n", escape=lambda letter: json.dumps(letter)[1:-1])


class JsonLines:
    """A JSON list that is printed while it is read: a line for each item, and none of them is kept."""

    def __init__(self) -> None:
        self._head = "["
        self._encode = json.JSONEncoder(ensure_ascii=False).encode

    def put(self, items: Sequence[Any]) -> None:
        if items:
            text = ",\n".join(self._encode(item) for item in items)
            sys.stdout.write(f"{self._head}\n{_json_text(text)}")
            self._head = ","

    def end(self) -> None:
        print("[]" if self._head == "[" else "\n]")


class JsonParts:
    """A JSON object that is printed while it is made: its first fields, a list item by item, and its last fields."""

    def __init__(self, first: dict[str, Any], name: str) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False).encode
        self._between = _json_text(self._encode({**first, name: []}).removesuffix("]}")) + "\n"

    def put(self, item: Any) -> None:
        sys.stdout.write(f"{self._between}{_json_text(self._encode(item))}")
        self._between = ",\n"

    def end(self, last: dict[str, Any]) -> None:
        begun = "" if self._between == ",\n" else self._between
        print(f"{begun}],\n{_json_text(self._encode(last)[1:])}")


def coloured(word: str) -> Cell:
    """A status or an outcome in its colour."""
    return Cell(word, STYLES.get(word, ""))


def console(*, stderr: bool = False) -> Console:
    """Where text goes: as wide as the terminal, or as wide as it wants where there is none."""
    from rich.console import Console

    class PipeSafeConsole(Console):
        """Leaves it to the command to end when its reader has; by itself it would end the process as failed."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else NATURAL
    return PipeSafeConsole(file=stream, width=width, highlight=False, soft_wrap=width == NATURAL)


def is_piped() -> bool:
    """Whether text goes to a program or a file: then it has no colours and is as wide as it wants."""
    return not sys.stdout.isatty() and not any(map(os.environ.get, _FOR_CONSOLES))


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]]) -> None:
    """A table as wide as there is room for."""
    if is_piped() and (lines := plain_lines(columns, rows)) is not None:
        print("\n".join(lines))
        return
    out = console()
    for line in table_lines(columns, rows, out.width):
        print_line(out, line)


def table_lines(columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]], width: int) -> list[Text]:
    """A table as lines of at most that width, its titles first."""
    from rich.text import Text

    cells = [[Cell(column.title, "bold") for column in columns]]
    cells += [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    cells = [[Cell(plain(cell.text), cell.style) for cell in row] for row in cells]
    kept = layout(columns, [[cell.text for cell in row] for row in cells], width)
    last = kept[-1][0]
    lines = []
    for row in cells:
        line = Text()
        for index, size in kept:
            part = Text(row[index].text, row[index].style)
            part.truncate(size, overflow="ellipsis", pad=index != last)
            line.append_text(part).append("" if index == last else " " * GAP)
        line.rstrip()
        lines.append(line)
    return lines


def plain_lines(columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]]) -> list[str] | None:
    """The same table without colours, every column whole; None where that is too wide, or has letters of other widths.

    It is what most programs read, and to load what colours and measures takes longer than most commands.
    """
    cells = [[plain(column.title) for column in columns]]
    cells += [[plain(cell.text if isinstance(cell, Cell) else cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [(" " * GAP).join(map(str.ljust, row, widths)).rstrip() for row in cells]
    return lines if all(map(str.isascii, lines)) and max(map(len, lines)) <= NATURAL else None


def print_line(out: Console, line: Text) -> None:
    """A line that is already as wide as it may be."""
    out.print(line, no_wrap=True, overflow="ignore", crop=False)


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[tuple[int, int]]:
    """Which columns to show and how wide: whole where there is room, then cut, then without the spare ones."""
    from rich.cells import cell_len

    natural = [max((cell_len(row[index]) for row in rows), default=0) for index in range(len(columns))]
    kept = list(range(len(columns)))
    while True:
        least = [min(natural[index], columns[index].least) for index in kept]
        spare = [index for index in kept if columns[index].spare]
        if sum(least) + GAP * (len(kept) - 1) <= width or not spare:
            break
        kept.remove(max(spare, key=lambda index: columns[index].spare))
    sizes = {index: natural[index] for index in kept}
    over = sum(sizes.values()) + GAP * (len(kept) - 1) - width
    while over > 0:
        # The one that can give most gives: a long schedule before a name.
        index = max(kept, key=lambda index: sizes[index] - columns[index].least)
        if sizes[index] <= 1:
            break
        sizes[index] -= 1
        over -= 1
    return [(index, sizes[index]) for index in kept]


def print_sentence(sentence: str) -> None:
    """A sentence, wrapped to the width there is."""
    if is_piped() and "\t" not in sentence:
        print(visible(sentence, keep=""))
        return
    from rich.text import Text

    console().print(Text(visible(sentence, keep="\t")))


def print_facts(facts: Sequence[tuple[str, str | Cell]]) -> None:
    """Names and values, one a line, long values wrapped under themselves."""
    names = max(len(name) for name, _ in facts) + GAP
    if is_piped():
        for name, value in facts:
            print(f"{plain(name):<{names}}{plain(value.text if isinstance(value, Cell) else value).rstrip()}")
        return
    from rich.text import Text

    out = console()
    for name, value in facts:
        print_beside(out, Text(f"{plain(name):<{names}}", "bold"), value if isinstance(value, Cell) else Cell(value))


def print_beside(out: Console, label: Text, value: Cell) -> None:
    """A label and what belongs to it, wrapped under itself."""
    from rich.text import Text

    indent = label.cell_len
    wrapped = Text(plain(value.text), value.style).wrap(out, max(out.width - indent, 20), overflow="fold")
    for number, part in enumerate(wrapped or [Text()]):
        part.rstrip()
        print_line(out, (Text(" " * indent) if number else label).append_text(part))
