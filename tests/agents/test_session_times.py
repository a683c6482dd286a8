"""Sessions over hours and days, in virtual time: retries, deadlines, reports that come early or late, crashes."""

from __future__ import annotations

import httpx
import pytest

from tests.agents.virtual_sessions import VirtualSessions
from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Manual, Once
from wakeful.domains.agents import schedules
from wakeful.domains.agents.schedules import ScheduleSpec
from wakeful.domains.agents.task import Task
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.context import Rights

ACCEPTED = (202, {"status": "accepted"})
PAYLOAD = {"prompt": "Summarise"}


async def add(scheduler, trigger, name="standup", **options):
    await scheduler.add_job(name, trigger, kind="session", payload=PAYLOAD, **options)


async def log(scheduler, name="standup"):
    """The job's runs, oldest first."""
    return list(reversed(await scheduler.get_run_log(name)))


@pytest.mark.promise("C6")
@virtual
async def test_a_failed_slot_is_tried_every_half_hour_until_it_works(scene):
    sessions = VirtualSessions(scene, lambda number, _: (500, {}) if number <= 3 else (200, {}))
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Cron("0 9 * * *"))
        await scheduler.start()
        await scene.until(at(12))
        assert sessions.times == [at(9), at(9, 30), at(10), at(10, 30)]
        runs = await log(scheduler)
        assert [run.outcome for run in runs] == ["error", "error", "error", "success"]
        assert {run.slot for run in runs} == {at(9)}
        job = await scheduler.get_job("standup")
        assert job.consecutive_errors == 0
        assert job.next_run_at == at(9, days=1)
        assert len(set(sessions.keys)) == 4  # each try is a message of its own


@pytest.mark.promise("C6")
@virtual
async def test_a_new_slot_takes_the_place_of_the_retry(scene):
    sessions = VirtualSessions(scene, lambda number, _: (503, {}))
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Every("1h"))
        await scheduler.start()
        await scene.until(at(3, 10))
        assert sessions.times == [at(1), at(1, 30), at(2), at(2, 30), at(3)]
        assert (await scheduler.get_job("standup")).consecutive_errors == 2  # one for each slot that was given up


@pytest.mark.promise("C6")
@virtual
async def test_a_network_that_is_down_is_tried_again_and_a_one_time_schedule_for_a_day(scene):
    sessions = VirtualSessions(scene, lambda number, _: httpx.ConnectError("refused"))
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Once(at(1)))
        await scheduler.start()
        await scene.until(at(days=3))
        assert len(sessions.messages) == 48
        assert sessions.times[-1] == at(1 + 47 / 2)
        job = await scheduler.get_job("standup")
        assert job.status == "disabled"
        assert "refused" in job.last_error


@pytest.mark.promise("C6")
@virtual
async def test_busy_is_tried_again_in_an_hour_and_never_counts(scene):
    sessions = VirtualSessions(scene, lambda number, _: (409, {}) if number <= 10 else (200, {}))
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Cron("0 0 * * *"), max_errors=2)
        await scheduler.start()
        await scene.until(at(12, days=1))
        assert sessions.times == [at(hour, days=1) for hour in range(11)]
        runs = await log(scheduler)
        assert [run.outcome for run in runs] == ["deferred"] * 10 + ["success"]
        job = await scheduler.get_job("standup")
        assert (job.status, job.consecutive_errors) == ("idle", 0)


@pytest.mark.promise("C6")
@virtual
async def test_errors_disable_a_schedule_only_when_they_have_gone_on_for_a_day(scene):
    sessions = VirtualSessions(scene, lambda number, _: (400, {"error": "bad"}))
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Every("1h"), error_span="24h")
        await scheduler.start()
        await scene.until(at(20))
        job = await scheduler.get_job("standup")
        assert job.enabled
        assert job.consecutive_errors > 5
        await scene.until(at(2, days=1))
        job = await scheduler.get_job("standup")
        assert not job.enabled
        await scheduler.resume_job("standup")
        await scene.until(at(10, days=1))
        assert (await scheduler.get_job("standup")).enabled  # counted afresh


@pytest.mark.promise("C10")
@virtual
async def test_a_run_without_a_report_becomes_unknown_at_its_deadline(scene):
    sessions = VirtualSessions(scene, lambda number, _: ACCEPTED)
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Cron("0 9 * * *"))
        await scheduler.add_job("short", Cron("0 9 * * *"), kind="session", payload={**PAYLOAD, "deadline_ms": 600_000})
        await scheduler.start()
        await scene.until(at(9, 11))
        [short] = await log(scheduler, "short")
        assert short.outcome == "unknown"
        await scene.until(at(10, 59))
        assert [run.outcome for run in await log(scheduler)] == [None]
        await scene.until(at(11, 1))
        [run] = await log(scheduler)
        assert (run.outcome, run.finished_at) == ("unknown", at(11))
        assert run.error == "no report of its end arrived before its deadline"
        job = await scheduler.get_job("standup")
        assert (job.last_outcome, job.consecutive_errors) == ("unknown", 0)
        with pytest.raises(ScheduleTriggerError, match="already ended as unknown"):
            await scheduler.server_side.report_run(run.id, "too late")


