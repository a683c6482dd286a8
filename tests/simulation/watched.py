"""Several nodes on one database under watch: what may never be seen of them, whatever happens.

After every commit nothing may be held by the dead or settled twice, and none that is well is taken for dead.
"""

from __future__ import annotations

import asyncio

from tests.simulation.eye import Eye
from tests.simulation.invariants import Broken, Ledger, check, check_lanes
from tests.simulation.node import Node, NodeStore, Weather
from tests.simulation.people import LANES, People
from wakeful import Run
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.triggers.moments import to_ms

MAX_RUNNING = 4
TIMES = LeaseTimes()
TAKE_OVER_S = (TIMES.lease_ms + TIMES.beat_ms) / 1000 + 0.5  # and a little for delays


class Watched(People):
    """Nodes, what was seen of them, and what of it breaks a promise."""

    def __init__(self, seed: int, url: str) -> None:
        super().__init__(seed)
        self.eye = Eye(url)
        self.weather = Weather(self.rng)
        self.weather.on_commit = self._committed
        self.nodes: list[Node] = []
        self.ledger = Ledger()
        self.steps_the_clock = False  # of the database: then who is well cannot be said
        self.started: set[str] = set()
        self.violations: list[str] = []  # seen inside nodes, where an exception would only trouble the node
        self.dead: dict[int, float] = {}  # incarnations, and when they died or were seen to have left
        self._bad_weather_until = 0.0

    def _started(self, node: Node, found: Run) -> None:
        """On record before it is acted upon, never early, never twice, only where it may."""
        self.starts += 1
        self._note(f"{node.name} starts {found.id} {found.job} {found.reason} {found.attempt}")
        if found.id in self.started:
            self.violations.append(f"{found.id} was started twice")
        self.started.add(found.id)
        row = self.eye.execute("SELECT status FROM runs WHERE id = ?", (found._row.id,)).fetchone()
        if row is None or row["status"] not in ("active", "done"):
            self.violations.append(f"H12: {found.id} was started before it was on record")
        if to_ms(found.due_at) > (found._row.started_at or 0):
            self.violations.append(f"{found.id} was started early")
        needs = [found.kind, *found.payload.get("labels", ())]
        if not {*node.kinds, *node.labels}.issuperset(needs):
            self.violations.append(f"X13: {found.id} was started on {node.name} and needs {' '.join(needs)}")

    def _committed(self, by: NodeStore) -> None:
        if self.violations:
            return  # the first is the one to look at
        try:
            self.ledger.check(self.eye)
            self._check_taken()
            check_lanes(self.eye, {**LANES, "running": MAX_RUNNING})
        except Broken as broken:
            who = by.node.name if by.node is not None else "the shell"
            self._note(f"{who}: {broken}")
            self.violations.append(f"{broken} (by {who})")

    def _check_taken(self) -> None:
        """Nobody who is well is taken for dead."""
        if self.steps_the_clock:
            return
        for node in self.nodes:
            since = node.well_since()
            if since is None or asyncio.get_running_loop().time() - since < TIMES.lease_ms / 1000:
                continue
            sql = "SELECT taken_by FROM nodes WHERE id = ? AND taken_by IS NOT NULL"
            if self.eye.execute(sql, (node.id,)).fetchone() is not None:
                raise Broken(f"X2: {node.name} was taken for dead, and it is well")

    def _look(self) -> None:
        if self.violations:
            raise Broken(self.violations[0])
        check(self.eye, {**LANES, "running": MAX_RUNNING})
        names = {row["name"] for row in self.eye.execute("SELECT name FROM jobs")}
        if lost := self.acknowledged - names:
            raise Broken(f"H12: {sorted(lost)} were acknowledged and are gone")
        self._look_at_the_dead()

    def _look_at_the_dead(self) -> None:
        """While one node is well, what another held is not held for longer than a lease and a look."""
        now = asyncio.get_running_loop().time()
        for row in self.eye.execute("SELECT id FROM nodes WHERE stopped_at IS NOT NULL ORDER BY id"):
            self.dead.setdefault(row["id"], now)
        if self.weather.lost_rate or now < self._bad_weather_until + 2 * TAKE_OVER_S or self.steps_the_clock:
            return
        well = [since for node in self.nodes if (since := node.well_since()) is not None]
        if not well or now - min(well) < TAKE_OVER_S:
            return
        for row in self.eye.execute("SELECT id, node FROM runs WHERE status = 'active' ORDER BY id"):
            died_at = self.dead.get(row["node"])
            if died_at is not None and now - died_at > TAKE_OVER_S:
                raise Broken(f"X2: run {row['id']} is held by a node that has been dead for {now - died_at:.0f} s")
