"""A handler takes the run, or nothing; any other is refused when it is registered, and so is a misspelt option."""

from __future__ import annotations

import functools
from datetime import UTC, datetime

import pytest

from wakeful import Every, InvalidJob, NewJob, Once, Scheduler
from wakeful.kernel.kinds import Kind
from wakeful.testing import VirtualClock, run


def two(a, b): ...


async def two_async(a, b): ...


def named(*, run): ...


class Worker:
    def work(self, a, b): ...

    async def __call__(self): ...


@pytest.mark.parametrize("handler", [two, two_async, named, Worker().work, functools.partial(two), lambda a, b: a])
def test_a_handler_with_other_arguments_is_refused_when_it_is_registered(handler):
    scheduler = Scheduler("sqlite://", clock=VirtualClock())
    with pytest.raises(InvalidJob, match=r"^The handler of 'x' must take one argument, the run, or none: .*\.$"):
        scheduler.on_job_due("x", handler)
    with pytest.raises(InvalidJob, match="the run, or none"):
        scheduler.job(Every("1h"), name="x")(handler)
    assert "x" not in scheduler.host.handled_kinds

    async def main():
        async with scheduler:
            await scheduler.start()
            assert await scheduler.list_jobs() == []

    run(main(), scheduler.clock)


def test_a_kind_whose_handler_has_other_arguments_is_refused():
    async def handle(run): ...

    with pytest.raises(InvalidJob, match="the run and a folder"):
        Scheduler("sqlite://", kinds=[Kind("x", handler=handle)])


@pytest.mark.promise("H16")
def test_handlers_without_arguments_are_called_without_the_run():
    clock, seen = VirtualClock(), []
    scheduler = Scheduler("sqlite://", clock=clock)
    past = Once(datetime(2025, 1, 1, tzinfo=UTC))

    @scheduler.job(past)
    async def without():
        seen.append("async")
        return 1

    @scheduler.job(past)
    def plain():
        seen.append("plain")
        return 2

    @scheduler.job(past)
    async def optional(run=None):
        seen.append(run.job)

    @scheduler.job(past)
    def many(*args):
        seen.append(len(args))

    scheduler.job(past, name="partial")(functools.partial(lambda a, run: seen.append((a, run.job)), "bound"))
    scheduler.job(past, name="object")(Worker())
    scheduler.job(past, name="builtin")(seen.append)

    async def main():
        async with scheduler:
            await scheduler.start()
            await clock.sleep("1m")
            assert {job.name: job.last_outcome for job in await scheduler.list_jobs()} == dict.fromkeys(
                ["without", "plain", "optional", "many", "partial", "object", "builtin"], "success"
            )
            assert [(await scheduler.get_run_log(name))[0].output for name in ("without", "plain")] == [1, 2]

    run(main(), clock)
    assert {"async", "plain", "optional", 1, ("bound", "partial")} <= set(seen)


@pytest.mark.parametrize(
    ("wrong", "right"), [("tiemout", "timeout"), ("retires", "retry"), ("paylod", "payload"), ("if_exist", "if_exists")]
)
def test_a_misspelt_option_is_refused_with_the_nearest_right_name(wrong, right):
    clock = VirtualClock()

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            await scheduler.add_job("there", Every("1h"))
            if right != "if_exists":
                with pytest.raises(InvalidJob, match=f"no option '{wrong}'. Did you mean '{right}'"):
                    await scheduler.update_job("there", **{wrong: 1})
            with pytest.raises(InvalidJob, match=f"no option '{wrong}'. Did you mean '{right}'"):
                await scheduler.add_job("a", Every("1h"), **{wrong: 1})
            with pytest.raises(InvalidJob, match=f"no option '{wrong}'. Did you mean '{right}'"):
                await scheduler.add_jobs([NewJob("a", Every("1h"), **{wrong: 1})])
            assert [job.name for job in await scheduler.list_jobs()] == ["there"]

    run(main(), clock)