@pytest.mark.promise("C10")
@virtual
async def test_a_waiting_run_holds_no_lane_and_keeps_its_job(scene):
    sessions = VirtualSessions(scene, lambda number, _: ACCEPTED)
    async with sessions.scheduler(max_running=1) as scheduler:
        await add(scheduler, Every("1h"), "a")
        await add(scheduler, Every("1h"), "b")
        await scheduler.start()
        await scene.until(at(2, 30))
        assert [message["schedule"] for _, message in sessions.messages] == ["a", "b"]


@pytest.mark.promise("C10")
@pytest.mark.parametrize("report", [{"output": {"n": 3}}, {"error": "tool failed"}])
@virtual
async def test_a_report_that_comes_before_our_own_answer_is_taken_up(scene, report):
    early = []

    async def act(number, message):
        early.append(await scheduler.server_side.report_run(message["runId"], **report))
        with pytest.raises(ScheduleTriggerError, match="already reported"):
            await scheduler.server_side.report_run(message["runId"], "again")
        return ACCEPTED

    sessions = VirtualSessions(scene, act)
    scheduler = sessions.scheduler()
    async with scheduler:
        await add(scheduler, Manual())
        await scheduler.start()
        run_id = await scheduler.run_job("standup")
        await scene.sleep("1m")
        run = await scheduler.get_run(run_id)
        assert early == [False]
        assert run.outcome == ("success" if "output" in report else "error")
        assert run.output == report.get("output", run.output)
        assert run.error == report.get("error")
        assert await scheduler.read(lambda tx: tx.reports.of([tx.runs.log(None, 1)[0].id])) == {}


async def cut_off(scene, sessions, report=None):
    """A process that dies while its message is under way; the id of the run that sent it."""
    scheduler = sessions.scheduler()
    await scheduler.open()
    await add(scheduler, Cron("0 9 * * *"))
    await scheduler.start()
    await scene.until(at(9, 1))
    [run] = await log(scheduler)
    assert run.status == "active"
    if report is not None:
        assert not await scheduler.server_side.report_run(run.id, report)
    await scene.crash(scheduler)
    return run.id


def hanging(scene, then):
    """The first message is never answered, as far as we live to see; those after it are."""

    async def hang():
        await scene.sleep("20h")
        return ACCEPTED

    return lambda number, message: hang() if number == 1 else then(number, message)


@pytest.mark.promise("C2", "C10")
@virtual
async def test_a_message_cut_off_by_a_crash_is_sent_again_as_the_same_message(scene):
    sessions = VirtualSessions(scene, hanging(scene, lambda number, _: (200, {"reply": "once"})))
    first = await cut_off(scene, sessions)
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        runs = await log(scheduler)
        assert [run.outcome for run in runs] == ["crashed", "success"]
        assert sessions.keys[0] == sessions.keys[1]
        assert sessions.messages[0][1] == sessions.messages[1][1]
        assert sessions.messages[1][1]["runId"] == first


@pytest.mark.promise("C10")
@virtual
async def test_what_was_reported_before_the_crash_is_how_it_ended(scene):
    sessions = VirtualSessions(scene, hanging(scene, lambda number, _: (200, {})))
    first = await cut_off(scene, sessions, report={"done": True})
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        [run] = await log(scheduler)
        assert (run.id, run.outcome, run.output) == (first, "success", {"done": True})
        assert len(sessions.messages) == 1


@pytest.mark.promise("C10")
@virtual
async def test_a_report_about_a_run_that_crashed_ends_the_one_that_continues_it(scene):
    sessions = VirtualSessions(scene, hanging(scene, lambda number, _: ACCEPTED))
    first = await cut_off(scene, sessions)
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.status for run in await log(scheduler)] == ["done", "waiting"]
        assert await scheduler.server_side.report_run(first, error="tool failed")
        assert [run.outcome for run in await log(scheduler)] == ["crashed", "error"]


@pytest.mark.promise("C10")
@virtual
async def test_a_success_that_comes_late_ends_the_slot_and_nothing_is_sent_again(scene):
    sessions = VirtualSessions(scene, hanging(scene, lambda number, _: (409, {"error": "busy with the first"})))
    first = await cut_off(scene, sessions)
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.outcome for run in await log(scheduler)] == ["crashed", "deferred", None]
        with pytest.raises(ScheduleTriggerError, match="already ended as deferred"):
            await scheduler.server_side.report_run(first, error="no")  # the slot is going to be tried again anyway
        assert not await scheduler.server_side.report_run(first, {"done": True})
        await scene.sleep("2h")
        runs = await log(scheduler)
        assert [run.outcome for run in runs] == ["crashed", "deferred", "success"]
        assert runs[-1].output == {"done": True}
        assert len(sessions.messages) == 2


