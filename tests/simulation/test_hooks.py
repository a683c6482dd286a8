"""What kinds add to the engine's transactions agrees with the runs whatever happens; so does the table of states."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.world import MEMORY_DISK, PICKY, World, live
from wakeful.kernel.context import Context
from wakeful.kernel.engine import ending
from wakeful.kernel.rules.outcome import ARROWS
from wakeful.store.interface import Transaction
from wakeful.testing import run

SEEDS = range(PICKY, PICKY + 60)
GROUPS = 12

NOTE_STEPS = """
CREATE TABLE steps (before TEXT, after TEXT);
CREATE TRIGGER made AFTER INSERT ON runs BEGIN INSERT INTO steps VALUES (NULL, NEW.status); END;
CREATE TRIGGER changed AFTER UPDATE OF status ON runs WHEN OLD.status <> NEW.status
BEGIN INSERT INTO steps VALUES (OLD.status, NEW.status); END;
CREATE TRIGGER changed_end AFTER UPDATE OF outcome ON runs WHEN OLD.outcome IS NOT NULL
BEGIN INSERT INTO steps VALUES ('done', 'done again'); END;
"""


@pytest.mark.promise("H2", "H9", "H11", "H12")
@pytest.mark.parametrize("group", range(GROUPS))
def test_hooks_are_of_one_mind_with_the_runs_whatever_happens(group: int) -> None:
    starts = deaths = refused = 0
    for seed in SEEDS[group::GROUPS]:
        world = live(seed, steps=40)
        starts += world.starts
        deaths += world.deaths
        refused += world.hooks.refused.total()
    assert min(starts, refused) > 5
    assert deaths > 1


class Noted(World):
    """A world whose database notes every step of every run."""

    async def _birth(self) -> None:
        await super()._birth()
        with sqlite3.connect(self.path) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'steps'").fetchall():
                connection.executescript(NOTE_STEPS)
        connection.close()

    def seen(self) -> set[tuple[str | None, str]]:
        return {(row[0], row[1]) for row in self._watch().execute("SELECT DISTINCT before, after FROM steps")}


@pytest.mark.promise("X9")
def test_every_step_a_run_takes_is_an_arrow_of_the_table() -> None:
    seen: set[tuple[str | None, str]] = set()
    for seed in range(PICKY + 200, PICKY + 212):
        with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
            world = Noted(seed, Path(folder))
            try:
                run(world.live(40), world.clock)
                seen |= world.seen()
            finally:
                world.close()
    assert {step for step in seen if step[0] is not None} <= ARROWS
    assert {after for before, after in seen if before is None} == {"queued", "active"}
    assert ARROWS - seen <= {("active", "queued")}, "nearly every arrow was taken"


def _breaks() -> str:
    for seed in SEEDS:
        try:
            live(seed, steps=40)
        except Broken as broken:
            return str(broken)
    return ""


def test_it_finds_an_end_that_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ending._call_ended

    def but_for_dropped(tx: Transaction, context: Context, endings: list[ending.Ending]) -> None:
        call(tx, context, [item for item in endings if item.run.status != "queued"])

    monkeypatch.setattr(ending, "_call_ended", but_for_dropped)
    assert "is over, and" in _breaks()


def test_it_finds_an_end_that_is_reported_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ending._call_ended

    def twice(tx: Transaction, context: Context, endings: list[ending.Ending]) -> None:
        call(tx, context, [*endings, *endings[:1]])

    monkeypatch.setattr(ending, "_call_ended", twice)
    assert "was reported 2 times" in _breaks()
