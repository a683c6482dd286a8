"""Messages that were given up are not called well, also once others arrive again."""

from __future__ import annotations

import pytest

from tests.delivery.targets import Target, raising, sending_to
from tests.kernel.scene import virtual
from wakeful import Every
from wakeful.domains.delivery.connector import Permanent
from wakeful.domains.delivery.outbox import requeue_all
from wakeful.kernel.loop.config import Tuning


@pytest.mark.promise("X26")
@virtual
async def test_messages_that_failed_for_good_are_not_well_until_they_are_sent_again(scene):
    scene.tuning = Tuning()
    target = Target(scene)
    target.act = raising(Permanent("gone"))
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        for number in range(4):
            await scheduler.deliver(f"text {number}", to="phone")
        await scene.sleep("1m")
        assert (await scheduler.get_verdict()).state == "needs_you"
        target.act = None
        await scheduler.deliver("one that arrives", to="phone")
        await scene.sleep("1m")
        assert await scheduler.list_alerts() == [], "the connector works again"
        assert await scheduler.get_verdict() == (
            "failing",
            "Failing: 4 messages were not delivered (wakeful delivery list --failed).",
        )
        await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed"))
        await scene.sleep("1m")
        assert (await scheduler.get_verdict()).well
