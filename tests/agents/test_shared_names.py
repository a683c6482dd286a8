"""Agents and workflows share one namespace: what is called NAME.SOMETHING belongs to who is called NAME."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from tests.workflows.mailroom import Mailroom
from wakeful import Every, InvalidJob


@virtual
async def test_a_new_job_takes_no_name_that_belongs_to_an_agent(scene, agents):
    async with agents.scheduler_with({"reporter": agent()}) as scheduler:
        await scheduler.add_job("other", Every("1h"))
        for name in ("reporter.mine", "reporter.old.copy"):
            with pytest.raises(InvalidJob, match=f"'{name}' would be a schedule of the agent reporter: choose a name"):
                await scheduler.add_job(name, Every("1h"))
        with pytest.raises(InvalidJob, match=r"'reporter\.mine' would be a schedule"):
            await scheduler.update_job("other", name="reporter.mine")


@virtual
async def test_a_new_job_beside_agents_has_no_dot_in_its_name(scene, agents):
    async with agents.scheduler_with({"reporter": agent()}) as scheduler:
        why = r"'other\.new' has a dot, as schedules of agents have: choose a name without one\."
        with pytest.raises(InvalidJob, match=why):
            await scheduler.add_job("other.new", Every("1h"))
        await scheduler.add_job("other", Every("1h"))
        with pytest.raises(InvalidJob, match=why):
            await scheduler.update_job("other", name="other.new")


@virtual
async def test_where_there_are_no_agents_a_job_may_have_dots_in_its_name(scene, agents):
    async with agents.scheduler() as scheduler:
        await scheduler.add_job("db.backup", Every("1h"))
        await scheduler.add_job("other", Every("1h"))
        await scheduler.update_job("other", name="db.backup.copy")
        await scheduler.agents.apply({"reporter": agent()})
        await scheduler.update_job("db.backup", priority=3)
        assert await scheduler.add_job("db.backup", Every("2h"), if_exists="update")
        assert {job.name for job in await scheduler.list_jobs()} >= {"db.backup", "db.backup.copy"}


@virtual
async def test_workflows_and_connectors_come_with_their_names_beside_agents(scene):
    mailroom = Mailroom(scene)
    async with mailroom.open() as scheduler:
        await scheduler.agents.apply({"reporter": agent()})
        await scheduler.start()
        assert {job.name for job in await scheduler.list_jobs()} >= {"reporter.wake", "mailroom.poll"}


@virtual
async def test_no_job_takes_the_name_of_one_that_wakeful_makes_itself(scene, agents):
    async with agents.scheduler() as scheduler:
        why = r"'delivery\.phone' would be a job of delivery itself: choose another name\."
        with pytest.raises(InvalidJob, match=why):
            await scheduler.add_job("delivery.phone", Every("1h"))


@virtual
async def test_a_stored_name_with_a_dot_stays(scene, agents):
    async with agents.scheduler() as scheduler:
        old = await scheduler.add_job("old", Every("1h"))
        job = (await scheduler.read(lambda tx: tx.jobs.by_name("old")))[0]
        await scheduler.transact(lambda tx, _: tx.jobs.define(job._replace(name="reporter.old")))
        await scheduler.agents.apply({"reporter": agent()})
        assert await scheduler.add_job("reporter.old", Every("2h"), if_exists="update") == old
        await scheduler.update_job("reporter.old", priority=3)
        assert (await scheduler.get_job("reporter.old")).id == old


@virtual
async def test_an_agent_and_a_job_take_no_name_of_a_workflow(scene):
    scheduler = Mailroom(scene).open()
    async with scheduler:
        await scheduler.start()
        with pytest.raises(InvalidJob, match=r"'mailroom\.mine' would be a handler of the workflow mailroom"):
            await scheduler.add_job("mailroom.mine", Every("1h"))
        with pytest.raises(InvalidJob, match=r"'mailroom\.wake' would be a handler of the workflow mailroom"):
            await scheduler.agents.apply({"mailroom": agent()})
        assert await scheduler.agents.list() == []
