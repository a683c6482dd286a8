"""The list of workflows in a configuration file: planned, applied, and taken over while the server runs."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.store.postgres_server import emptied_url
from tests.workflows.test_files import GOOD
from wakeful import Scheduler, ids
from wakeful.config.loading import load_config
from wakeful.domains.workflows.configuration import (
    WorkflowSection,
    install_configured,
    ready_to_apply,
    reload_configured,
)
from wakeful.domains.workflows.tables import WorkflowVerbs


def section(folder, *entries):
    return WorkflowSection.model_validate(list(entries), context={"folder": folder, "file": folder / "wakeful.yaml"})


@pytest.fixture
def folder(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.py").write_text(
            GOOD.format(name=name).replace("import helpers\n", "").replace("WORD", "x")
        )
    (tmp_path / "helpers.py").write_text("x = 1\n")
    (tmp_path / "bad.py").write_text("import nonsense_xyz")
    return tmp_path


async def rows(scheduler):
    return {row.name: row for row in await scheduler.read(lambda tx: tx.of(WorkflowVerbs).all())}


async def settled(scheduler, name):
    """Until the job has run."""
    done = asyncio.Event()
    scheduler.events.subscribe(lambda _: done.set(), "run")
    while (await scheduler.get_job(name)).last_outcome != "success":
        done.clear()
        await asyncio.wait_for(done.wait(), 30)


async def apply(scheduler, *sections):
    ready = ready_to_apply(scheduler, *sections)
    planned = await scheduler.read(ready.plan)
    done = await scheduler.transact(ready.apply)
    assert planned == done, "plan says what apply does"
    return done


def test_apply_deploys_what_is_listed_and_removes_what_this_file_listed_before(folder):
    async def main():
        async with Scheduler(f"sqlite:///{folder}/w.db") as scheduler:
            done = await apply(scheduler, section(folder, "one.py", {"file": "two.py:workflow", "config": {"a": 1}}))
            assert (done.create, done.remove, done.wrong) == (("one", "two"), (), ())
            assert {job.name for job in await scheduler.list_jobs()} == {"one.poll", "two.poll"}
            done = await apply(scheduler, section(folder, "one.py", {"file": "two.py:workflow", "config": {"a": 1}}))
            assert done.is_empty
            assert done.unchanged == 2
            before = (await rows(scheduler))["two"].version
            done = await apply(scheduler, section(folder, {"file": "two.py", "config": {"a": 2}}, "bad.py", "three.py"))
            assert (done.create, done.remove, done.unchanged) == (("three",), ("one",), 0)
            assert done.update == {"two": {"version": (before, (await rows(scheduler))["two"].version)}}
            assert "No module named 'nonsense_xyz'" in done.wrong[0]
            assert {job.name for job in await scheduler.list_jobs()} == {"three.poll", "two.poll"}
            other = WorkflowSection.model_validate([], context={"folder": folder, "file": folder / "other.yaml"})
            assert (await apply(scheduler, other)).is_empty, "another file changes only its own"

    asyncio.run(main())


def test_a_changed_list_takes_effect_while_the_server_runs(folder):
    async def main():
        scheduler = Scheduler(f"sqlite:///{folder}/w.db")
        install_configured(scheduler, section(folder), None)
        async with scheduler:
            await scheduler.start()
            assert await rows(scheduler) == {}
            await reload_configured(scheduler, section(folder, "one.py", "bad.py"))
            assert {name: row.issue for name, row in (await rows(scheduler)).items()} == {"bad": "load", "one": None}
            version = (await rows(scheduler))["one"].version
            await settled(scheduler, "one.poll")
            await reload_configured(scheduler, section(folder, {"file": "one.py", "config": {"a": 1}}))
            found = await rows(scheduler)
            assert list(found) == ["one"], "what is listed no more is gone"
            assert found["one"].version != version
            assert await scheduler.get_job("one.poll") is not None
            await reload_configured(scheduler, section(folder))
            assert await rows(scheduler) == {}
            assert await scheduler.get_job("one.poll") is None
            await scheduler.stop()
        again = Scheduler(f"sqlite:///{folder}/w.db")
        install_configured(again, section(folder, "one.py"), None)
        async with again:
            await again.start()
            handler = await again.read(lambda tx: tx.of(WorkflowVerbs).handler("one", "poll"))
            assert handler.state == '{"word":1,"config":{}}', "what is stored stays for when it comes back"
            await again.stop()

    asyncio.run(main())


def test_a_file_that_has_no_list_any_more_lists_nothing(folder):
    file = folder / "wakeful.yaml"

    def listed(text):
        file.write_text(text)
        return load_config(file).workflows

    async def main():
        async with Scheduler(f"sqlite:///{folder}/w.db") as scheduler:
            await apply(scheduler, listed("workflows: [one.py, two.py]"))
            assert (await apply(scheduler, listed("jobs: {}"))).remove == ("one", "two")
            await apply(scheduler, listed("workflows: [one.py]"))
            install_configured(scheduler, listed("workflows: [one.py]"), None)
            await scheduler.start()
            await reload_configured(scheduler, listed("jobs: {}"))
            assert await rows(scheduler) == {}
            await scheduler.stop()

    asyncio.run(main())


def test_a_list_that_changed_while_no_server_ran_takes_effect_at_the_start(folder):
    async def main():
        for entries, expected in ((["one.py", "two.py"], ["one", "two"]), (["two.py"], ["two"])):
            scheduler = Scheduler(f"sqlite:///{folder}/w.db")
            install_configured(scheduler, section(folder, *entries), None)
            async with scheduler:
                await scheduler.start()
                assert list(await rows(scheduler)) == expected
                await scheduler.stop()

    asyncio.run(main())


def test_a_second_file_with_the_same_name_is_not_applied_over_the_first(folder):
    (folder / "copy.py").write_text((folder / "one.py").read_text())

    async def main():
        async with Scheduler(f"sqlite:///{folder}/w.db") as scheduler:
            done = await apply(scheduler, section(folder, "one.py", "copy.py"))
            assert (done.create, done.wrong) == (
                ("one",),
                ("copy.py: the workflow one is also in one.py:workflow: rename one of them",),
            )

    asyncio.run(main())


def test_a_renamed_machine_removes_what_its_file_no_longer_lists(folder, monkeypatch):
    async def main():
        async with Scheduler(f"sqlite:///{folder}/w.db") as scheduler:
            await apply(scheduler, section(folder, "one.py", "two.py"))
            monkeypatch.setattr(socket, "gethostname", lambda: "renamed")
            assert (await apply(scheduler, section(folder, "one.py"))).remove == ("two",)
            (folder / "elsewhere").mkdir()
            elsewhere = section(folder / "elsewhere")
            assert (await apply(scheduler, elsewhere)).remove == (), "another file removes nothing of this one"

    asyncio.run(main())


def test_machines_that_share_a_store_may_have_different_files_under_one_path(folder, monkeypatch):
    async def main():
        async with Scheduler(emptied_url()) as scheduler:
            await apply(scheduler, section(folder, "one.py", "two.py"))
            monkeypatch.setattr(socket, "gethostname", lambda: "other")
            assert (await apply(scheduler, section(folder, "one.py"))).remove == ()

    asyncio.run(main())


PAYER = """
from wakeful import Interval, Prepared, Workflow
workflow = Workflow("payer")