@pytest.mark.promise("C2", "C10")
@virtual
async def test_a_waiting_run_survives_a_crash_and_is_not_sent_again(scene):
    sessions = VirtualSessions(scene, lambda number, _: (202, {"statusUrl": "/status/7"}))
    scheduler = sessions.scheduler()
    await scheduler.open()
    await add(scheduler, Cron("0 9 * * *"))
    await scheduler.start()
    await scene.until(at(9, 1))
    await scene.crash(scheduler)
    sessions.states["7"] = {"status": "completed", "output": "after the crash"}
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("2m")
        [run] = await log(scheduler)
        assert (run.outcome, run.output) == ("success", "after the crash")
        assert len(sessions.messages) == 1


@pytest.mark.promise("C3")
@virtual
async def test_serial_mode_sends_one_message_at_a_time(scene):
    inside = []

    async def act(number, message):
        inside.append(1)
        assert len(inside) == 1
        await scene.sleep("5m")
        inside.pop()
        return 200, {}

    sessions = VirtualSessions(scene, act)
    async with sessions.scheduler(max_running=1) as scheduler:
        for name in ("a", "b", "c"):
            await add(scheduler, Cron("0 9 * * *"), name)
        await scheduler.start()
        await scene.until(at(9, 30))
        assert sessions.times == [at(9), at(9, 5), at(9, 10)]


@pytest.mark.promise("C2", "C3")
@virtual
async def test_overdue_schedules_run_once_at_startup_which_does_not_wait_for_them(scene):
    async def act(number, message):
        await scene.sleep("5m")
        return 200, {}

    sessions = VirtualSessions(scene, act)
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Every("1h"), "a")
        await add(scheduler, Every("1h"), "b")
    await scene.until(at(days=3))
    async with sessions.scheduler(max_running=1) as scheduler:
        before = scene.now
        await scheduler.start()
        assert scene.now == before
        await scene.sleep("11m")
        assert [message["schedule"] for _, message in sessions.messages] == ["a", "b"]
        assert [run.reason for run in await log(scheduler, "a")] == ["catch_up"]


@pytest.mark.promise("C7")
@virtual
async def test_an_edit_while_it_runs_lets_the_run_finish_and_counts_from_then_on(scene):
    async def act(number, message):
        await scene.sleep("10m")
        return 200, {}

    sessions = VirtualSessions(scene, act)
    async with sessions.scheduler() as scheduler:
        await add(scheduler, Cron("0 9 * * *"))
        await scheduler.start()
        await scene.until(at(9, 5))
        await scheduler.update_job("standup", payload={"prompt": "Anew"}, trigger=Cron("0 15 * * *"))
        await scene.until(at(16))
        assert [run.outcome for run in await log(scheduler)] == ["success", "success"]
        assert [message["prompt"] for _, message in sessions.messages] == [
            "[scheduler:standup] Summarise",
            "[scheduler:standup] Anew",
        ]
        assert sessions.times == [at(9), at(15)]


@pytest.mark.promise("C7")
@pytest.mark.parametrize("write", [schedules.put, schedules.patch])
@virtual
async def test_a_schedule_that_is_written_while_its_message_is_under_way_counts_again_from_then_on(scene, write):
    async def act(number, message):
        await scene.sleep("10m")
        return 200, {}

    sessions = VirtualSessions(scene, act)
    async with sessions.scheduler() as scheduler:

        async def wish(prompt, expression, write=schedules.put):
            wanted = ScheduleSpec(Task(prompt), {"type": "cron", "expression": expression})
            await scheduler.transact(lambda tx, node: write(tx, node, "standup", wanted), rights=Rights("ana"))

        await wish("Summarise", "0 9 * * *")
        await scheduler.start()
        await scene.until(at(9, 5))
        await wish("Anew", "0 15 * * *", write)
        job = await scheduler.get_job("standup")
        assert (job.status, job.payload) == ("running", {"prompt": "Anew"})
        await scene.until(at(16))
        assert [run.outcome for run in await log(scheduler)] == ["success", "success"]
        assert [message["prompt"].partition("] ")[2] for _, message in sessions.messages] == ["Summarise", "Anew"]
        assert sessions.times == [at(9), at(15)]


@pytest.mark.promise("C7", "C10")
@pytest.mark.parametrize("write", [schedules.put, schedules.patch])
@virtual
async def test_a_schedule_that_is_written_while_it_waits_starts_nothing_beside_it_and_keeps_its_deadline(scene, write):
    sessions = VirtualSessions(scene, lambda number, _: ACCEPTED if number == 1 else (200, {}))
    async with sessions.scheduler() as scheduler:

        async def wish(expression, write=schedules.put):
            wanted = ScheduleSpec(Task("Summarise"), {"type": "cron", "expression": expression})
            await scheduler.transact(lambda tx, node: write(tx, node, "standup", wanted), rights=Rights("ana"))

        await wish("0 9 * * *")
        await scheduler.start()
        await scene.until(at(9, 5))
        await wish("0 10 * * *", write)
        await scene.until(at(10, 30))
        assert sessions.times == [at(9)]
        await scene.until(at(11, days=1))
        first, second = await log(scheduler)
        assert (first.outcome, first.finished_at) == ("unknown", at(11))
        assert (second.outcome, second.started_at) == ("success", at(10, days=1))
