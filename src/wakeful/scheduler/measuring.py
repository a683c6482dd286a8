"""The scheduler in figures for monitoring: what this process counted, and what the store says, at a constant cost."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from wakeful.domains import domains
from wakeful.kernel.cluster.nodes import node_states
from wakeful.kernel.domain import load
from wakeful.kernel.model.measures import Measure, Values, single
from wakeful.kernel.views.audit import found_slots
from wakeful.kernel.views.census import Census
from wakeful.kernel.views.tally import CommitCounter
from wakeful.store.jobs import STATUS_SQL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.kernel.cluster.nodes import Seen
    from wakeful.scheduler.core import Wiring
    from wakeful.store.interface import Transaction

LANES = 50
NODES = 50
ACTIVE = 10_000  # runs in progress that are looked at for their lanes


class Measuring:
    """Counts from when it is made; `measures` is what a scrape is answered with."""

    def __init__(self, wiring: Wiring, per_job: int = 0) -> None:
        kinds = {kind.name for domain in domains() for kind in domain.kinds}
        self._wiring = wiring
        self._tally = CommitCounter(kinds, wiring.hidden_kinds, per_job)
        self._census = Census(wiring.store, wiring.hidden_kinds)
        wiring.store.on_events(self._tally.hear)

    async def measures(self) -> list[Measure]:
        """All figures as of now."""
        lanes, seen = self._busy_lanes(), self._wiring.viewpoint().seen
        jobs = await self._census.counts()
        stored = await self._wiring.store.read(lambda tx: _stored(tx, lanes, seen))
        return [*self._tally.measures(), *([_jobs(jobs)] if jobs is not None else []), *self._engine(), *stored]

    async def end(self) -> None:
        await self._census.end()

    def _busy_lanes(self) -> list[str]:
        """The lanes that runs of this process hold most places of."""
        held = Counter(active.claimed.run.lanes for active in islice(self._wiring.engine.active.values(), ACTIVE))
        lanes: Counter[str] = Counter()
        for text, runs in held.items():
            for lane in json.loads(text) if text is not None else ():
                lanes[lane] += runs
        return [lane for lane, _ in lanes.most_common(LANES)]

    def _engine(self) -> list[Measure]:
        engine, hidden = self._wiring.engine, self._wiring.hidden_kinds
        running = sum(active.claimed.run.kind not in hidden for active in engine.active.values())
        last = engine.counters.last_check
        found = [single("wakeful_running_runs", "Runs that are active in this process.", running)]
        if last is not None:
            what = "When the engine of this process last looked for due jobs; it does at least once a minute."
            found.append(single("wakeful_last_turn_timestamp_seconds", what, last / 1000))
        return found


def _jobs(counts: Mapping[str, int]) -> Measure:
    return Measure("wakeful_jobs", "Jobs by status.", ("status",), {(one,): counts.get(one, 0) for one in STATUS_SQL})


def _stored(tx: Transaction, busy: list[str], seen: Seen) -> list[Measure]:
    gauges = tx.gauges
    lanes = gauges.lanes(busy, LANES)
    sizes: Values = {(lane,): size for lane, _, size in lanes if size is not None}
    alerts: Values = {(kind,): count for kind, count in gauges.open_alerts().items()}
    nodes: Values = {(name,): int(up) for name, up in node_states(tx, seen, NODES).items()}
    return [
        single("wakeful_due_jobs", "Jobs that are due and not started yet.", gauges.due(tx.now)),
        Measure("wakeful_lane_used", "Places of a lane that are taken.", ("lane",), {(k,): n for k, n, _ in lanes}),
        Measure("wakeful_lane_size", "Places a lane has.", ("lane",), sizes),
        Measure("wakeful_alerts_open", "Incidents that are open, by kind.", ("kind",), alerts),
        Measure("wakeful_node_up", "Whether a node is alive.", ("node",), nodes),
        single("wakeful_store_bytes", "How much the database takes.", gauges.size()),
        single("wakeful_slots_unaccounted", "Scheduled times without a record, as the regular check found them.",
               sum(found_slots(tx).values())),
        *(measure for domain in domains() if domain.measures is not None for measure in load(domain.measures)(tx)),
    ]  # fmt: skip
