"""What a kind adds to the transactions that admit, claim and end its runs."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import After, Every, Manual, NewJob, Once, TransientError, Wait
from wakeful.ids import run_text
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind
from wakeful.triggers import to_ms


class Hooks:
    """A kind that notes in the store's meta data what it was called for, in the very transaction it was called in."""

    def __init__(self):
        self.asked = []  # when a start was asked for
        self.refuse = lambda _tx, _job: None
        self.fail_claimed = self.fail_ended = lambda _job: False

    @property
    def kind(self):
        return Kind("job", admit=self._admit, claimed=self._claimed, ended=self._ended)

    def _admit(self, tx, context, job, state):
        self.asked.append(tx.now)
        return self.refuse(tx, job)

    def _claimed(self, tx, context, job, run):
        self._note(tx, "claimed", run)
        if self.fail_claimed(job):
            raise ValueError("no claim today")
        return {"claim": run_text(run.id)}

    def _ended(self, tx, context, job, run, result):
        self._note(tx, "ended", run)
        if self.fail_ended(job):
            raise ValueError("no end today")

    @staticmethod
    def _note(tx, what, run):
        noted = json.loads(tx.facts.of([what]).get(what, "[]"))
        tx.facts.put({what: json.dumps([*noted, run_text(run.id)])})


async def noted(scheduler, what):
    """The runs it was called for, as they are on record."""
    found = await scheduler.read(lambda tx: tx.facts.of([what]))
    return json.loads(found.get(what, "[]"))


async def skips(scheduler, job):
    return {skip["reason"]: skip["count"] for skip in (await scheduler.explain(job)).facts["skips"]}


async def missed(scheduler, job):
    return await scheduler.read(lambda tx: find_job(tx, job)[1].missed)


def closed(from_, until, *, waits=False):
    """Nothing is admitted between the two."""

    def refuse(tx, job):
        inside = to_ms(from_) <= tx.now < to_ms(until)
        return Refused("closed", "the shop is closed", to_ms(until) if waits else None) if inside else None

    return refuse


# -- admit -------------------------------------------------------------------------------------------------------------


@virtual
async def test_a_refused_slot_passes_is_counted_once_and_the_job_goes_on(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(2), at(4))
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(5, 30))
        assert scene.slots == [at(1), at(4), at(5)]
        assert await skips(scheduler, "a") == {"closed": 2}
        assert [to_ms(at(hour)) for hour in range(1, 6)] == hooks.asked
        assert await missed(scheduler, "a") == 0


@virtual
async def test_a_refused_start_waits_until_it_may_and_is_neither_late_nor_missed(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(1), at(1, 30), waits=True)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Every("1h"), catch_up="skip")
        await scheduler.start()
        await scene.until(at(2, 30))
        assert list(zip(scene.slots, scene.times, strict=True)) == [(at(1), at(1, 30)), (at(2), at(2))]
        assert [run.reason for run in scene.runs] == ["schedule", "schedule"]
        assert await skips(scheduler, "a") == {"closed": 1}
        assert await missed(scheduler, "a") == 0
        assert len(hooks.asked) == 3, "it is asked when it may start, not all the time"


@virtual
async def test_what_could_not_be_decided_is_asked_again_in_a_moment_and_not_counted(scene):
    hooks = Hooks()
    hooks.refuse = lambda tx, _job: Refused("", until=tx.now + 20) if len(hooks.asked) < 4 else None
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("job", Every("1h"))
        await scheduler.start()
        await scene.until(at(hours=1, minutes=1))
        assert hooks.asked == [to_ms(at(hours=1)) + 20 * number for number in range(4)]
        assert scene.slots == [at(hours=1)]
        assert await skips(scheduler, "job") == {}


@virtual
async def test_a_moment_that_has_passed_is_no_busy_loop(scene):
    hooks = Hooks()
    hooks.refuse = lambda tx, job: Refused("closed", None, tx.now)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(1, 1))
        assert scene.runs == []
        assert 50 <= len(hooks.asked) <= 61
        assert await skips(scheduler, "a") == {"closed": 1}


@virtual
async def test_a_one_shot_that_is_refused_is_over_and_says_why(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(1), at(2))
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(3))
        job = await scheduler.get_job("a")
        assert (scene.runs, job.status) == ([], "disabled")
        assert "the shop is closed" in str(job.notes)


@virtual
async def test_a_refused_start_by_hand_is_cancelled_with_the_reason(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(0), at(2))
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        run = await scheduler.run_job("a")
        await scene.sleep("1m")
        ended = await scheduler.get_run(run)
        assert (ended.outcome, ended.error, ended.started_at) == ("cancelled", "the shop is closed", None)
        assert await noted(scheduler, "ended") == [run]
        await scene.until(at(2))
        again = await scheduler.run_job("a")
        await scene.sleep("1m")
        assert (await scheduler.get_run(again)).outcome == "success"


