"""A simulation for a server that continues meanwhile: its own settings, a copy of its store, a thread of its own."""

from __future__ import annotations

from wakeful.clock import SystemClock
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.recording import OnRun
from wakeful.foresight.simulating import Simulation, Watch, simulate
from wakeful.foresight.snapshot import take_snapshot
from wakeful.scheduler import Scheduler
from wakeful.threads import room

AT_ONCE = 2  # simulations; each takes a processor for itself


async def simulate_beside(
    scheduler: Scheduler, question: SimulationRequest, on_run: OnRun, *, most_s: float
) -> Simulation:
    """What the scheduler's jobs will do, while it continues; `on_run` is called in another thread.

    It ends early where it takes longer than so many seconds.
    """
    limits = scheduler.server_side.limits()
    min_interval = None if limits.min_interval is None else limits.min_interval / 1000
    setup = Setup(
        scheduler.host.default_zone, limits.max_running, min_interval, scheduler.host.job_defaults, limits.labels
    )
    snapshot = await scheduler.read(take_snapshot)
    return await room("simulations", AT_ONCE).call(
        simulate, snapshot, question, setup, on_run=on_run, watch=_patience(most_s)
    )


def _patience(most_s: float) -> Watch:
    """Lets a simulation go on for so long, counted from its beginning."""
    clock, until = SystemClock(), list[float]()

    def goes_on(_: float) -> bool:
        until.append(clock.boot() + most_s * 1000) if not until else None
        return clock.boot() < until[0]

    return goes_on
