"""What a kind brings beside its hooks: a handler of its own, and a check of payloads."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import InvalidJob, Manual, Once
from wakeful.kernel.kinds import Kind


@pytest.mark.parametrize("own", [True, False])
@virtual
async def test_a_handler_that_is_registered_goes_before_that_of_the_kind(scene, own):
    calls = []

    async def brought(run, folder):
        calls.append(run.job)

    async with scene.scheduler("own" if own else "job", kinds=[Kind("own", handler=brought)]) as scheduler:
        await scheduler.add_job("a", Once(at(1)), kind="own")
        await scheduler.start()
        await scene.until(at(2))
        assert (len(scene.runs), calls) == ((1, []) if own else (0, ["a"]))


@virtual
async def test_a_retry_of_a_run_with_a_payload_of_its_own_is_checked_by_the_kind_its_job_is_of_now(scene):
    def check(payload):
        if payload != {"to": "Ada"}:
            raise InvalidJob("A letter needs an address.")

    async with scene.scheduler("job", "letter", kinds=[Kind("letter", check_payload=check)]) as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        runs = [await scheduler.wait_for_run(await scheduler.run_job("a", payload=given)) for given in (5, None)]
        await scheduler.update_job("a", kind="letter", payload={"to": "Ada"})
        with pytest.raises(InvalidJob, match="needs an address"):
            await scheduler.retry_run(runs[0].id)
        again = await scheduler.wait_for_run(await scheduler.retry_run(runs[1].id))
        assert (again.kind, scene.runs[-1].payload, len(scene.runs)) == ("letter", {"to": "Ada"}, 3)
