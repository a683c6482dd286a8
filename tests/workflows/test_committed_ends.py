"""A run whose commit is stored has succeeded, however its process ended after that."""

from __future__ import annotations

import pytest

from tests.workflows.dying import Death, live
from tests.workflows.mailroom import virtual
from wakeful import ids
from wakeful.errors import StoreError


async def ends(scheduler, handler="append"):
    return [run.outcome for run in await scheduler.get_run_log(f"mailroom.{handler}", 9)]


@pytest.mark.promise("K9", "K14")
@pytest.mark.parametrize(("point", "handler"), [("committed", "append"), ("poll committed", "poll")])
@virtual
async def test_a_run_cut_off_after_its_commit_has_succeeded(room, point, handler):
    room.mails = ["a"]
    death = Death(room, (point, "after"))
    await live(room, death)
    assert death.over.is_set()
    scheduler = await live(room, None, "1m")
    try:
        assert set(await ends(scheduler, handler)) == {"success"}
        cut = (await scheduler.get_run_log(f"mailroom.{handler}", 9))[-1 if handler == "poll" else -2]
        title, consumed = (None, 0) if handler == "poll" else ("Add 1 rows", 1)
        assert cut.output == {"title": title, "consumed": consumed, "published": 1}
        assert cut.phase == "committed"
        job = await scheduler.get_job(f"mailroom.{handler}")
        assert (job.last_outcome, job.consecutive_errors) == ("success", 0)
        assert (await room.row(scheduler)).issue is None
    finally:
        await scheduler.close()


@pytest.mark.promise("K9")
@pytest.mark.parametrize("how", ["cancelled", "lost"])
@virtual
async def test_what_ends_a_run_after_its_commit_does_not_make_it_fail(room, how):
    room.mails = ["a"]
    async with room.open() as scheduler:
        transact = scheduler.transact

        async def watched(work, **options):
            result = await transact(work, **options)
            if getattr(result, "phase", None) == "committed" and getattr(result, "reserved", 0):
                if how == "lost":
                    raise StoreError("the answer was lost")
                await scheduler.cancel_run(ids.run_text(result.id))
                await room.sleep("1s")
            return result

        scheduler.transact = watched
        await scheduler.start()
        await room.sleep("1m")
        assert set(await ends(scheduler)) == {"success"}
        assert room.ledger == ["a"]