@workflow.producer(Interval("1h"), publishes=["bills"])
async def poll(ctx, state):
    await ctx.publish("bills", message_id="1", payload={})

pay = workflow.consumer("pay", subscribes=["bills"])

@pay.prepare
async def prepare(ctx, state):
    return Prepared({"bills": [bill.id for bill in await ctx.peek("bills")]})

@pay.mutate
async def mutate(ctx, prepared):
    raise RuntimeError("lost")
"""


@pytest.mark.promise("K11")
def test_plan_says_that_a_change_nobody_knows_about_would_be_left_behind(folder):
    (folder / "payer.py").write_text(PAYER)

    async def main():
        async with Scheduler(f"sqlite:///{folder}/w.db") as scheduler:
            install_configured(scheduler, section(folder, "one.py", "payer.py"), None)
            await scheduler.start()
            while (row := (await rows(scheduler)).get("payer")) is None or row.issue != "reconciliation":
                await settled(scheduler, "payer.poll")
            await scheduler.stop()
            ready = ready_to_apply(scheduler, section(folder, "one.py"))
            [note] = (await scheduler.read(ready.plan)).notes
            command = f"wakeful workflow settle payer {ids.run_text(row.issue_run)} happened"
            assert note.startswith("payer.pay is removed although it is not known whether its last change happened.")
            assert command in note
            assert (await apply(scheduler, section(folder, "one.py"))).remove == ("payer",)
            assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]

    asyncio.run(main())