@virtual
async def test_a_start_by_hand_may_wait_too(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(0), at(2), waits=True)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        await scheduler.run_job("a")
        await scene.until(at(3))
        assert scene.times == [at(2)]
        assert len(hooks.asked) == 2


@virtual
async def test_a_refused_retry_ends_the_slot_as_the_failure_before_it_and_a_one_shot_with_it(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(1, 5), at(2))
    scene.act = failing(kind=TransientError)
    async with scene.scheduler("job", "plain", kinds=[hooks.kind]) as scheduler:
        await scheduler.add_jobs([NewJob("a", Once(at(1)), retry={"delays": ["10m"]}), NewJob("b", After("a"))])
        await scheduler.add_job("bad", After("a", on="failure"), kind="plain", retry=0)
        await scheduler.start()
        await scene.until(at(3))
        assert [run.job for run in scene.runs] == ["a", "bad"]
        assert (await scheduler.get_job("a")).status == "disabled", "nothing will start it any more"
        assert await scheduler.read(lambda tx: tx.runs.all_open()) == []


@virtual
async def test_a_refused_start_after_another_job_is_cancelled_and_what_follows_any_end_starts(scene):
    hooks = Hooks()
    hooks.refuse = closed(at(0), at(2))
    async with scene.scheduler("job", "plain", kinds=[hooks.kind]) as scheduler:
        await scheduler.add_jobs([NewJob("first", Manual(), kind="plain"), NewJob("a", After("first"))])
        await scheduler.add_job("last", After("a", on="any"), kind="plain")
        await scheduler.start()
        await scheduler.run_job("first")
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["first", "last"]
        assert await skips(scheduler, "a") == {"closed": 1}


# -- claimed -----------------------------------------------------------------------------------------------------------


@virtual
async def test_what_is_added_to_the_payload_reaches_the_handler_first_and_again_after_a_crash(scene):
    async def act(run):
        if run.attempt == 1:
            await scene.sleep("10h")

    scene.act, hooks = act, Hooks()
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Once(at(1)), payload={"mine": 1})
        await scheduler.start()
        await scene.until(at(1, 1))
        await scene.crash(scheduler)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.payload for run in scene.runs] == [{"mine": 1, "claim": run.id} for run in scene.runs]
        assert len({run.id for run in scene.runs}) == 2
        assert (await scheduler.get_job("a")).payload == {"mine": 1}, "what is stored is not changed"
        assert await noted(scheduler, "claimed") == await noted(scheduler, "ended") == [run.id for run in scene.runs]


@virtual
async def test_a_claim_that_fails_stores_nothing_of_it_disables_its_job_and_stops_no_other(scene):
    hooks = Hooks()
    hooks.fail_claimed = lambda job: job.name == "broken"
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        lane = {"press": 3}
        await scheduler.add_jobs([NewJob(name, Once(at(1)), lanes=lane) for name in ("one", "broken", "two")])
        await scheduler.add_job("asked", Manual(), lanes=lane)
        await scheduler.start()
        await scene.until(at(1, 1))
        assert sorted(run.job for run in scene.runs) == ["one", "two"]
        assert await noted(scheduler, "claimed") == await noted(scheduler, "ended") == [run.id for run in scene.runs]
        assert await scheduler.get_run_log("broken") == []
        assert (await scheduler.get_job("broken")).status == "disabled"
        [alert] = await scheduler.list_alerts()
        assert (alert.kind, alert.message) == (
            "disabled", "broken cannot be started and was disabled: ValueError: no claim today",
        )  # fmt: skip
        # What waits for a job that cannot be started is called off.
        hooks.fail_claimed = lambda job: job.name == "asked"
        run = await scheduler.run_job("asked")
        await scene.sleep("1m")
        assert (await scheduler.get_run(run)).outcome == "cancelled"
        assert await scheduler.read(lambda tx: (tx.runs.all_open(), tx.lanes.used(["press"]))) == ([], {"press": 0})


@virtual
async def test_a_job_that_cannot_be_read_is_disabled_by_itself_after_hooks_that_did_well(scene):
    """Its error is its own: nothing of what the hooks wrote must be undone for it."""
    hooks = Hooks()

    def spoil(tx, _context):
        job, _ = find_job(tx, "spoilt")
        tx.jobs.define(job._replace(trigger='{"type":"nonsense"}'))

    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_jobs([NewJob("good", Once(at(1)), priority=1), NewJob("spoilt", Once(at(1)))])
        await scheduler.start()
        await scheduler.transact(spoil)
        await scene.until(at(1, 1))
        assert [run.job for run in scene.runs] == ["good"]
        assert len(hooks.asked) == 1, "the turn was not begun again"
        [alert] = await scheduler.list_alerts()
        assert alert.message.startswith("spoilt cannot be scheduled and was disabled")


