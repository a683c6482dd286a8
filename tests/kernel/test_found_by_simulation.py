"""What simulation and chaos found and no other test knew, told as small stories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.kernel.crashing import die
from wakeful import Every, Interval, Once, Scheduler, TransientError
from wakeful.testing import VirtualClock, run

START = datetime(2026, 1, 1, tzinfo=UTC)


async def succeed(_run):
    return None


@pytest.mark.promise("H13")
def test_a_one_shot_whose_last_retry_is_cancelled_is_over():
    clock = VirtualClock(START)

    async def fail(_run):
        raise TransientError("later")

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            scheduler.on_job_due("job", fail)
            await scheduler.add_job("a", Once(START))
            await scheduler.start()
            await clock.sleep("1s")
            queued = (await scheduler.get_run_log("a"))[0]
            assert (queued.status, queued.reason) == ("queued", "retry")
            await scheduler.cancel_run(queued.id)
            await clock.sleep("1s")
            job = await scheduler.get_job("a")
            assert (job.status, job.next_run_at) == ("disabled", None)

    run(main(), clock)


@pytest.mark.promise("H8", "H17")
@pytest.mark.parametrize("meddle", ["resume", "edit"])
def test_a_start_by_hand_of_a_paused_job_outlives_waiting_for_a_handler(meddle):
    clock = VirtualClock(START)

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            await scheduler.add_job("a", Every("1h"), kind="rare")
            await scheduler.start()
            await scheduler.pause_job("a")
            asked = await scheduler.run_job("a")
            await clock.sleep("1m")
            assert (await scheduler.get_job("a")).waiting_for == "kind:rare"
            if meddle == "resume":
                await scheduler.resume_job("a")
            else:
                await scheduler.update_job("a", trigger=Interval("20m"))
            scheduler.on_job_due("rare", succeed)
            await clock.sleep("2m")
            assert (await scheduler.get_run(asked)).outcome == "success"

    run(main(), clock)


@pytest.mark.promise("H5")
def test_a_job_added_while_a_turn_is_being_committed_is_noticed_at_once(monkeypatch):
    """The answer of a turn that began before the job was stored must not cover it up."""
    clock = VirtualClock(START)
    started = []

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            write = scheduler._store.write

            async def slow(work, *, not_before=None):
                result = await write(work, not_before=not_before)
                await clock.sleep("2s")  # committed, but the answer takes its time
                return result

            async def note(_run):
                started.append(datetime.fromtimestamp(clock.now() / 1000, UTC))

            scheduler.on_job_due("job", note)
            await scheduler.add_job("far", Once(START + timedelta(days=1)))
            await scheduler.start()
            await clock.sleep("10s")
            monkeypatch.setattr(scheduler._store, "write", slow)
            scheduler._engine.poke()
            await clock.sleep("1s")  # the turn is committed, its answer under way
            monkeypatch.setattr(scheduler._store, "write", write)
            await scheduler.add_job("now", Once(START))
            await clock.sleep("5s")
            assert len(started) == 1

    run(main(), clock)


@pytest.mark.promise("H15", "X14")
def test_a_run_that_was_cancelled_is_not_run_again_after_a_crash(tmp_path):
    clock = VirtualClock(START)
    started = []

    async def hang(run):
        started.append(run.id)
        await clock.sleep("1h")

    async def main():
        url = f"sqlite:///{tmp_path / 'wakeful.db'}"
        first = Scheduler(url, clock=clock)
        first.on_job_due("job", hang)
        await first.open()
        await first.add_job("a", Every("1d"), lanes={"one": 1})
        await first.start()
        asked = await first.run_job("a")
        await clock.sleep("1m")
        other = Scheduler(url, clock=clock)  # another process cancels, and the server dies before it looks
        await other.open()
        await other.cancel_run(asked)
        await other.close()
        await die(first)
        async with Scheduler(url, clock=clock) as second:
            second.on_job_due("job", hang)
            await second.start()
            await clock.sleep("1m")
            assert started == [asked]
            assert (await second.get_run(asked)).outcome == "cancelled"
            assert (await second.get_job("a")).status == "idle"

    run(main(), clock)
