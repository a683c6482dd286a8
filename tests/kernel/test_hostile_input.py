"""What must not be stored is refused with a sentence, and nothing has changed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.kernel.scene import at, virtual
from wakeful import (
    After,
    Cron,
    Every,
    Interval,
    InvalidJob,
    InvalidTrigger,
    JobExists,
    JobNotFound,
    Manual,
    NewJob,
    Once,
    SchedulerError,
)
from wakeful.kernel.rules.options import read_options

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the point


async def everything(scheduler):
    """The whole store, as users and the engine see it."""
    jobs = [job.to_dict() for job in await scheduler.list_jobs()]
    runs = [run.to_dict() for run in await scheduler.get_run_log(limit=1000)]
    return jobs, runs, await scheduler.get_summary()


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


BAD_NAMES = ["", " ", "a ", " a", "a\nb", "a\0", "\x1b[31m", "x" * 201, "x" * 10_000, "\ud800", "\u200b", None, 5, b"a",
             "job_0000000000001", "run_0000000000001", ["a"]]  # fmt: skip
BAD_PAYLOADS = {
    "object": object(),
    "set": {1},
    "nan": float("nan"),
    "infinity inside": {"a": [float("inf")]},
    "bytes": b"x",
    "datetime": at(0),
    "too large": "x" * 1_100_000,
    "too deep": nested(10_000),
    "odd keys": {(1, 2): 3},
}
BAD_OPTIONS = {
    "timeout": ["-5m", "0s", 0, -1, float("nan"), float("inf"), "soon", True, [], {}, "5", 10**30],
    "catch_up": ["twice", 5, {"within": "x"}, {"within": "-1h"}, {"in": "1h"}, [], True],
    "overlap": ["both", 1, [], {}, True],
    "retry": [-1, True, "x", {"delay": 1}, {"on": "never"}, ["x"], ["-5s"], 10**9, 1.5, {"times": -1}],
    "backoff": [[], "30s", 5, ["x"], ["-5s"], [0], {"a": 1}],
    "max_errors": [-1, "5", 1.5, True, 10**9, []],
    "priority": [-101, 101, "5", 1.5, True, 10**30, [], {}, float("nan")],
    "on_crash": ["explode", 1, True, []],
    "lanes": [{"a": 0}, {"a": -1}, {"": 1}, {"a": "1"}, {"a": 1.5}, {"a": True}, {1: 1}, ["a"], "a", 5, {"x" * 300: 1},
              {"\ud800": 1}],
    "labels": ["gpu", [""], [1], 5, [None], ["\ud800"]],
}  # fmt: skip


@pytest.mark.promise("H16")
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: repr(name)[:20])
@virtual
async def test_a_name_that_cannot_be_shown_is_refused(scene, name):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(InvalidJob, match=r"name|id"):
            await scheduler.add_job(name, Every("1h"))
        with pytest.raises(InvalidJob, match=r"name|id"):
            await scheduler.update_job("good", name=name)
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@pytest.mark.parametrize("value", ["", "a\nb", "x" * 300, 5, "\ud800"], ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("field", ["kind", "owner"])
@virtual
async def test_so_is_an_owner_or_a_kind(scene, field, value):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(InvalidJob, match=field):
            await scheduler.add_job("a", Every("1h"), **{field: value})
        with pytest.raises(InvalidJob, match=field):
            await scheduler.update_job("good", **{field: value})
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@pytest.mark.parametrize("payload", BAD_PAYLOADS.values(), ids=BAD_PAYLOADS)
@virtual
async def test_a_payload_that_is_not_json_or_too_large_is_refused(scene, payload):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(InvalidJob, match="payload"):
            await scheduler.add_job("a", Every("1h"), payload=payload)
        with pytest.raises(InvalidJob, match="payload"):
            await scheduler.update_job("good", payload=payload)
        with pytest.raises(InvalidJob, match="payload"):
            await scheduler.run_job("good", payload=payload)
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@pytest.mark.parametrize("payload", [None, 0, "", "\ud800", "\0", {"a": "ü" * 1000}, [[]], 1e308, 2**70])
@virtual
async def test_every_json_value_is_a_payload_and_comes_back_the_same(scene, payload):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), payload=payload)
        await scheduler.start()
        await scene.sleep("1s")
        assert scene.runs[0].payload == payload
        assert (await scheduler.get_job("a")).payload == payload
        assert (await scheduler.get_run_log("a"))[0].payload == payload


@pytest.mark.promise("H16")
@pytest.mark.parametrize(
    ("option", "value"),
    [(option, value) for option, values in BAD_OPTIONS.items() for value in values],
    ids=lambda value: repr(value)[:25],
)
@virtual
async def test_an_option_that_makes_no_sense_is_refused_by_name(scene, option, value):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        for attempt in (
            lambda: scheduler.add_job("a", Every("1h"), **{option: value}),
            lambda: scheduler.add_jobs([NewJob("b", Manual()), NewJob("a", Every("1h"), **{option: value})]),
            lambda: scheduler.update_job("good", **{option: value}),
        ):
            with pytest.raises(SchedulerError, match=option):
                await attempt()
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@virtual
async def test_an_unknown_option_is_refused_with_the_nearest_name(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        with pytest.raises(InvalidJob, match="'timeout'"):
            await scheduler.add_job("a", Every("1h"), timeuot="5m")
        with pytest.raises(InvalidJob, match="'max_errors'"):
            await scheduler.update_job("good", max_error=3)
        with pytest.raises(InvalidJob, match="if_exists"):
            await scheduler.add_job("a", Every("1h"), if_exists="replace")
        with pytest.raises(InvalidJob, match="source"):
            await scheduler.add_job("a", Every("1h"), source="nowhere")
        assert [job.name for job in await scheduler.list_jobs()] == ["good"]


@pytest.mark.promise("H16")
@pytest.mark.parametrize("trigger", [None, "5m", 300, "0 2 * * *", Every, {"type": "every"}, []], ids=repr)
@virtual
async def test_only_a_trigger_is_a_trigger(scene, trigger):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(InvalidTrigger, match="trigger"):
            await scheduler.add_job("a", trigger)
        with pytest.raises(InvalidTrigger, match="trigger"):
            await scheduler.update_job("good", trigger=trigger)
        assert await everything(scheduler) == before


@pytest.mark.promise("H16", "H14")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Once(NAIVE),
        lambda: Every("1h", anchor=NAIVE),
        lambda: Every("1h", until=NAIVE),
        lambda: Cron("61 * * * *"),
        lambda: Cron("0 0 30 2 *"),
        lambda: Cron("0 2 * * *", tz="Mars/Olympus"),
        lambda: Every("1h", until=at(-1)),
        lambda: Every("1h", max_runs=0),
        lambda: Interval("5m", jitter=11),
        lambda: After(""),
        lambda: After("a", on="sometimes"),
    ],
)
@virtual
async def test_a_trigger_that_can_never_work_is_refused_on_adding(scene, make):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(ValueError, match=r"\w"):
            await scheduler.add_job("a", make())
        with pytest.raises(ValueError, match=r"\w"):
            await scheduler.update_job("good", trigger=make())
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@pytest.mark.parametrize("if_exists", ["error", "update"])
@virtual
async def test_one_bad_job_among_many_stores_none(scene, if_exists):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("good", Every("1h"))
        before = await everything(scheduler)
        many = [NewJob(f"j{n}", Every("1h")) for n in range(50)]
        for bad in (NewJob("j7", Every("1h")), NewJob("", Every("1h")), NewJob("c", After("c"))):
            with pytest.raises((JobExists, InvalidJob)):
                await scheduler.add_jobs([*many, bad], if_exists=if_exists)
            assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@virtual
async def test_odd_updates_are_refused_and_change_nothing(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        before = await everything(scheduler)
        for changes in ({"enabled": "no"}, {"enabled": None}, {"enabled": 0}, {"kind": "command"},
                        {"status": "idle"}, {"source": "nowhere"}):  # fmt: skip
            with pytest.raises(SchedulerError):
                await scheduler.update_job("a", **changes)
            assert await everything(scheduler) == before, changes


@pytest.mark.promise("H16")
@virtual
async def test_odd_questions_are_answered_with_a_sentence(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        with pytest.raises(SchedulerError):
            await scheduler.get_run_stats("a", since=NAIVE)
        for limit in (-1, "5", 1.5, None):
            with pytest.raises(SchedulerError, match="limit"):
                await scheduler.get_run_log("a", limit=limit)
        for limit in (-1, "5", 1.5):
            with pytest.raises(SchedulerError, match="limit"):
                await scheduler.list_jobs(limit=limit)
        with pytest.raises(SchedulerError):
            await scheduler.get_run_log("a", before="yesterday")
        with pytest.raises(SchedulerError):
            scheduler.on_job_due("job", "not a function")
        with pytest.raises(SchedulerError):
            scheduler.on_job_due("", scene.handle)


@pytest.mark.promise("H16")
@pytest.mark.parametrize("ref", [5, None, b"a", ["a"], "a\0", "\ud800"])
@virtual
async def test_what_can_be_no_name_is_not_found(scene, ref):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        before = await everything(scheduler)
        assert (await scheduler.get_job(ref), await scheduler.get_run(ref)) == (None, None)
        questions = [scheduler.get_run_stats, scheduler.explain, scheduler.run_job, scheduler.remove_job]
        questions += [scheduler.pause_job, scheduler.resume_job, scheduler.update_job]
        questions += [scheduler.get_run_log] if ref is not None else []  # without a job: all runs
        for ask in questions:
            with pytest.raises(JobNotFound, match="There is no job"):
                await ask(ref)
        assert await everything(scheduler) == before


@pytest.mark.promise("H16")
@virtual
async def test_what_is_no_job_or_no_note_is_refused_with_what_is_expected(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        before = await everything(scheduler)
        for wrong in ([1], "ab", None, [NewJob("b", Every("1h")), "c"]):
            with pytest.raises(InvalidJob, match="add_jobs takes a list of NewJob"):
                await scheduler.add_jobs(wrong)
        with pytest.raises(InvalidJob, match="A note is a text, not 5"):
            await scheduler.pause_job("a", note=5)
        assert await everything(scheduler) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retry": 1_000_000}, "retry is a whole number from 0 to 100, not 1000000."),
        ({"retry": {"times": 101, "delays": ["1m"]}}, "retry.times is a whole number from 0 to 100, not 101."),
        ({"retry": ["1m"] * 101}, "retry has 100 entries at most, not 101."),
        ({"backoff": ["1m"] * 101}, "backoff has 100 entries at most, not 101."),
        ({"labels": [str(number) for number in range(101)]}, "labels has 100 entries at most, not 101."),
        ({"labels": ["x" * 201]}, "labels: a label has 200 characters at most."),
        ({"lanes": {str(number): 1 for number in range(101)}}, "lanes has 100 entries at most, not 101."),
    ],
)
@virtual
async def test_a_list_that_is_too_long_is_refused_with_how_long_it_may_be(scene, options, said):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        before = await everything(scheduler)
        with pytest.raises(InvalidJob) as refused:
            await scheduler.add_job("b", Every("1h"), **options)
        assert str(refused.value) == said
        with pytest.raises(InvalidJob):
            await scheduler.update_job("a", **options)
        assert await everything(scheduler) == before


@pytest.mark.parametrize("delays", ["30s", 2, None, {"30s": 1}], ids=str)
def test_delays_of_a_retry_are_a_list(delays):
    with pytest.raises(InvalidJob, match=r"retry\.delays is a list of delays"):
        read_options({"retry": {"delays": delays}})


@virtual
async def test_too_many_except_dates_and_too_long_a_note_are_refused(scene):
    days = [(at(0) + timedelta(days=number)).date() for number in range(1001)]
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", except_dates=days[:1000]))
        before = await everything(scheduler)
        with pytest.raises(InvalidTrigger, match="1000 except dates at most, not 1001"):
            await scheduler.add_job("b", Every("1h", except_dates=days))
        with pytest.raises(InvalidTrigger, match="1000 except dates at most"):
            await scheduler.update_job("a", trigger=Every("1h", except_dates=days))
        with pytest.raises(InvalidJob, match="A note has 2000 characters at most, not 2001"):
            await scheduler.pause_job("a", "x" * 2001)
        assert await everything(scheduler) == before
