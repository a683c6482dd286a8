"""The crash matrix of workflows as a table: the process dies at every point, on both stores, once and twice."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kernel.scene import Scene
from tests.store.postgres_server import emptied_url
from tests.workflows.dying import AGAIN, POINTS, die_and_recover
from tests.workflows.mailroom import Mailroom
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.testing import run

if TYPE_CHECKING:
    from tests.workflows.dying import End

COLUMNS = [(store, reconciles) for store in ("SQLite", "PostgreSQL") for reconciles in (True, False)]
#: One node that waits for no other: its beats would be most of what happens in an hour.
ALONE = Tuning(lease=LeaseTimes(beat_ms=3_600_000, lease_ms=4 * 3_600_000), sweep_ms=600_000)


def drill(*, twice: bool = True) -> list[str]:
    """Print the table; what was not as promised."""
    logging.disable(logging.CRITICAL)  # hundreds of processes that die say so
    try:
        return _print_table(twice=twice)
    finally:
        logging.disable(logging.NOTSET)


def _print_table(*, twice: bool) -> list[str]:
    wrong: list[str] = []
    heads = [f"{store}, {'reconcile' if reconciles else 'person'}" for store, reconciles in COLUMNS]
    print(f"  {'the process dies':<28} {'mutated':<8} " + " ".join(f"{head:<22}" for head in heads))
    for point in POINTS:
        cells, happened = [], set[bool]()
        for store, reconciles in COLUMNS:
            ends = []
            for points in [[point], *([[point, again] for again in AGAIN] if twice and store == "SQLite" else [])]:
                try:
                    ends.append(_die(store, points, reconciles=reconciles))
                except Exception as error:  # noqa: BLE001 - a cell of the table, and reported at the end
                    wrong.append(f"{store}, {'+'.join(map(' '.join, points))}, {reconciles}: {error!r:.200}")
            happened |= {end.had_happened for end in ends}
            cells.append(_cell(ends))
        mutated = "yes" if happened == {True} else "no" if happened == {False} else "?"
        print(
            f"  {' '.join(reversed(point)):<28} {mutated:<8} " + " ".join(f"{cell:<22}" for cell in cells), flush=True
        )
    print("  Each cell: how it ended, and in how many deaths; every event consumed once, every mutation made once.")
    return wrong


def _cell(ends: list[End]) -> str:
    if not ends:
        return "BROKEN"
    asked = sum(end.asked for end in ends)
    said = "committed" if not asked else "settled" if asked == len(ends) else f"{asked} settled"
    return f"{said} ({len(ends)})"


def _die(store: str, points: list[tuple[str, str]], *, reconciles: bool) -> End:
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        url = f"sqlite:///{folder}/wakeful.db" if store == "SQLite" else emptied_url()
        room = Mailroom(Scene(url, None if store == "SQLite" else ALONE))
        end: End = run(die_and_recover(room, points, reconciles=reconciles), room.clock)
        return end
