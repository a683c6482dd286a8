"""What is measured: one module per question, each with the table that answers it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders import Contender
from bench.figures import Run, medians
from bench.machine import spin_ms, steal_percent, ticks


@dataclass
class Column:
    """One figure of a table: its field, its heading, and which way is better (None: it only informs)."""

    field: str
    heading: str
    better: str | None = None  # "more" or "less"


@dataclass
class Table:
    """The answer to one question: every run of every contender, and their medians."""

    key: str
    title: str
    columns: list[Column]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ours: str = "Wakeful"
    peers_in: tuple[str, ...] | None = None  # whom the ratio is taken of; None: everybody else
    about: str = ""  # what else it was measured with
    section: str = "sqlite"  # which part of the documentation it belongs to

    def medians(self) -> dict[str, Run]:
        return {name: medians(runs) for name, runs in self.runs.items() if runs}

    def add(self, name: str, run: Run) -> None:
        self.runs.setdefault(name, []).append(run)


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure."""

    quick: bool
    rounds: int
    peers: tuple[Contender, ...]
    say: Callable[[str], None]
    peers_postgres: tuple[Contender, ...] = ()
    minutes: float | None = None  # of a soak


Entry = tuple[str, Callable[[Path], Run]]


def interleave(plan: Plan, table: Table, entries: Sequence[Entry], rounds: int | None = None) -> None:
    """Run everybody once, then everybody again, each in an empty folder; a failure is a note, not an end."""
    failed: set[str] = set()
    for number in range(rounds if rounds is not None else plan.rounds):
        for name, once in entries:
            if name in failed:
                continue
            before = ticks()
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                try:
                    run = once(Path(folder))
                except Exception as error:  # noqa: BLE001 - the others are still measured
                    failed.add(name)
                    table.notes.append(f"{name} did not get through this, and is left out from there on.")
                    plan.say(f"  {table.key} {name}: FAILED {error}")
                    continue
            run["steal_percent"], run["spin_ms"] = steal_percent(before, ticks()), spin_ms()
            table.add(name, run)
            main = table.columns[0]
            plan.say(f"  {table.key} round {number + 1} {name}: {main.heading} {run.get(main.field, 0):,.2f}")
