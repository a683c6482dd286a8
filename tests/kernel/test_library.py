"""The library's verbs: ids and names, filters and pages, handlers, explanations of what is there."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import (
    Cron,
    Every,
    Interval,
    IntervalParseError,
    JobExists,
    JobNotFound,
    Manual,
    NewJob,
    Once,
    SchedulerError,
    SchedulerShutdownError,
    ScheduleTriggerError,
    parse_interval,
)


@pytest.mark.promise("H16")
@virtual
async def test_ids_and_names_are_both_accepted_wherever_a_job_is_asked_for(scene):
    async with scene.scheduler() as scheduler:
        job_id = await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        for ref in ("a", job_id):
            await scheduler.update_job(ref, payload=ref)
            assert (await scheduler.get_job(ref)).payload == ref
            await scheduler.pause_job(ref)
            assert (await scheduler.get_job(ref)).status == "paused"
            await scheduler.resume_job(ref)
            run_id = await scheduler.run_job(ref)
            await scene.sleep("1s")
            assert (await scheduler.get_run(run_id)).job_id == job_id
            assert (await scheduler.get_run_log(ref, limit=1))[0].id == run_id
            assert (await scheduler.get_run_stats(ref)).total == len(scene.runs)
            assert (await scheduler.explain(ref)).subject == "a"
        await scheduler.remove_job(job_id)
        assert await scheduler.get_job("a") is None


@pytest.mark.promise("H16")
@virtual
async def test_a_job_shows_everything_the_contract_names(scene):
    async with scene.scheduler() as scheduler:
        job_id = await scheduler.add_job("a", Every("1h"), kind="job", payload=[1], owner="ada", source="cli")
        job = await scheduler.get_job("a")
        shown = (job.id, job.name, job.kind, job.owner, job.source, job.payload, job.enabled, job.status)
        assert shown == (job_id, "a", "job", "ada", "cli", [1], True, "idle")
        assert job.trigger.next_after(at(0)) == at(1)
        assert (job.next_run_at, job.last_run_at, job.last_outcome, job.last_error) == (at(1), None, None, None)
        assert (job.consecutive_errors, job.missed, job.notes, job.revision) == (0, 0, [], 1)
        await scheduler.start()
        await scene.until(at(1, 1))
        job = await scheduler.get_job("a")
        assert (job.last_run_at, job.last_outcome, job.next_run_at) == (at(1), "success", at(2))
        assert job.next_run_at.tzinfo is not None


@pytest.mark.promise("H16")
@virtual
async def test_a_run_shows_everything_the_contract_names(scene):
    async def act(run):
        await scene.sleep("2s")
        return {"rows": 42}

    scene.act = act
    async with scene.scheduler() as scheduler:
        job_id = await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 0, 1))
        [run] = await scheduler.get_run_log("a")
        assert (run.status, run.outcome, run.finished_at) == ("active", None, None)
        await scene.sleep("5s")
        run = await scheduler.get_run(run.id)
        shown = (run.job, run.job_id, run.kind, run.reason, run.slot, run.attempt, run.retry_of, run.phase)
        assert shown == ("a", job_id, "job", "schedule", at(1), 1, None, None)
        assert (run.status, run.outcome, run.error, run.output) == ("done", "success", None, {"rows": 42})
        assert (run.started_at, run.finished_at, run.node) == (at(1), at(1, 0, 2), "here")


@pytest.mark.promise("H16")
@virtual
async def test_jobs_are_listed_by_name_filtered_and_in_pages(scene):
    async with scene.scheduler("job", "report") as scheduler:
        for n in range(12):
            await scheduler.add_job(
                f"j{n:02}", Manual(), kind="report" if n % 3 == 0 else "job", owner="ada" if n % 2 else "bob",
                source="cli" if n < 4 else "code",
            )  # fmt: skip
        await scheduler.pause_job("j01")
        await scheduler.update_job("j02", enabled=False)

        async def names(**wanted):
            return [job.name for job in await scheduler.list_jobs(**wanted)]

        assert await names() == [f"j{n:02}" for n in range(12)]
        assert await names(kind="report") == ["j00", "j03", "j06", "j09"]
        assert await names(owner="ada", kind="report") == ["j03", "j09"]
        assert await names(source="cli") == ["j00", "j01", "j02", "j03"]
        assert await names(status="paused") == ["j01"]
        assert await names(status="disabled") == ["j02"]
        assert await names(enabled=False) == ["j02"]
        assert len(await names(status="idle")) == 10
        assert await names(status="running") == []
        assert await names(kind="none") == []
        assert await names(limit=0) == []
        pages, after = [], None
        while page := await names(limit=5, after=after):
            pages.append(page)
            after = page[-1]
        assert [len(page) for page in pages] == [5, 5, 2]
        assert [name for page in pages for name in page] == await names()
        with pytest.raises(SchedulerError, match="idle"):
            await scheduler.list_jobs(status="sleepy")


@pytest.mark.promise("H16")
@virtual
async def test_the_run_log_has_the_newest_first_in_pages_and_also_of_all_jobs(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Every("1m")), NewJob("b", Every("2m"))])
        await scheduler.start()
        await scene.sleep("150m")
        assert len(await scheduler.get_run_log("a")) == 50
        log = await scheduler.get_run_log("a", limit=1000)
        assert [run.slot for run in log] == [at(0, minute) for minute in range(150, 0, -1)]
        pages, before = [], None
        while page := await scheduler.get_run_log("a", limit=40, before=before):
            pages += page
            before = page[-1].id
        assert [run.id for run in pages] == [run.id for run in log]
        every = await scheduler.get_run_log(limit=3)
        assert {run.job for run in every} == {"a", "b"}


@pytest.mark.promise("H16")
@virtual
async def test_if_exists_says_what_happens_to_a_taken_name(scene):
    async with scene.scheduler() as scheduler:
        job_id = await scheduler.add_job("a", Every("1h"), payload=1)
        with pytest.raises(JobExists, match="'a'"):
            await scheduler.add_job("a", Every("2h"), payload=2)
        assert await scheduler.add_job("a", Every("2h"), payload=2, if_exists="keep") == job_id
        assert (await scheduler.get_job("a")).payload == 1
        assert await scheduler.add_job("a", Every("2h"), payload=2, if_exists="update") == job_id
        job = await scheduler.get_job("a")
        assert (job.payload, job.next_run_at, job.revision) == (2, at(2), 2)
        ids = await scheduler.add_jobs([NewJob("b", Manual()), NewJob("a", Manual())], if_exists="keep")
        assert ids[1] == job_id


@pytest.mark.promise("H16")
@virtual
async def test_jobs_declared_in_code_are_stored_on_start_and_updated_when_they_changed(scene):
    def declare(trigger):
        scheduler = scene.scheduler()

        @scheduler.job(trigger, payload={"to": "team"}, owner="ada", timeout="5m")
        async def nightly(run):
            return await scene.handle(run)

        return scheduler

    async with declare(Cron("0 2 * * *")) as scheduler:
        assert await scheduler.list_jobs() == []
        await scheduler.start()
        first = await scheduler.get_job("nightly")
        assert (first.kind, first.source, first.owner, first.payload) == ("nightly", "code", "ada", {"to": "team"})
        await scene.until(at(2, 1))
        assert scene.slots == [at(2)]
    async with declare(Cron("0 2 * * *")) as scheduler:
        await scheduler.start()
        assert (await scheduler.get_job("nightly")).revision == 1
    async with declare(Cron("0 4 * * *")) as scheduler:
        await scheduler.start()
        changed = await scheduler.get_job("nightly")
        assert (changed.id, changed.revision, changed.next_run_at) == (first.id, 2, at(4))


@pytest.mark.promise("H16")
@virtual
async def test_unknown_things_are_named_and_the_nearest_name_offered(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("nightly", Every("1h"))
        calls = [scheduler.remove_job, scheduler.pause_job, scheduler.resume_job, scheduler.run_job, scheduler.explain]
        calls += [scheduler.update_job, scheduler.get_run_log, scheduler.get_run_stats]
        for call in calls:
            for ref in ("nightli", "job_0000000000001", "", "\ud800", "a\0b", "job_!", "x" * 10_000):
                with pytest.raises(JobNotFound):
                    await call(ref)
            with pytest.raises(JobNotFound, match="'nightly'"):
                await call("nightli")
        for call in (scheduler.cancel_run, scheduler.retry_run, scheduler.complete_run):
            for ref in ("run_0000000000001", "nightly", "", "\ud800"):
                with pytest.raises(JobNotFound):
                    await call(ref)
        for ref in ("nobody", "", "\ud800", "a\0b", "job_0000000000001", "run_0000000000001"):
            assert await scheduler.get_job(ref) is None
            assert await scheduler.get_run(ref) is None


@pytest.mark.promise("H16")
@virtual
async def test_a_finished_run_can_be_tried_again_once(scene):
    async def act(run):
        if len(scene.runs) == 1:
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), payload="x")
        await scheduler.start()
        await scene.until(at(1, 10))
        first = scene.runs[0].id
        again = await scheduler.retry_run(first)
        await scene.sleep("1s")
        run = await scheduler.get_run(again)
        assert (run.slot, run.attempt, run.retry_of, run.outcome) == (at(1), 2, first, "success")
        assert (await scheduler.get_job("a")).consecutive_errors == 0
        with pytest.raises(ScheduleTriggerError, match="already"):
            await scheduler.retry_run(first)


@pytest.mark.promise("H17", "D5")
@pytest.mark.usefixtures("minutely_sweeps")
@virtual
async def test_a_job_without_a_handler_stays_due_is_alerted_after_a_minute_and_runs_when_there_is_one(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), kind="report")
        await scheduler.start()
        await scene.until(at(1, 0, 30))
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.waiting_for) == ("idle", True, "kind:report")
        assert await scheduler.list_alerts() == []
        await scene.until(at(1, 3))
        [alert] = await scheduler.list_alerts()
        assert alert.kind == "no_handler"
        since = "a has been due since 2026-01-01 01:00:00 UTC"
        assert alert.message == f"{since}, but no running node handles kind report"
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("a")).facts["skips"]}
        assert skips == {"no_handler": 1}
        await scene.until(at(5))
        scheduler.on_job_due("report", scene.handle)
        await scene.sleep("1s")
        assert (scene.times, scene.slots) == ([at(5)], [at(1)])
        assert await scheduler.list_alerts() == [], "the incident is over"


@pytest.mark.promise("H17")
@virtual
async def test_a_job_without_a_handler_survives_restarts_and_runs_on_a_node_that_can(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), kind="report")
        await scheduler.start()
        await scene.until(at(2))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(3))
        assert scene.runs == []
    async with scene.scheduler("report") as scheduler:
        await scheduler.start()
        await scene.sleep("1s")
        assert scene.slots == [at(1)]
        await scene.sleep("2m")
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("H16")
@virtual
async def test_one_job_can_be_run_without_starting_anything_else(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), payload=5)
        await scheduler.add_job("overdue", Once(at(0)))
        scheduler.on_job_due("plain", lambda run: "plain")
        await scheduler.add_job("b", Manual(), kind="plain")
        run = await scheduler.run_here("a")
        assert (run.outcome, run.reason, [run.job for run in scene.runs]) == ("success", "manual", ["a"])
        assert (await scheduler.run_here("b")).output == "plain"
        assert (await scheduler.get_job("a")).status == "idle"
        assert not scheduler.is_running()


@pytest.mark.promise("H16", "H10")
@virtual
async def test_a_job_run_alone_has_its_limit_too(scene):
    async def act(run):
        await scene.sleep("10h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), timeout="1m")
        assert (await scheduler.run_here("a")).outcome == "timeout"
        assert scene.now <= at(0, 2)


@pytest.mark.promise("D7", "D13")
def test_errors_are_one_tree_and_say_what_they_are_about():
    assert issubclass(IntervalParseError, SchedulerError)
    assert issubclass(IntervalParseError, ValueError)
    for error in (ScheduleTriggerError, SchedulerShutdownError, JobNotFound, JobExists):
        assert issubclass(error, SchedulerError)
    with pytest.raises(IntervalParseError) as refused:
        parse_interval("5x")
    assert refused.value.interval == "5x"
    assert ScheduleTriggerError("m", {"reason": "paused"}).context == {"reason": "paused"}
    assert SchedulerShutdownError("m").context == {}


@pytest.mark.promise("D7")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "Missing time unit"),
        ("5.5m", "Decimal values are not supported"),
        ("0m", "Zero interval is not allowed"),
        ("-5m", "Negative intervals are not allowed"),
        ("5x", 'Invalid time unit "x". Valid units are: s, m, h, d'),
        ("30m1h", "from long to short"),
        ("", "empty"),
    ],
)
@virtual
async def test_a_duration_that_cannot_be_read_is_refused_where_it_is_given(scene, text, words):
    async with scene.scheduler() as scheduler:
        for make in (Every, Interval):
            with pytest.raises(IntervalParseError, match=words.replace(".", r"\.")):
                await scheduler.add_job("a", make(text))
        assert await scheduler.list_jobs() == []
