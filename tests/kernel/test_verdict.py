"""One sentence says whether all is well: a table of cases, and the facts as a store gives them."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Manual, ids
from wakeful.errors import StoreUnreachable
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.verdict import Failing, Line, Unsteady, VerdictInput, judge, span

NOW = 1_800_000_000_000
MINUTE, HOUR = 60_000, 3_600_000
WELL = VerdictInput(NOW, heard_at=NOW, any_job=True, next_at=NOW + 38_000, runs=210)
HELD = "by ada since 2027-01-15 08:00 UTC"
NEEDS = {"questions": 1, "alerts": 3, "alert": "backup was disabled after 5 errors in a row"}
LATE = {"lines": (Line("gpu", 41, NOW - 9 * MINUTE), Line("disk", 1, NOW - 5_000))}
BEHIND = "Behind: 41 jobs wait for lane gpu, 9m for the oldest."
SENT = "delivered (wakeful delivery list --failed)"
GONE = "Stalled: no server is running, and nothing starts until one does (wakeful serve)."


@pytest.mark.promise("X26")
@pytest.mark.parametrize(
    ("facts", "state", "sentence"),
    [
        ({}, "well", "All well. 210 runs since midnight; next in 38s."),
        ({"runs": 1, "failed": 1}, "well", "All well. 1 run since midnight, 1 failed; next in 38s."),
        ({"runs": 1000, "more_runs": True}, "well", "All well. Over 1,000 runs since midnight; next in 38s."),
        ({"next_at": NOW - 5}, "well", "All well. 210 runs since midnight; next now."),
        (
            {"next_at": None, "lines": (Line("gpu", 1, NOW - MINUTE),)},
            "well",
            "All well. 210 runs since midnight; nothing more by time.",
        ),
        ({"next_at": None, "running": 1}, "well", "All well. 210 runs since midnight; nothing more by time."),
        (
            {"acknowledged": 2},
            "well",
            "All well but for 2 acknowledged alerts. 210 runs since midnight; next in 38s.",
        ),
        (
            {"next_at": None},
            "quiet",
            "Nothing will start by time: every job is paused, disabled, done, or has no time of its own.",
        ),
        (
            {**NEEDS, **LATE, "held": HELD},
            "stalled",
            f"Stalled: everything is paused {HELD}, and nothing starts until wakeful resume --all.",
        ),
        (
            {"held": "by ada since 2027-01-15 08:00 UTC", "stalled": ("one",)},
            "stalled",
            "Stalled: the loop of one is blocked, and nothing starts. Restart the server.",
        ),
        ({"any_job": False}, "empty", "Awake. Nothing is scheduled yet."),
        (LATE, "behind", "Behind: 41 jobs wait for lane gpu, 9m for the oldest."),
        (
            {"lines": (Line("kind:report", 1, NOW - 2 * HOUR - 5 * MINUTE),)},
            "behind",
            "Behind: 1 job waits for a node that handles kind report, 2h 5m for the oldest.",
        ),
        (
            {"lines": (Line("labels:gpu,eu", 2, NOW - HOUR),)},
            "behind",
            "Behind: 2 jobs wait for a node labelled gpu, eu, 1h for the oldest.",
        ),
        (
            {"lines": (Line("running", 2, NOW - HOUR),)},
            "behind",
            "Behind: 2 jobs wait for a place within max_running, 1h for the oldest.",
        ),
        (
            {"lines": (Line("crash-suspects", 2, NOW - HOUR),)},
            "behind",
            "Behind: 2 jobs wait for their turn to run alone, 1h for the oldest.",
        ),
        ({"due_since": NOW - 2 * MINUTE}, "behind", "Behind: the oldest start is 2m late."),
        ({"due_since": NOW - 59_000}, "well", "All well. 210 runs since midnight; next in 38s."),
        (NEEDS, "needs_you", "Four things need you: 3 alerts and 1 approval. The rest is well."),
        ({"questions": 12}, "needs_you", "12 things need you: 12 approvals. The rest is well."),
        (
            {"alerts": 1, "alert": "backup failed."},
            "needs_you",
            "One thing needs you: backup failed. The rest is well.",
        ),
        (
            {"questions": 1},
            "needs_you",
            "One thing needs you: a run waits for approval (wakeful approvals). The rest is well.",
        ),
        (
            {**NEEDS, **LATE},
            "needs_you",
            "Four things need you: 3 alerts and 1 approval. Behind: 41 jobs wait for lane gpu, 9m for the oldest.",
        ),
        (
            {**NEEDS, "acknowledged": 2},
            "needs_you",
            "Four things need you: 3 alerts and 1 approval. The rest is well but for 2 acknowledged alerts.",
        ),
        (
            {**NEEDS, "failing": (Failing("b", NOW - HOUR),)},
            "needs_you",
            "Four things need you: 3 alerts and 1 approval. Failing: b failed 1h ago and has not succeeded since.",
        ),
        (
            {"failing": (Failing("backup", NOW - 72 * HOUR),), "acknowledged": 1},
            "failing",
            "Failing: backup failed 3d ago and has not succeeded since.",
        ),
        (
            {"failing": (Failing("b", NOW - HOUR), Failing("a", NOW - 2 * HOUR)), **LATE},
            "failing",
            f"Failing: 2 jobs failed and have not succeeded since, a 2h ago. {BEHIND}",
        ),
        (
            {"undelivered": 4},
            "failing",
            "Failing: 4 messages were not delivered (wakeful delivery list --failed).",
        ),
        (
            {"undelivered": 1, "unsteady": (Unsteady("a", 5, 10), Unsteady("b", 3, 9))},
            "failing",
            f"Failing: 1 message was not {SENT}; a failed 5 of its last 10 runs, and 1 other job as often.",
        ),
        (
            {"unsent": 3, "unsent_since": NOW - 2 * HOUR},
            "behind",
            "Behind: 3 messages wait to be sent (wakeful delivery list), 2h for the oldest.",
        ),
        ({"unsent": 3, "unsent_since": NOW - 5 * MINUTE}, "well", "All well. 210 runs since midnight; next in 38s."),
        ({"unaccounted": 3, **NEEDS}, "unsure", "3 slots have no record. This should not happen."),
        ({"unaccounted": 1, **LATE}, "unsure", "1 slot has no record. This should not happen."),
        ({"unaccounted": 3, "served": False}, "stalled", GONE),
        (
            {"draining": True, **NEEDS},
            "stalled",
            "Stalled: every node is being drained, and nothing starts (wakeful node undrain NAME).",
        ),
        (
            {"stalled": ("a", "b"), **NEEDS},
            "stalled",
            "Stalled: the loop of a, b is blocked, and nothing starts. Restart the server.",
        ),
        (
            {"heard_at": NOW - 12 * MINUTE, **NEEDS},
            "stalled",
            "Stalled: a server runs, but has given no sign for 12m. Restart it.",
        ),
        ({"served": False, **NEEDS}, "stalled", GONE),
        ({"served": False, "due_since": NOW - 26 * HOUR}, "stalled", f"{GONE} The oldest start is 1d 2h late."),
        (
            {"served": False, "any_job": False},
            "stalled",
            "No server is running (wakeful serve), and nothing is scheduled yet.",
        ),
        (
            {"heard_at": NOW + HOUR, "served": False},
            "unsure",
            "Unsure: the clock is 1h behind the last sign of a server. Check the date.",
        ),
        ({"now": 0}, "unsure", "Unsure: the clock shows 1970-01-01T00:00:00Z and was never set. Set it."),
        (
            {"trouble": "disk I/O error", "now": 0},
            "stalled",
            "Stalled: the database is unavailable: disk I/O error.",
        ),
    ],
)
def test_the_worst_is_said_first(facts, state, sentence):
    verdict = judge(WELL._replace(**facts))
    assert (verdict.state, verdict.sentence) == (state, sentence)
    assert verdict.well is (state == "well")


def test_amounts_of_time_have_at_most_two_units():
    assert [span(ms) for ms in (-5, 999, 59_999, 61_000, HOUR, HOUR + MINUTE, 49 * HOUR)] == [
        *("0s", "0s", "59s", "1m", "1h", "1h 1m", "2d 1h"),
    ]


@pytest.mark.promise("X26")
@virtual
async def test_nothing_is_well_without_a_server(scene):
    scene.tuning = Tuning()
    async with scene.scheduler() as scheduler:
        assert (await scheduler.get_verdict()).state == "stalled"
        await scheduler.add_job("a", Every("1h"))
        assert (await scheduler.get_verdict()).sentence == GONE
        await scheduler.start()
        await scene.until(at(1, 1))
        assert await scheduler.get_verdict() == ("well", "All well. 1 run since midnight; next in 59m.")
        await scheduler.stop()
        await scene.until(at(3))
        assert (await scheduler.get_verdict()).sentence == f"{GONE} The oldest start is 1h late."


@pytest.mark.promise("X26")
@virtual
async def test_a_server_that_died_is_missed_once_its_lease_is_over(scene):
    scene.tuning = Tuning()
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h"))
    await scheduler.start()
    await scene.sleep(1)
    assert (await scheduler.get_verdict()).well
    await scene.crash(scheduler)
    await scene.sleep(60)
    async with scene.scheduler() as looker:
        assert (await looker.get_verdict()).sentence == GONE


@pytest.mark.promise("X26")
@virtual
async def test_a_store_that_fails_is_never_called_well(scene, monkeypatch):
    scene.tuning = Tuning()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.sleep(1)

        async def away(work):
            raise StoreUnreachable("The database does not answer.")

        with monkeypatch.context() as patch:
            patch.setattr(scheduler._store, "read", away)
            assert await scheduler.get_verdict() == (
                "stalled",
                "Stalled: the database is unavailable: The database does not answer.",
            )
        assert (await scheduler.get_verdict()).well


@pytest.mark.promise("X26")
@virtual
async def test_what_needs_a_person_is_counted_until_it_is_acknowledged(scene):
    scene.tuning = Tuning()
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        assert (await scheduler.get_verdict()).state == "stalled"
        await scheduler.start()
        await scene.sleep(1)
        assert await scheduler.get_verdict() == ("empty", "Awake. Nothing is scheduled yet.")
        await scheduler.add_job("by hand", Manual())
        assert (await scheduler.get_verdict()).state == "quiet"
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.add_job("b", Every("1d"))
        await scene.until(at(1, 1))
        alerts = await scheduler.list_alerts()
        assert [alert.kind for alert in alerts] == ["disabled"]
        verdict = await scheduler.get_verdict()
        assert verdict.state == "needs_you"
        assert verdict.sentence == f"One thing needs you: {alerts[0].message}. The rest is well."
        await scheduler.ack_alert(alerts[0].id)
        assert (await scheduler.get_verdict()).sentence == (
            "All well but for 1 acknowledged alert. 1 run since midnight, 1 failed; next in 22h 59m."
        )


@pytest.mark.promise("X26")
@virtual
async def test_a_job_that_waits_long_for_its_lane_is_behind(scene):
    scene.tuning = Tuning()
    scene.act = lambda _: scene.sleep(1800)
    async with scene.scheduler() as scheduler:
        for name in ("a", "b"):
            await scheduler.add_job(name, Every("1h"), lanes={"gpu": 1})
        await scheduler.start()
        await scene.until(at(1, 0, 30))
        assert (await scheduler.get_verdict()).well
        await scene.until(at(1, 2, 1))
        assert await scheduler.get_verdict() == ("behind", "Behind: 1 job waits for lane gpu, 2m for the oldest.")


@pytest.mark.promise("X26")
@virtual
async def test_a_clock_that_contradicts_the_record_leaves_it_unsure(scene):
    scene.tuning = Tuning()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(3))
    scene.step(hours=-2)
    async with scene.scheduler() as looker:
        verdict = await looker.get_verdict()
        assert verdict.state == "unsure", verdict


@pytest.mark.promise("X26")
@virtual
async def test_a_slot_that_lost_its_record_is_noticed_and_forgotten_once_it_is_on_record_again(scene):
    scene.tuning = Tuning()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.add_job("b", Every("1d"))
        await scheduler.start()
        await scene.until(at(1, 55))
        lost = [run.id for run in await scheduler.get_run_log("a")][:3]
        numbers = [ids.decode(run)[1] for run in lost][1:]  # the last run of a job is never deleted
        await scheduler.transact(lambda tx, _: tx.runs.delete(numbers))
        await scene.until(at(2, 5))
        assert await scheduler.get_verdict() == ("unsure", "2 slots have no record. This should not happen.")
        await scene.until(at(5, 5))  # by then they are further back than is looked
        assert (await scheduler.get_verdict()).well
