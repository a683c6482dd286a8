"""Snapshots of small fleets, and simulations of them."""

from __future__ import annotations

from datetime import UTC, datetime

from wakeful import Scheduler
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.simulating import simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.testing import VirtualClock, run

START = datetime(2026, 6, 1, 6, 0, tzinfo=UTC)
DAY_MS = 86_400_000


def snapshot_of(*jobs, start=START, write=None):
    """What a store holds with these jobs; `write` changes it before."""

    async def main():
        async with Scheduler("sqlite://", clock=clock, timezone="UTC", seed=1, min_interval=None) as scheduler:
            await scheduler.add_jobs(jobs)
            if write is not None:
                await scheduler.transact(write)
            return await scheduler.read(take_snapshot)

    clock = VirtualClock(start)
    return run(main(), clock)


def simulated(snapshot, setup=None, prepare=None, days=1.0, **question):
    """A simulation, and its runs."""
    runs = []
    asked = SimulationRequest(int(days * DAY_MS), **question)
    found = simulate(snapshot, asked, setup or Setup(min_interval=None), prepare=prepare, on_run=runs.append)
    return found, runs


def notes(found, kind):
    return [note for note in found.notes if note.kind == kind]
