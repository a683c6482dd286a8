"""What explain says while no server runs, about times that had passed, and at the end of its sentences."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Once

NO_SERVER = "No server is running: nothing starts until one does."


async def cut_off(scene, **options):
    """The store after a server died while `a` ran, long enough ago to be sure of it."""
    scene.act = lambda _: scene.sleep(86_400)
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h"), **options)
    await scheduler.start()
    await scene.until(at(1, 1))
    assert "It is running now (run_" in str(await scheduler.explain("a"))
    await scene.crash(scheduler)
    await scene.until(at(9))


@pytest.mark.promise("X3")
@pytest.mark.parametrize(
    ("options", "says"),
    [({}, "records it as crashed and runs it again."), ({"on_crash": "skip"}, "and does not run it again.")],
)
@virtual
async def test_a_run_whose_server_is_gone_is_not_running(scene, options, says):
    await cut_off(scene, **options)
    async with scene.scheduler() as looker:
        (run,) = await looker.get_run_log("a")
        for subject in ("a", run.id):
            text = str(await looker.explain(subject))
            assert "It was running" in text, text
            assert "when its server ended. The next server records it as crashed" in text
            assert says in text
            assert "running now" not in text


@pytest.mark.promise("X3")
@virtual
async def test_a_cancelled_run_of_a_server_that_is_gone_will_be_recorded_as_cancelled(scene):
    await cut_off(scene)
    async with scene.scheduler() as looker:
        (run,) = await looker.get_run_log("a")
        await looker.cancel_run(run.id)
        assert "The next server records it as cancelled" in str(await looker.explain("a"))


@pytest.mark.promise("X3")
@virtual
async def test_a_next_time_without_a_server_is_no_promise(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        assert NO_SERVER in str(await scheduler.explain("a"))
        await scene.until(at(2))
        assert "It has been due since 2026-01-01 01:00:00 UTC" in str(await scheduler.explain("a"))
        await scheduler.start()
        assert NO_SERVER not in str(await scheduler.explain("a"))
        await scheduler.stop()
        await scheduler.pause_job("a")
        assert NO_SERVER not in str(await scheduler.explain("a")), "it would not start with one, either"


@pytest.mark.promise("X3")
@pytest.mark.parametrize("modifiers", [{}, {"jitter": 10}, {"stagger": "1s", "jitter": 5}])
@virtual
async def test_a_time_that_had_passed_when_the_job_was_added_was_moved_by_nothing(scene, modifiers):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(-24), **modifiers))
        text = str(await scheduler.explain("a"))
        assert "its time had already passed when the job was added" in text
        assert "moved by" not in text
        await scheduler.start()
        await scene.until(at(0, 1))
        (run,) = await scheduler.get_run_log("a")
        for subject in ("a", run.id):
            text = str(await scheduler.explain(subject))
            assert "because its time had already passed when the job was added" in text


@pytest.mark.promise("X3")
@virtual
async def test_only_what_moved_a_start_is_named(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", stagger="30m"))
        await scheduler.add_job("b", Once(at(1), active_hours={"start": "09:00", "end": "10:00", "timezone": "UTC"}))
        assert ": moved by stagger." in str(await scheduler.explain("a"))
        assert ": moved by its active hours or except dates." in str(await scheduler.explain("b"))


@pytest.mark.promise("X3")
@pytest.mark.parametrize("said", ["It failed.", "It failed", "Did it fail?", "It failed..."])
@virtual
async def test_every_sentence_ends_once(scene, said):
    async def act(_):
        raise RuntimeError(said)

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 1))
        (run,) = await scheduler.get_run_log("a")
        await scheduler.resume_job("a")
        await scheduler.pause_job("a", "too many errors.")
        sentences = [*(await scheduler.explain("a")).sentences, *(await scheduler.explain(run.id)).sentences]
        assert any("too many errors" in sentence for sentence in sentences)
        assert [text for text in sentences if ".." in text or "?." in text or text[-1] not in ".?"] == []


@pytest.mark.promise("X3")
@virtual
async def test_times_are_those_of_the_zone_of_the_job_with_utc_beside_them(scene):
    async with scene.scheduler(timezone="America/New_York") as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.add_job("b", Every("1h", tz="Asia/Tokyo"))
        assert "next at 2025-12-31 20:00:00 EST (2026-01-01 01:00:00 UTC)." in str(await scheduler.explain("a"))
        assert "next at 2026-01-01 10:00:00 JST (01:00:00 UTC)." in str(await scheduler.explain("b"))
