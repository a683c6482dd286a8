"""A job that asks for labels runs only where all of them are; while there is no such node, there is an alert."""

from __future__ import annotations

import pytest

from tests.kernel.scene import START, at, virtual
from wakeful import Every, Once

pytestmark = pytest.mark.promise("X13", "D5")


@pytest.mark.parametrize("labels", [[], ["gpu"], ["big"], ["gpu", "small"]])
@virtual
async def test_all_labels_of_a_job_are_needed_not_one_of_them(scene, labels):
    async with scene.scheduler(labels=labels) as scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Once(at(seconds=5)), kind="job", labels=["gpu", "big"])
        await scene.sleep("1h")
        assert scene.runs == []
        await scheduler.stop()
    async with scene.scheduler(labels=["big", "gpu", "more"]) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["a"]
        await scheduler.stop()


@pytest.mark.usefixtures("minutely_sweeps")
@pytest.mark.parametrize("labels", [[], ["gpu"]], ids=["no label", "one of two"])
@virtual
async def test_a_due_job_that_no_node_carries_the_labels_for_raises_an_alert_until_one_does(scene, labels):
    async with scene.scheduler(labels=labels) as scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Once(START), kind="job", labels=["gpu", "big"])
        await scene.sleep("50s")
        assert await scheduler.list_alerts() == []  # a node may just be starting
        await scene.sleep("3m")
        (alert,) = await scheduler.list_alerts()
        assert alert.kind == "no_node"
        assert "a has been due" in alert.message
        assert "gpu" in alert.message
        assert "big" in alert.message
        assert "no node had the labels it asks for" in str(await scheduler.explain("a"))
        await scheduler.stop()
    async with scene.scheduler(labels=["gpu", "big"]) as scheduler:
        await scheduler.start()
        await scene.sleep("3m")
        assert [run.job for run in scene.runs] == ["a"]
        assert await scheduler.list_alerts() == []
        await scheduler.stop()


async def without_labels(scheduler):
    await scheduler.update_job("a", labels=[])


async def with_another_time(scheduler):
    await scheduler.update_job("a", trigger=Every("1d"))


async def paused(scheduler):
    await scheduler.pause_job("a")


async def disabled(scheduler):
    await scheduler.update_job("a", enabled=False)


@pytest.mark.usefixtures("minutely_sweeps")
@pytest.mark.parametrize("change", [without_labels, with_another_time, paused, disabled])
@virtual
async def test_the_alert_is_over_when_the_job_no_longer_waits_for_a_node(scene, change):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Once(START), kind="job", labels=["gpu"])
        await scene.sleep("4m")
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["no_node"]
        await scheduler.update_job("a", payload={"n": 1})
        assert len(await scheduler.list_alerts()) == 1, "it still waits"
        await change(scheduler)
        await scene.sleep("4m")
        assert await scheduler.list_alerts() == []
        await scheduler.stop()


@virtual
async def test_what_a_node_handles_and_carries_is_known_to_others_as_soon_as_it_changes(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        scheduler.on_job_due("late", lambda run: None)
        unregister = scheduler.connectors.register("late", lambda message: None)
        await scene.sleep("1s")
        (node,) = await scheduler.list_nodes()
        assert "late" in node.kinds
        assert "connector:late" in node.labels
        unregister()
        await scene.sleep("10m")
        (node,) = await scheduler.list_nodes()
        assert "connector:late" not in node.labels
        await scheduler.stop()
