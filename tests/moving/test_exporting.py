"""`wakeful export`, and the way back: the same jobs, states and next times, and no secret on the way."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.postgres_server import postgres_url
from wakeful import After, Cron, Every, Interval, Manual, NewJob, Once, Scheduler
from wakeful.domains.agents.agents_file import entries_of
from wakeful.moving import returning
from wakeful.moving.exporting import export
from wakeful.store.jobs import JobFilter
from wakeful.triggers import Ping

LEFT = {"run_id": None, "last_run_id": None, "queued": 0, "parked": None, "ready_at": None}
DAY = 86_400_000
NAMES = ("a", "b name", "c.d", "ü", "e-5")

triggers = st.one_of(
    st.builds(
        Cron,
        st.sampled_from(["0 9 * * 1-5", "*/7 * * * *", "30 0 9 L * *", "0 12 * * 5#2", "@daily"]),
        tz=st.sampled_from(["Europe/Berlin", "UTC", None]),
        jitter=st.sampled_from([0, 5]),
        except_dates=st.sampled_from([(), ("2027-01-01", "2027-01-02")]),
        active_hours=st.sampled_from([None, {"start": "08:00", "end": "22:00", "timezone": "Asia/Tokyo"}]),
    ),
    st.builds(
        Every,
        st.sampled_from(["30s", "90m", "7d", 12.5]),
        anchor=st.sampled_from([None, "2026-01-01T00:00:00.123Z"]),
        stagger=st.sampled_from([None, "10m"]),
        max_runs=st.sampled_from([None, 1000]),
        until=st.sampled_from([None, "2090-01-01T00:00:00Z"]),
    ),
    st.builds(Interval, st.sampled_from(["20s", "3h"])),
    st.builds(Once, st.sampled_from(["2090-12-24T18:00:00Z"])),
    st.builds(After, st.just("a"), st.sampled_from(["success", "any"])),
    st.builds(Manual),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "timeout": st.sampled_from(["5m", 0.5]),
        "retry": st.sampled_from([0, 3, ["1s", "1h"], {"times": 2, "on": "any"}]),
        "catch_up": st.sampled_from(["skip", "2h"]),
        "lanes": st.sampled_from([{"gpu": 2}, {"x y": 1, "z": 5}]),
        "labels": st.sampled_from([["gpu"]]),
        "priority": st.integers(-100, 100),
        "max_errors": st.integers(0, 9),
        "approval": st.booleans(),
    },
)
works = st.sampled_from(
    [
        ("command", {"argv": ["echo", "${HOME}", "1e3", "no"], "cwd": "/srv"}),
        ("command", {"argv": ["true"], "cwd": "/", "stdin": "a\n b\n", "env_refs": {"T": "${T}"}}),
        ("http", {"url": "https://example.org/x", "method": "POST", "body": {"n": ["${x}", None]}}),
        ("report", {"any": ["thing", 1.5]}),
        ("report", None),
    ]
)
states = st.fixed_dictionaries(
    {
        "how": st.sampled_from(["idle", "paused", "disabled", "both"]),
        "errors": st.integers(0, 7),
        "missed": st.integers(0, 9),
        "slot_runs": st.integers(0, 50),
        "last_outcome": st.sampled_from([None, "success", "error"]),
        "last_error": st.sampled_from([None, "boom\n\x1b[31m", "ü"]),
        "ago": st.sampled_from([None, 1, DAY + 7]),
    }
)


agents = st.fixed_dictionaries(
    {"runner": st.sampled_from([{"preset": "scripted", "args": ["cat"], "cwd": "/"}, {"url": "http://127.0.0.1:9"}])},
    optional={
        "heartbeat": st.sampled_from(
            [{"every": "20m"}, {"every": "1h", "active_hours": {"start": "8:00", "end": "9:00"}}]
        ),
        "schedules": st.dictionaries(
            st.sampled_from(["ask", "look"]),
            st.sampled_from(
                [
                    {"cron": "0 9 * * *", "prompt": "Look at $${HOME}."},
                    {"every": "3h", "prompt": "Tidy.", "target": "isolated", "enabled": False},
                    {"manual": True, "prompt": "Ask."},
                ]
            ),
        ),
        "max_concurrent": st.integers(1, 5),
        "budget": st.sampled_from([{"runs_per_day": 3}]),
    },
)
fleets = st.dictionaries(st.sampled_from(["ada", "bob"]), agents, max_size=2)
monitors = st.sets(st.sampled_from(["0 2 * * *", "*/30 * * * *"]))


async def fill_domains(scheduler, fleet, expected):
    """Agents as a file has them, and monitors; every second job is paused."""
    news = [entry.new for entry in entries_of(fleet, Path("/"), "UTC")]
    news += [
        NewJob(f"ping {number}", Ping(Cron(one, tz="UTC"), grace="15m"), kind="monitor")
        for number, one in enumerate(sorted(expected))
    ]
    await scheduler.add_jobs(news)
    for new in sorted(news, key=lambda one: one.name)[::2]:
        await scheduler.pause_job(new.name, "because")


async def pairs(scheduler):
    return {job.name: (job, state) for job, state in await scheduler.read(lambda tx: tx.jobs.matching(JobFilter()))}


async def fill(scheduler, jobs):
    news = [
        NewJob(name, trigger, kind=kind, payload=payload, **more) for name, trigger, (kind, payload), more, _ in jobs
    ]
    await scheduler.add_jobs(news)
    for name, *_, wanted in jobs:
        if wanted["how"] in ("paused", "both"):
            await scheduler.pause_job(name, "because")
        if wanted["how"] in ("disabled", "both"):
            await scheduler.update_job(name, enabled=False)
    found = await pairs(scheduler)
    now = scheduler.clock.now()

    def change(tx, _):
        for name, *_, wanted in jobs:
            ago = None if wanted["ago"] is None else now - wanted["ago"]
            kept = {key: value for key, value in wanted.items() if key not in ("how", "ago")}
            state = found[name][1]._replace(**kept, last_run_at=ago, last_finished_at=ago)
            tx.jobs.save([state])

    await scheduler.transact(change)


async def moved(origin, goal, folder):
    """Everything that is in one store, and in another after the way through files."""
    async with Scheduler(origin) as scheduler, Scheduler(goal) as other:
        before = await pairs(scheduler)
        await export(scheduler, folder, 0)
        done = await returning.store(other, returning.read(folder, other), "ada")
        assert [one.found.refused for one in done.batch.entries if one.entry is None] == []
        after = await pairs(other)
        again = await returning.store(other, returning.read(folder, other), "ada")
        assert again.batch.new == []
        assert await pairs(other) == after
        return before, after


def lasting(found):
    return {name: (job, state._replace(**LEFT, due_at=None)) for name, (job, state) in found.items()}


def draw_jobs():
    one = st.tuples(triggers, works, options, states)
    return st.lists(one, min_size=1, max_size=len(NAMES)).map(
        lambda found: [(name, *rest) for name, rest in zip(NAMES, found, strict=False)]
    )


def not_circular(jobs):
    return [(name, Manual() if name == "a" and isinstance(when, After) else when, *rest) for name, when, *rest in jobs]


@pytest.mark.promise("X10")
@given(draw_jobs().map(not_circular))
def test_an_export_that_is_imported_gives_the_same_jobs_states_and_next_times(jobs):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def work():
            async with Scheduler(f"sqlite:///{folder}/a.db") as scheduler:
                await fill(scheduler, jobs)
            return await moved(f"sqlite:///{folder}/a.db", f"sqlite:///{folder}/b.db", folder / "out")

        before, after = asyncio.run(work())
        assert lasting(after) == lasting(before)
        assert {name: state.due_at for name, (_, state) in after.items()} == {
            name: state.next_at if state.enabled and not state.paused else None for name, (_, state) in before.items()
        }


@pytest.mark.promise("X10")
@settings(max_examples=15)
@given(fleets, monitors)
def test_agents_and_monitors_come_back_with_their_states_and_next_times(fleet, expected):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        async def work():
            async with Scheduler(f"sqlite:///{folder}/a.db") as scheduler:
                await fill_domains(scheduler, fleet, expected)
            return await moved(f"sqlite:///{folder}/a.db", f"sqlite:///{folder}/b.db", folder / "out")

        before, after = asyncio.run(work())
        assert lasting(after) == lasting(before)
        assert {name: state.next_at for name, (_, state) in after.items()} == {
            name: state.next_at for name, (_, state) in before.items()
        }


def test_an_export_moves_from_sqlite_to_postgresql(tmp_path):
    jobs = [
        ("a", Every("90m", stagger="10m"), ("report", {"x": 1}), {"priority": 3}, _state(how="paused", errors=2)),
        ("b", Cron("0 9 * * *", tz="Europe/Berlin"), ("report", None), {}, _state(ago=DAY)),
    ]

    async def work():
        async with Scheduler(f"sqlite:///{tmp_path}/a.db") as scheduler:
            await fill(scheduler, jobs)
        return await moved(f"sqlite:///{tmp_path}/a.db", postgres_url(), tmp_path / "out")

    before, after = asyncio.run(work())
    assert lasting(after) == lasting(before)


def _state(**wanted):
    plain = {"errors": 0, "missed": 0, "slot_runs": 0, "last_outcome": None, "last_error": None, "ago": None}
    return {"how": "idle", **plain, **wanted}
