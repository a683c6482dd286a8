"""Every sentence of explain, against the situation it speaks of: what it must say, and what it must not."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.kernel.scene import at, virtual
from wakeful import (
    After,
    ApprovalNeeded,
    Cron,
    Defer,
    Every,
    Interval,
    Manual,
    Noop,
    Once,
    Skip,
    TransientError,
    Wait,
)


class Case(NamedTuple):
    """What explain says about the job `a`, or of its newest run, once `act` has been lived through until `until`."""

    trigger: object
    ends: list  # what the runs of `a` do, in turn; the last one again and again
    until: object
    says: list[str]
    never: tuple[str, ...] | list[str] = ()
    of_run: tuple[str, ...] | list[str] = ()  # what is said about the newest run
    options: dict | None = None


ERROR = RuntimeError("no money")
HOURLY = Every("1h")

TABLE = {
    "a skip after an error": Case(
        HOURLY, [ERROR, Skip("market closed")], at(2, 1),
        ["ended as skipped: market closed."], ["no money"], ["ended as skipped after 0 ms: market closed."],
    ),
    "a skip without a reason after an error": Case(
        HOURLY, [ERROR, Skip()], at(2, 1), ["ended as skipped."], ["no money"], ["ended as skipped after 0 ms."]
    ),
    "a no-op after an error": Case(
        HOURLY, [ERROR, Noop("nothing new")], at(2, 1), ["ended as noop: nothing new."], ["no money"]
    ),
    "a success after an error": Case(HOURLY, [ERROR, "all good"], at(2, 1), ["ended as success."], ["money", "good"]),
    "an error": Case(
        HOURLY, [ERROR], at(1, 1),
        ["last ran at 2026-01-01 01:00:00 UTC because its time had come, and ended as error: no money."],
        of_run=["was due 2026-01-01 01:00:00 UTC and started 0 ms later", "ended as error after 0 ms: no money."],
    ),
    "two different errors": Case(
        HOURLY, [ERROR, ValueError("no time")], at(2, 1), ["ended as error: no time."], ["no money"]
    ),
    "a deferral": Case(
        HOURLY, [Defer(at(1, 30), "too early")], at(1, 1),
        ["waits to start at 2026-01-01 01:30:00 UTC: an earlier attempt asked to be run again then.",
         "ended as deferred: too early."],
        ["did not succeed"],
        ["waits to start because an earlier attempt asked to be run again then", "queued for 2026-01-01 01:30:00 UTC"],
    ),
    "a run after a deferral": Case(
        HOURLY, [Defer(at(1, 30)), None], at(1, 31),
        ["because an earlier attempt asked to be run again then, and ended as success."],
        ["did not succeed", "cut off"],
    ),
    "a retry that waits": Case(
        HOURLY, [ERROR], at(1, 1),
        ["waits to start at 2026-01-01 01:10:00 UTC: an earlier attempt did not succeed.", "ended as error: no money."],
        ["cut off"], options={"retry": {"delays": ["10m"]}},
    ),
    "a retry that ran": Case(
        HOURLY, [TransientError("busy"), None], at(1, 20),
        ["because an earlier attempt did not succeed, and ended as success."], ["busy", "cut off"],
        ["was started because an earlier attempt did not succeed", "attempt 2"],
        options={"retry": {"delays": ["10m"]}},
    ),
    "a run that waits to be completed": Case(
        HOURLY, [Wait()], at(1, 1), ["It waits to be completed (run_"], ["running now"], ["It waits to be completed."]
    ),
    "a run that was not completed": Case(
        HOURLY, [Wait(at(1, 10))], at(1, 11),
        ["ended as unknown: no report of its end arrived before its deadline."],
        of_run=["ended as unknown after 10m: no report of its end"],
    ),
    "a job that starts after one that does not exist": Case(
        After("gone"), [None], at(1), ["It will not run: there is no job 'gone' for it to start after."],
        ["no time of its own"],
    ),
    "a run that waits for approval": Case(
        HOURLY, [ApprovalNeeded("Deploy?")], at(1, 1),
        ["It waits for approval (run_", "Approve or reject it to continue."], ["to be completed"],
        ["it asked: 'Deploy?', and there is no answer yet", "It waits for approval."],
    ),
    "a run of some seconds": Case(
        HOURLY, [Wait(at(1, 0, 5.562))], at(1, 1), [], of_run=["ended as unknown after 5.6 s: no report of its end"]
    ),
    "a run past its limit": Case(
        HOURLY, ["sleep"], at(1, 10), ["ended as timeout: still running after 5m."],
        of_run=["ended as timeout after 5m: still running after 5m."], options={"timeout": "5m"},
    ),
    "a run in progress": Case(
        HOURLY, ["sleep"], at(1, 10), ["It is running now (run_", "since 2026-01-01 01:00:00 UTC",
         "That run was started because its time had come."], ["ended as"], ["It is running now."],
    ),
    "an auto-disabled job": Case(
        HOURLY, [ERROR], at(1, 1),
        ["It will not run: it is disabled. Resume it to continue.", "ended as error: no money", "after an error"],
        options={"max_errors": 1},
    ),
    "a job that has run as often as it may": Case(
        Every("1h", max_runs=2), [None], at(5),
        ["It will not run again: it has run 2 times, as often as max_runs allows."], ["Resume it"],
    ),
    "a job whose time is over": Case(
        Every("1h", until=at(2, 30)), [None], at(5), ["It will not run again: its trigger has no time in the future."],
        ["Resume it"],
    ),
    "a one-shot that is done": Case(Once(at(1)), [None], at(2), ["It is done: its one time has passed."]),
    "a one-shot that failed": Case(
        Once(at(1)), [ERROR], at(2), ["It did not succeed at its one time, and will not run again"], ["It is done"]
    ),
    "a job without a time": Case(
        Manual(), [None], at(1), ["It has no time of its own", "It has never run."], ["paused", "disabled"]
    ),
    "closed hours": Case(
        Every("1h", active_hours={"start": "09:00", "end": "12:00", "timezone": "UTC"}), [None], at(9, 1, days=1),
        ["refused as outside_active_hours: its active hours were closed"], ["paused", "disabled", "backing_off"],
    ),
    "slots that came while it ran": Case(
        Every("10m"), ["25m"], at(0, 36), ["2 starts refused as already_running: its own previous run was still going",
         "2 scheduled times passed without a run of their own."], ["paused", "full"],
    ),
    "a job that backs off": Case(
        Every("1m"), [ERROR], at(0, 2),
        ["It will run next at 2026-01-01 00:31:00 UTC, held back by 1 error in a row; its own time was 2026-01-01 00"],
        ["jitter"], options={"backoff": ["30m"]},
    ),
    "a start that jitter moved": Case(
        Every("1h", jitter=10), [None], at(0, 1), ["moved by jitter"], ["held back"]
    ),
    "a start that nothing moved": Case(HOURLY, [None], at(0, 1), ["next at 2026-01-01 01:00:00 UTC."], ["moved"]),
    "a cron job": Case(Cron("0 9 * * *", tz="UTC"), [None], at(1), ["next at 2026-01-01 09:00:00 UTC."], ["moved"]),
    "an interval": Case(Interval("1h"), [None], at(0, 30), ["next at 2026-01-01 01:00:00 UTC."], ["moved"]),
    "a kind without a handler": Case(
        Once(at(0, 1)), [None], at(1),
        [("It has been due since 2026-01-01 00:01:00 UTC and waits: "
          "no running server has a handler for jobs of kind rare."),
         "1 start refused as no_handler: no node handled its kind"],
        options={"kind": "rare"},
    ),
    "labels that no node has": Case(
        Once(at(0, 1)), [None], at(1),
        ["no running node is labelled big, gpu.", "1 start refused as no_node: no node had the labels it asks for"],
        options={"labels": ["gpu", "big"]},
    ),
}  # fmt: skip


def acting(scene, ends):
    left = list(ends)

    async def act(run):
        end = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(end, Exception):
            raise end
        if end in ("sleep", "25m"):
            await scene.sleep("10h" if end == "sleep" else end)
        return end

    return act


def check(text, says, never=()):
    for words in says:
        assert words in text, text
    for words in never:
        assert words not in text, text


@pytest.mark.promise("X3")
@pytest.mark.parametrize("name", TABLE)
@virtual
async def test_the_explanation_is_what_happened(scene, name):
    case = TABLE[name]
    scene.act = acting(scene, case.ends)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", case.trigger, **(case.options or {}))
        await scheduler.start()
        await scene.until(case.until)
        check(str(await scheduler.explain("a")), case.says, case.never)
        if case.of_run:
            newest = (await scheduler.get_run_log("a"))[0]
            check(str(await scheduler.explain(newest.id)), case.of_run, case.never)


@pytest.mark.promise("X3", "H11")
@virtual
async def test_a_recovery_is_reported_as_one_and_a_crash_gives_its_own_reason(scene):
    async with scene.scheduler() as scheduler:
        scene.act = acting(scene, [ERROR, "sleep"])
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.until(at(2, 10))
        await scene.crash(scheduler)
    crashed = scene.runs[-1].id
    async with scene.scheduler("other") as scheduler:  # it waits to be run again until a node can
        await scheduler.start()
        await scene.sleep("1m")
        says = ["ended as crashed: the process ended while it ran."]
        check(str(await scheduler.explain("a")), says, ["no money", "did not succeed"])
        check(str(await scheduler.explain(crashed)), ["ended as crashed after 10m", "It will be tried again as run_"])
        again = (await scheduler.get_run_log("a"))[0]
        waits = ["waits to start because an earlier attempt was cut off", f"It continues {crashed}."]
        check(str(await scheduler.explain(again.id)), waits, ["did not succeed"])
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        says = ["because an earlier attempt was cut off, and ended as success."]
        check(str(await scheduler.explain("a")), says, ["did not succeed", "no money"])
        check(str(await scheduler.explain(again.id)), ["was started because an earlier attempt was cut off"])
        check(str(await scheduler.explain(crashed)), [f"It was tried again as {again.id}."])


@pytest.mark.promise("X3")
@virtual
async def test_what_people_did_is_attributed_to_them(scene):
    scene.act = acting(scene, [ERROR, "sleep", ApprovalNeeded("Deploy?"), ApprovalNeeded("Deploy?"), None])
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), max_errors=0)
        await scheduler.start()
        for _ in range(2):
            run = await scheduler.run_job("a")
            await scene.sleep("1m")
        await scheduler.cancel_run(run)
        await scene.sleep("1m")
        check(
            str(await scheduler.explain("a")), ["a person or program asked for it", "cancelled: cancelled."], ["money"]
        )
        run = await scheduler.run_job("a")
        await scene.sleep("1m")
        await scheduler.reject_run(run, by="ada", note="not on Friday")
        check(str(await scheduler.explain("a")), ["ended as cancelled: rejected by ada: not on Friday."], ["money"])
        run = await scheduler.run_job("a")
        await scene.sleep("1m")
        await scheduler.approve_run(run, by="ada")
        await scene.sleep("1m")
        check(str(await scheduler.explain("a")), ["because a person approved it, and ended as success."], ["money"])
        check(str(await scheduler.explain(run)), ["ada approved it", "It went on as run_"], ["tried again"])


@pytest.mark.promise("X3")
@virtual
async def test_a_job_that_is_paused_while_it_runs_says_both(scene):
    scene.act = acting(scene, ["25m"])
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.pause_job("a")
        check(str(await scheduler.explain("a")), ["is running now", "will not run by time: it is paused"])
        await scheduler.add_job("b", After("a", on="any"))
        await scheduler.pause_job("b")
        await scene.until(at(1, 30))
        says = ["1 start refused as paused: it was paused", "It has never run."]
        check(str(await scheduler.explain("b")), says, ["closed", "disabled"])


@pytest.mark.promise("X3")
@virtual
async def test_a_further_attempt_that_was_never_made_says_why(scene):
    scene.act = acting(scene, [ERROR])
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), retry={"delays": ["10m"]})
        await scheduler.start()
        await scene.until(at(1, 1))
        again, first = await scheduler.get_run_log("a")
        await scheduler.cancel_run(again.id)
        check(
            str(await scheduler.explain(again.id)),
            ["was to start because an earlier attempt did not succeed", "ended as cancelled: cancelled by hand."],
            ["was started"],
        )
        says = [f"It was to be tried again as {again.id}, which ended as cancelled: cancelled by hand."]
        check(str(await scheduler.explain(first.id)), says)


@pytest.mark.promise("X3")
@virtual
async def test_a_start_that_was_released_is_not_reported_as_a_run(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.until(at(1, 1))
        state = (await scheduler.get_job("a"))._state
        await scheduler.stop()
        release = "UPDATE runs SET status = 'queued', outcome = NULL, started_at = NULL, finished_at = NULL"
        await scheduler._store.write(lambda tx: tx.lanes._session.execute(release))
        await scheduler._store.write(lambda tx: tx.jobs.save([state._replace(queued=1)]))
        text = str(await scheduler.explain("a"))
        check(
            text, ["has waited to start since 2026-01-01 01:00:00 UTC", "It has not run yet."], ["was started because"]
        )
