"""Nodes that share a store, with different versions of a workflow: the deployed one is what was deployed last."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import Mailroom
from tests.workflows.test_removed_handlers import shown
from wakeful import Scheduler
from wakeful.domains.workflows.versions.tables import NodeVersions
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.testing import run


@pytest.fixture
def room(postgres_scene):
    return Mailroom(postgres_scene)


def node(room, version, name="here"):
    """A scheduler that has this version."""
    room.scene.lives += 1
    made = Scheduler(room.url, clock=room.clock, node=name, seed=room.scene.lives, tuning=room.tuning)
    workflow = room.workflow()
    workflow.version = version
    made.add_workflow(workflow)
    return made


async def deployed(room, scheduler):
    await room.sleep("2m")
    return (await room.row(scheduler)).version


@pytest.mark.promise("K1", "X2")
def test_going_back_to_an_earlier_version_is_a_deploy(room):
    async def main():
        for version in ("one", "two", "one"):
            async with node(room, version) as scheduler:
                await scheduler.start()
                assert await deployed(room, scheduler) == version
                room.calls.clear()
                await room.sleep("10m")
                assert room.phases() != []
                assert (await shown(scheduler))["issue"] is None

    run(main(), room.clock)


@pytest.mark.promise("K1", "X2")
def test_going_back_node_by_node_is_done_once_the_last_node_has_gone_back(room):
    async def main():
        north, south = node(room, "one", "north"), node(room, "one", "south")
        for scheduler in (north, south):
            await scheduler.open()
            await scheduler.start()
        for version in ("two", "one"):
            for name, old in (("north", north), ("south", south)):
                await old.close()
                new = node(room, version, name)
                await new.open()
                await new.start()
                north, south = (new, south) if name == "north" else (north, new)
            assert await deployed(room, north) == version
        await south.close()
        assert await deployed(room, north) == "one"
        await north.close()

    run(main(), room.clock)


@pytest.mark.promise("K1", "X2")
def test_an_earlier_version_is_deployed_when_the_last_node_with_the_newer_one_leaves(room):
    async def main():
        async with node(room, "one", "gone") as scheduler:
            await scheduler.start()
        async with node(room, "two", "newer") as newer, node(room, "one", "back") as back:
            await newer.start()
            await back.start()
            assert await deployed(room, back) == "two"
            await newer.stop()
            assert await deployed(room, back) == "one"

    run(main(), room.clock)


@pytest.mark.promise("K16", "X2")
def test_a_node_that_starts_again_with_old_code_deploys_nothing_and_says_which_node_has_which_version(room):
    async def main():
        async with node(room, "one", "old") as scheduler:
            await scheduler.start()
        async with node(room, "two", "new") as scheduler:
            await scheduler.start()
        room.calls.clear()
        async with node(room, "one", "old") as scheduler:
            await scheduler.start()
            assert await deployed(room, scheduler) == "two"
            found = await shown(scheduler)
            assert (found["status"], found["issue"]["kind"], found["issue"]["actions"]) == (
                "stopped",
                "internal",
                ["apply"],
            )
            assert "two (node old has one)" in found["issue"]["message"]
            await room.sleep("10m")
            assert room.phases() == []
            messages = [alert.message for alert in await scheduler.list_alerts()]
            assert (
                "mailroom.poll is due, and no running node has version two of its workflow: node old has one"
                in messages
            )
            assert "version one of its workflow, and two is deployed" in str(await scheduler.explain("mailroom.poll"))

    run(main(), room.clock)


def test_nothing_is_kept_of_earlier_lives_of_a_node(room):
    room.scene.tuning = room.tuning._replace(lease=LeaseTimes(beat_ms=5_000, lease_ms=20_000))

    async def main():
        for version in ("one", "one", "two"):
            async with node(room, version) as scheduler:
                await scheduler.start()
        async with node(room, "two") as scheduler:
            await scheduler.start()
            found = await scheduler.read(lambda tx: tx.of(NodeVersions).of("mailroom"))
            assert [(one.place, one.version) for one in found] == [("here", "two")]

    run(main(), room.clock)
