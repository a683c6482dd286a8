"""A simulation for a server that continues meanwhile: its own settings, a copy of its store, a thread of its own."""

from __future__ import annotations

from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.recording import OnRun
from wakeful.foresight.simulating import Simulation, simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.scheduler import Scheduler
from wakeful.threads import room

AT_ONCE = 2  # simulations; each takes a processor for itself


async def simulate_beside(scheduler: Scheduler, question: SimulationRequest, on_run: OnRun) -> Simulation:
    """What the scheduler's jobs will do, while it continues; `on_run` is called in another thread."""
    limits = scheduler.server_side.limits()
    min_interval = None if limits.min_interval is None else limits.min_interval / 1000
    setup = Setup(
        scheduler.host.default_zone, limits.max_running, min_interval, scheduler.host.job_defaults, limits.labels
    )
    snapshot = await scheduler.read(take_snapshot)
    return await room("simulations", AT_ONCE).call(simulate, snapshot, question, setup, on_run=on_run)
