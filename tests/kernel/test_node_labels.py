"""A job that asks for labels runs only where all of them are; while there is no such node, people are told."""

from __future__ import annotations

import pytest

from tests.kernel.scene import START, at, virtual
from wakeful import Once

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
