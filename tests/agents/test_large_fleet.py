"""A fleet of two hundred agents is read, planned and applied with little work, and an edit of one changes one."""

from __future__ import annotations

import time

import pytest

from tests.paces import pace_s
from tests.service.real_time import make, real
from wakeful.config.loading import load
from wakeful.domains.files.applying import apply_fleet, plan_fleet, ready_fleet, terms_of

AGENT = """
  a{number}:
    description: Looks after things
    runner: {{preset: claude, cwd: work, tools: [Read], timeout: 10m}}
    heartbeat: {{enabled: true, every: 30m}}
    schedules:
"""
SCHEDULE = "      s{number}: {{cron: '{number} 9 * * 1-5', prompt: 'Do thing {number}.'}}\n"


def written(agents=200, schedules=5):
    each = "".join(SCHEDULE.format(number=number) for number in range(schedules))
    return "agents:\n" + "".join(AGENT.format(number=number).lstrip("\n") + each for number in range(agents))


@pytest.mark.promise("D1")
@real
async def test_two_hundred_agents_are_applied_with_little_work_and_an_edit_of_one_changes_one(tmp_path):
    path = tmp_path / "wakeful.yaml"
    path.write_text(written())
    async with make(tmp_path) as scheduler:

        async def take_over():
            file = load(path, {}).jobs
            fleet, terms = ready_fleet(scheduler, file), terms_of(file, scheduler.clock.now())
            plan = await scheduler.read(lambda tx: plan_fleet(tx, fleet, terms))
            await scheduler.transact(lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=False))
            return plan

        before = time.process_time()
        assert len((await take_over()).create) == 200 * 7
        assert time.process_time() - before < 150 * pace_s()
        path.write_text(path.read_text().replace("Do thing 3.", "Do another thing.", 1))
        plan = await take_over()
        assert [one.owned.job.name for one in plan.update] == ["a0.s3"]
        assert (plan.create, plan.remove, plan.unchanged) == ([], [], 1399)