@virtual
async def test_a_job_run_alone_whose_claim_fails_is_the_one_that_is_disabled(scene):
    hooks = Hooks()
    hooks.fail_claimed = lambda job: job.name == "broken"
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_jobs([NewJob("innocent", Once(at(0))), NewJob("broken", Manual())])
        await scheduler.run_here("broken")
        assert (await scheduler.get_job("broken")).status == "disabled"
        assert (await scheduler.get_job("innocent")).status == "idle"


# -- ended -------------------------------------------------------------------------------------------------------------


@virtual
async def test_the_end_is_called_once_for_every_way_a_run_can_end(scene):
    async def act(run):
        if run.job.startswith("retry"):
            raise TransientError
        if run.job in ("slow", "dies", "called off"):
            await scene.sleep("10h")
        return Wait(at(1, 30)) if run.job in ("waits", "expires") else None

    scene.act, hooks = act, Hooks()
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        names = ("good", "waits", "expires", "dies", "called off")
        await scheduler.add_jobs([NewJob(name, Once(at(1))) for name in names])
        await scheduler.add_job("slow", Once(at(1)), timeout="5m", retry=0)
        for way in ("cancelled", "paused", "removed", "disabled"):
            await scheduler.add_job(f"retry {way}", Once(at(1)), retry={"delays": ["1h"], "on": "any"})
        await scheduler.start()
        await scene.until(at(1, 10))
        await scheduler.cancel_run((await scheduler.get_run_log("called off"))[0].id)
        await scheduler.complete_run((await scheduler.get_run_log("waits"))[0].id, 1)
        await scheduler.cancel_run((await scheduler.get_run_log("retry cancelled"))[0].id)
        await scheduler.pause_job("retry paused")
        await scheduler.remove_job("retry removed")
        await scheduler.update_job("retry disabled", enabled=False)
        await scene.until(at(1, 40))
        await scene.crash(scheduler)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        scene.act = None
        await scheduler.start()
        await scene.until(at(3))
        runs = await scheduler.get_run_log(limit=100)
        assert {run.outcome for run in runs} == {"success", "error", "timeout", "cancelled", "unknown", "crashed"}
        assert Counter(await noted(scheduler, "ended")) == Counter(run.id for run in runs)
        assert Counter(await noted(scheduler, "claimed")) == Counter(run.id for run in runs if run.started_at)


@pytest.mark.usefixtures("minutely_sweeps")
@virtual
async def test_an_end_that_fails_keeps_its_run_open_settles_the_others_and_is_tried_again(scene):
    hooks = Hooks()
    hooks.fail_ended = lambda job: job.name == "broken"
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_jobs([NewJob(name, Once(at(1))) for name in ("one", "broken", "two")])
        await scheduler.start()
        await scene.until(at(1, 5))
        [run] = await scheduler.get_run_log("broken")
        assert run.status == "active"
        assert len(await noted(scheduler, "ended")) == 2
        assert {(await scheduler.get_run_log(name))[0].outcome for name in ("one", "two")} == {"success"}
        hooks.fail_ended = lambda job: False
        await scene.sleep("2m")
        assert (await scheduler.get_run(run.id)).outcome == "success"
        assert Counter(await noted(scheduler, "ended")) == Counter(run.id for run in scene.runs)
        assert len(scene.runs) == 3


@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
@virtual
async def test_a_death_around_the_commit_of_an_end_leaves_run_and_hook_of_one_mind(scene, committed):
    hooks = Hooks()
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        write, store = scheduler._store.write, scheduler._store

        async def dying(work, **others):
            ending = bool(scheduler._engine.counters.starts) and not scheduler._engine.active
            if ending and not committed:
                await scene.sleep("10h")
            result = await write(work, **others)
            if ending:
                await scene.sleep("10h")
            return result

        store.write = dying
        await scene.until(at(1, 1))
        del store.write
        await scene.crash(scheduler)
    async with scene.scheduler(kinds=[hooks.kind]) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        runs = await scheduler.get_run_log("a")
        assert [run.outcome for run in reversed(runs)] == (["success"] if committed else ["crashed", "success"])
        assert Counter(await noted(scheduler, "ended")) == Counter(run.id for run in runs)
        assert Counter(await noted(scheduler, "claimed")) == Counter(run.id for run in runs)
