"""Who made an agent owns it: a program touches only what it applied, ends no pause and drops no run that is due."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import PLACE, VirtualAgents, agent
from tests.kernel.scene import at, virtual
from wakeful import Every, JobExists
from wakeful.config.loading import load
from wakeful.domains.files.applying import apply_fleet, ready_fleet, terms_of

pytestmark = pytest.mark.promise("X15")

TICK = {"tick": {"every": "1h", "prompt": "x"}}
FILE = f"agents: {{filed: {{runner: {{python: '{PLACE}'}}, schedules: {{tick: {{every: 1h, prompt: x}}}}}}}}\n"


async def apply_file(scheduler, path, text=FILE):
    path.write_text(text)
    file = load(path, {}).jobs
    fleet, terms = ready_fleet(scheduler, file), terms_of(file, scheduler.clock.now())
    return await scheduler.transact(lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=True))


async def sources(scheduler):
    return {job.name: job.source for job in await scheduler.list_jobs()}


@virtual
async def test_file_code_command_line_and_api_keep_what_they_made(scene, tmp_path):
    _ = VirtualAgents(scene)
    async with scene.scheduler() as scheduler:
        await scheduler.agents.apply({"coded": agent(schedules=TICK)})
        await apply_file(scheduler, tmp_path / "wakeful.yaml")
        for name, source in (("typed", "cli"), ("asked", "api"), ("declared", "code")):
            await scheduler.add_job(name, Every("1h"), source=source)
        before = await sources(scheduler)
        assert (before["coded.tick"], before["filed.tick"]) == ("code", "file")
        with pytest.raises(JobExists, match=r"'filed\.\w+' was made by a file, and a program changes only its own"):
            await scheduler.agents.apply({"coded": agent(schedules=TICK), "filed": agent(schedules=TICK)})
        with pytest.raises(JobExists, match="was made by a program, and a file changes only its own"):
            await apply_file(scheduler, tmp_path / "wakeful.yaml", FILE.replace("filed", "coded"))
        assert await sources(scheduler) == before  # all or nothing
        await apply_file(scheduler, tmp_path / "wakeful.yaml", "jobs: {}\n")
        assert await sources(scheduler) == {name: made for name, made in before.items() if made != "file"}
        await scheduler.agents.apply({})
        assert await sources(scheduler) == {"typed": "cli", "asked": "api", "declared": "code"}


@pytest.mark.parametrize("how", ["code", "file"])
@virtual
async def test_applying_an_agent_ends_no_pause_and_drops_no_run_that_is_due(scene, tmp_path, how):
    agents = VirtualAgents(scene)
    async with agents.scheduler() as scheduler:

        async def apply(every):
            if how == "code":
                await scheduler.agents.apply({"filed": agent(schedules={"tick": {"every": every, "prompt": "x"}})})
            else:
                await apply_file(scheduler, tmp_path / "wakeful.yaml", FILE.replace("1h", every))

        await apply("1h")
        await scheduler.pause_job("filed.wake")
        await scene.until(at(1, 1))  # due while nothing runs
        await apply("5h")
        await scheduler.start()
        await scene.sleep(1)
        assert agents.times == [at(1, 1)]
        assert (await scheduler.get_job("filed.wake")).status == "paused"
        await scheduler.pause_job("filed.tick")
        await apply("3h")
        job = await scheduler.get_job("filed.tick")
        assert (job.status, job.enabled, job.next_run_at) == ("paused", True, None)
