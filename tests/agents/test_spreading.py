"""Heartbeats that are stored together do not beat together."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.kernel.scene import START, at, virtual

BEAT = {"enabled": True, "every": "30m"}


@pytest.mark.promise("A11", "A12")
@virtual
async def test_two_hundred_heartbeats_stored_together_are_spread_over_their_interval_and_keep_their_grid(scene):
    _ = VirtualAgents(scene)
    async with scene.scheduler() as scheduler:
        fleet = {f"a{number:03}": agent(heartbeat=BEAT) for number in range(200)}
        await scheduler.agents.apply(fleet)
        first = {job.name: job.next_run_at for job in await scheduler.list_jobs(kind="agent", limit=5000)}
        beats = sorted(at for name, at in first.items() if name.endswith(".heartbeat"))
        assert len(beats) == len(set(beats)) == 200
        assert (beats[0] - START, beats[-1] - START) == (timedelta(seconds=9), timedelta(minutes=30))
        assert {later - earlier for earlier, later in pairwise(beats)} == {timedelta(seconds=9)}
        await scene.sleep("10m")
        await scheduler.agents.apply(fleet)  # again: nothing moves
        assert (await scheduler.get_job("a000.heartbeat")).next_run_at == first["a000.heartbeat"]
        assert (await scheduler.get_job("a001.heartbeat")).next_run_at == first["a001.heartbeat"]
        await scheduler.agents.apply({**fleet, "later": agent(heartbeat=BEAT)})
        assert (await scheduler.get_job("later.heartbeat")).next_run_at == at(minutes=40)


@virtual
async def test_heartbeats_of_other_intervals_are_spread_among_themselves(scene):
    _ = VirtualAgents(scene)
    async with scene.scheduler() as scheduler:
        hourly = {"enabled": True, "every": "1h"}
        await scheduler.agents.apply({name: agent(heartbeat=BEAT if name < "c" else hourly) for name in "abc"})
        found = [(await scheduler.get_job(f"{name}.heartbeat")).next_run_at for name in "abc"]
        assert found == [at(minutes=30), at(minutes=15), at(1)]
