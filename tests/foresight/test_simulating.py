"""Simulations: what they say, that they repeat, and that they touch nothing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.foresight.fleets import DAY_MS, START, notes, simulated, snapshot_of
from wakeful import After, Cron, Every, InvalidSetting, NewJob, NotFound, Once
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.simulating import simulate
from wakeful.kernel.actions.holding import hold_all
from wakeful.kernel.context import Rights
from wakeful.store.interface import Transaction
from wakeful.store.records import RunDetails, RunRow
from wakeful.store.sqlite_session import SqliteSession
from wakeful.store.tables import known_tables
from wakeful.triggers import Ping

HOURLY = Cron("0 * * * *")
BERLIN = "Europe/Berlin"
START_MS = int(START.timestamp() * 1000)
LEAVES = {
    *("socket.__new__", "socket.connect", "socket.bind", "socket.sendto", "subprocess.Popen", "os.fork", "os.exec"),
    *("os.posix_spawn", "os.system", "os.mkdir", "os.remove", "os.rename", "sqlite3.connect"),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def as_data(answer):
    found, runs = answer
    return [found.head(), [run.to_dict() for run in runs], found.tail()]


def past(durations, usage=None):
    """Writes that runs of `job` took so long, in milliseconds."""

    def write(tx, context):
        job, state = tx.jobs.by_name("job")
        rows = [
            RunRow(context.new_id(), job.id, job.kind, "schedule", tx.now - 10**6 - number, 1, None, None, None, "done",
                   "success", tx.now - 10**6, tx.now - 10**6, tx.now - 10**6 + took)
            for number, took in enumerate(durations)
        ]  # fmt: skip
        tx.runs.add(rows)
        tx.runs.detail([RunDetails(row.id, usage=json.dumps(usage)) for row in rows] if usage else [])
        tx.jobs.save([state._replace(last_run_id=rows[-1].id)])

    return write


@pytest.mark.promise("X4")
def test_a_simulation_touches_nothing_outside_and_starts_nothing(monkeypatch, tmp_path):
    command = NewJob("command", Every("10m"), kind="command", payload={"argv": ["touch", str(tmp_path / "touched")]})
    http = NewJob("http", Every("10m"), kind="http", payload={"url": "http://127.0.0.1:9/"})
    loud = NewJob("loud", Every("10m"), kind="job", deliver={"to": "nowhere", "on": "any"})
    snapshot = snapshot_of(command, http, loud)
    simulated(snapshot, days=0.01)  # whatever is imported is imported by now
    seen = []

    def note(event, args):
        """Everything that leaves the process or writes a file; to read our own files is neither."""
        if watching and (event in LEAVES or (event == "open" and args[2] & WRITES)):
            seen.append((event, args))

    watching = False
    sys.addaudithook(note)
    for where, name in ((socket, "socket"), (subprocess, "Popen"), (os, "fork")):
        monkeypatch.setattr(where, name, None)
    watching = True
    found, runs = simulated(snapshot)
    watching = False
    monkeypatch.undo()
    assert {event[0] for event in seen} == {"sqlite3.connect"}
    assert {event[1] for event in seen} == {(":memory:",)}
    assert len(runs) == found.total == 3 * 143
    assert {run.outcome for run in runs} == {"success"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("X4")
def test_the_same_seed_gives_the_same_simulation_to_the_byte():
    jobs = [NewJob(f"j{number}", Every("7m", jitter=10), kind="job", retry=["30s"]) for number in range(5)]
    snapshot, fail = snapshot_of(*jobs), {"j1": 0.3}
    first = as_data(simulated(snapshot, seed=5, fail=fail))
    assert first == as_data(simulated(snapshot, seed=5, fail=fail))
    assert first != as_data(simulated(snapshot, seed=6, fail=fail))


@pytest.mark.promise("X4")
def test_runs_take_the_median_of_the_last_twenty_or_what_is_assumed_or_a_second():
    known = snapshot_of(
        NewJob("job", HOURLY, kind="job"), write=past([900_000] * 10 + [2_000] * 9 + [4_000, 6_000] * 6)
    )
    unknown = snapshot_of(NewJob("job", HOURLY, kind="job"))
    assert {run.to_dict()["duration_ms"] for run in simulated(known)[1]} == {4_000}
    assert {run.to_dict()["duration_ms"] for run in simulated(known, assume={"job": 30_000})[1]} == {30_000}
    assert {run.to_dict()["duration_ms"] for run in simulated(unknown)[1]} == {1_000}


@pytest.mark.promise("X4")
def test_the_answer_has_the_fields_of_the_contract():
    job = NewJob("job", HOURLY, kind="job", lanes={"narrow": 1})
    head, runs, tail = as_data(simulated(snapshot_of(job), assume={"job": 5_400_000}))
    assert head == {"from": "2026-06-01T06:00:00Z", "to": "2026-06-02T06:00:00Z", "seed": 1}
    assert runs[0] == {
        "job": "job", "slot": "2026-06-01T07:00:00Z", "started_at": "2026-06-01T07:00:00Z", "duration_ms": 5_400_000,
        "waited_ms": 0, "outcome": "success", "reason": "schedule",
    }  # fmt: skip
    assert list(tail) == ["jobs", "lanes", "notes", "cost", "truncated"]
    [shown] = tail["jobs"]
    assert shown == {"name": "job", "runs": 12, "skipped": {"already_running": 11}, "longest_wait_ms": 0}
    assert tail["lanes"] == [{"name": "narrow", "size": 1, "busiest": 1, "full_ms": 11 * 5_400_000 + 3_599_999 + 1}]
    assert {note["kind"] for note in tail["notes"]} == {"outlasts", "lane_full"}
    assert set(tail["notes"][0]) == {"kind", "job", "at", "text"}
    assert (tail["cost"], tail["truncated"]) == ({"expected": 0.0, "low": 0.0, "high": 0.0}, False)


@pytest.mark.promise("X4")
def test_costs_of_past_runs_are_those_of_the_simulated_ones():
    used = {"cost": 0.05, "tokens_in": 100, "tokens_out": 20}
    snapshot = snapshot_of(NewJob("job", HOURLY, kind="job"), write=past([1_000] * 5, used))
    found, runs = simulated(snapshot)
    assert len(runs) == 23
    assert found.cost.expected == pytest.approx(23 * 0.05)
    assert found.cost.low == found.cost.high == found.cost.expected  # they always cost the same


@pytest.mark.promise("X4")
def test_during_an_outage_nothing_starts_and_what_was_missed_is_caught_up_once():
    found, runs = simulated(snapshot_of(NewJob("job", Every("10m"), kind="job")), down=["10:05-12:05"])
    started = [run.started_at for run in runs]
    begins, ends = (int(datetime(2026, 6, 1, hour, 5, tzinfo=UTC).timestamp() * 1000) for hour in (10, 12))
    assert not [at for at in started if begins <= at < ends]
    [late] = [run for run in runs if run.reason == "catch_up"]
    assert late.started_at == ends
    [job] = found.jobs
    assert job.skipped == {"merged": 11}


@pytest.mark.promise("X4")
def test_a_day_of_the_future_or_the_past_can_be_simulated():
    snapshot = snapshot_of(NewJob("job", Cron("30 2 * * *", tz="Europe/Berlin"), kind="job"))
    for year in (2025, 2027):
        begins = int(datetime(year, 3, 1, tzinfo=UTC).timestamp() * 1000)
        _, runs = simulated(snapshot, days=2, begins=begins)
        assert [run.slot - begins for run in runs] == [5_400_000, 5_400_000 + 86_400_000]


@pytest.mark.promise("X4")
def test_a_clock_that_is_set_forward_makes_the_passed_times_due_once():
    _, runs = simulated(snapshot_of(NewJob("job", HOURLY, kind="job")), clock=["2026-06-01T10:30=+3h"])
    hours = [datetime.fromtimestamp(run.started_at / 1000, UTC).hour for run in runs[:5]]
    assert hours == [7, 8, 9, 10, 13]


@pytest.mark.promise("X4")
def test_a_chain_runs_after_what_it_follows():
    first, then = NewJob("first", HOURLY, kind="job"), NewJob("then", After("first"), kind="job")
    found, runs = simulated(snapshot_of(first, then), fail={"first": 1.0})
    assert {run.job for run in runs} == {"first"}
    found, runs = simulated(snapshot_of(first, then))
    assert [job.runs for job in found.jobs] == [23, 23]


@pytest.mark.promise("X4")
def test_what_is_kept_does_not_grow_with_the_simulated_time():
    snapshot = snapshot_of(*[NewJob(f"j{number}", Every("15m"), kind="job") for number in range(10)])
    worlds, kept = [], []

    async def prepare(world):
        worlds.append(world)

    def count(_):
        if len(kept) % 100 == 0:
            tables = [table.name for table in known_tables()]
            tx = Transaction(SqliteSession(worlds[0]._store._writer), 0)
            kept.append(sum(map(tx.tables.count, tables)) + len(worlds[0]._recorder.seconds))
        else:
            kept.append(kept[-1])

    found = simulate(snapshot, SimulationRequest(8 * DAY_MS), Setup(min_interval=None), prepare=prepare, on_run=count)
    assert found.total == len(kept) == 10 * 8 * 96 - 10
    third = len(kept) // 3
    assert max(kept[2 * third :]) <= 1.1 * max(kept[third : 2 * third])


@pytest.mark.promise("X4")
def test_a_simulation_ends_early_after_as_many_runs_as_it_may_have():
    found, runs = simulated(snapshot_of(NewJob("job", HOURLY, kind="job")), most_runs=5)
    assert (len(runs), found.truncated) == (5, True)
    assert found.ends == runs[-1].ended_at


@pytest.mark.promise("X4")
def test_what_cannot_be_simulated_is_refused():
    snapshot = snapshot_of(NewJob("report", HOURLY, kind="job"))
    with pytest.raises(NotFound, match="Did you mean 'report'"):
        simulated(snapshot, assume={"reprot": 1})
    for wrong in ("25:00-26:00", "nonsense", "2026-01-01/2025-01-01", "10:00-10:00"):
        with pytest.raises(InvalidSetting):
            simulated(snapshot, down=[wrong])
    with pytest.raises(InvalidSetting):
        simulated(snapshot, clock=["now=sometimes"])
    with pytest.raises(InvalidSetting, match=r"clock is dst, or TIME=\+DURATION"):
        simulated(snapshot, clock=["later"])
    for far in (
        ["2026-06-01T10:00=-8d"],
        ["2026-06-01T10:00=-4d", "2026-06-01T11:00=+4d"],
        ["2026-06-01T10:00=+36500d"],
    ):
        with pytest.raises(InvalidSetting, match="at most 7d in all"):
            simulated(snapshot, clock=far)
    with pytest.raises(InvalidSetting, match="clock can be given 100 times at most"):
        simulated(snapshot, clock=["2026-06-01T10:00=+1s"] * 101)


@pytest.mark.promise("X4")
def test_an_outage_that_has_begun_before_the_simulation_lets_nothing_start():
    _, runs = simulated(snapshot_of(NewJob("job", Every("10m"), kind="job")), down=["05:00-08:05"])
    assert min(run.started_at for run in runs) == START_MS + 125 * 60_000


@pytest.mark.promise("X4")
def test_nothing_is_logged_of_what_did_not_happen(capsys):
    found, _ = simulated(snapshot_of(NewJob("job", HOURLY, kind="job")), fail={"job": 1.0})
    assert found.jobs[0].skipped == {"disabled": 18}
    script = (
        "from tests.foresight.test_simulating import *; "
        "simulated(snapshot_of(NewJob('job', HOURLY, kind='job')), fail={'job': 1.0})"
    )  # in a process of its own, in which a logger may be made after the simulation began
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("", "")


# -- notes


@pytest.mark.promise("X4")
def test_the_limit_of_all_runs_is_a_lane_that_may_be_full_for_long():
    jobs = [NewJob(f"j{number}", Every("10m"), kind="job") for number in range(3)]
    found, _ = simulated(snapshot_of(*jobs), Setup(min_interval=None, max_running=2), assume={"j0": 6 * 10**5})
    [lane] = found.lanes
    assert (lane.name, lane.size, lane.busiest) == ("running", 2, 2)
    busy, _ = simulated(
        snapshot_of(*jobs), Setup(min_interval=None, max_running=2), assume=dict.fromkeys(("j0", "j1"), 7_200_000)
    )
    [note] = notes(busy, "lane_full")
    assert "The lane running (size 2) is full" in note.text
    assert "Raise limits.max_running" in note.text


@pytest.mark.promise("X4")
def test_a_job_whose_first_time_is_not_yet_there_is_no_job_that_never_runs():
    async def add(world):
        await world.add_job("rare", Every("6h"), kind="job")
        await world.add_job("outside", Ping(Every("1h")), kind="monitor")
        return ["gone"]

    found, runs = simulated(snapshot_of(), prepare=add, days=0.25)
    assert runs == []
    assert {job.name: job.skipped for job in found.jobs} == {"gone": {}, "outside": {}, "rare": {}}
    assert [note.text for note in found.notes] == ["gone never runs: by then, its last time is over."]


@pytest.mark.promise("X4")
def test_a_herd_is_noted_with_what_spreads_it():
    found, _ = simulated(snapshot_of(*[NewJob(f"j{number}", HOURLY, kind="job") for number in range(30)]))
    [note] = notes(found, "herd")
    assert note.text.startswith("30 runs fall due in the same second, 2026-06-01 07:00 UTC, and 20 or more")
    assert "stagger" in note.text
    spread, _ = simulated(snapshot_of(*[NewJob(f"j{number}", HOURLY, kind="job") for number in range(19)]))
    assert notes(spread, "herd") == []


@pytest.mark.promise("X4")
def test_a_job_that_no_node_can_run_is_noted():
    found, runs = simulated(snapshot_of(NewJob("job", HOURLY, kind="job", labels=["gpu"])))
    [note] = notes(found, "never")
    assert runs == []
    assert (note.job, note.text) == (
        "job", "job never runs: no node is labelled gpu. Start a node with --labels gpu.",
    )  # fmt: skip
    labelled, _ = simulated(
        snapshot_of(NewJob("job", HOURLY, kind="job", labels=["gpu"])), Setup(labels=frozenset({"gpu"}))
    )
    assert notes(labelled, "never") == []


@pytest.mark.promise("X4")
@pytest.mark.parametrize(
    ("trigger", "start", "said"),
    [
        (Cron("30 2 * * *", tz=BERLIN), datetime(2026, 3, 28, 12, tzinfo=UTC), "it runs at 03:00 instead of 02:30"),
        (Cron("*/30 2 * * *", tz=BERLIN), datetime(2026, 10, 24, 12, tzinfo=UTC), "it runs twice at 02:00, 02:30"),
        (Cron("30 9 * * *", tz=BERLIN), datetime(2026, 3, 28, 12, tzinfo=UTC), None),
    ],
)
def test_a_change_of_the_clocks_is_noted_where_it_moves_or_doubles_a_time(trigger, start, said):
    found, _ = simulated(snapshot_of(NewJob("job", trigger, kind="job"), start=start))
    noted = notes(found, "clock")
    assert [said in note.text for note in noted] == ([True] if said else [])


@pytest.mark.promise("X4")
def test_a_schedule_that_ends_is_noted_with_when():
    until = NewJob("until", Every("1h", until=START + timedelta(hours=5)), kind="job")
    most = NewJob("most", Every("1h", max_runs=3), kind="job")
    once = NewJob("once", Once(START + timedelta(hours=1)), kind="job")
    found, _ = simulated(snapshot_of(until, most, once))
    assert {note.job: note.text for note in notes(found, "ends")} == {
        "until": "until ends at 2026-06-01 11:00 UTC, the end that it was given. Change until to continue.",
        "most": "most ends at 2026-06-01 09:00 UTC, with run 3 of the 3 that it may have. Change max_runs to continue.",
    }
    assert [note.at - START_MS for note in notes(found, "ends")] == [3 * 3_600_000, 5 * 3_600_000]


@pytest.mark.promise("X4")
def test_a_job_that_never_gets_its_turn_is_noted_with_the_reason():
    hog = NewJob("hog", Every("1h"), kind="job", timeout="7d", priority=10)
    starved = NewJob("starved", Every("90m"), kind="job", priority=-10)
    found, _ = simulated(snapshot_of(hog, starved), Setup(min_interval=None, max_running=1), assume={"hog": 6 * DAY_MS})
    [note] = notes(found, "never")
    assert note.text == (
        "starved never runs: none of its 15 times led to a run (15 at_capacity). "
        "wakeful explain says what such a reason means."
    )


@pytest.mark.promise("X4")
def test_where_everything_is_paused_one_note_says_so():
    snapshot = snapshot_of(
        *[NewJob(f"j{number}", HOURLY, kind="job") for number in range(3)],
        write=lambda tx, context: hold_all(tx, context, Rights("ada", via="cli")),
    )
    found, runs = simulated(snapshot)
    assert runs == []
    assert [(note.kind, note.job, note.text) for note in found.notes] == [
        ("never", None, "Everything is paused, so nothing starts: wakeful resume --all ends that."),
    ]


@pytest.mark.promise("X4")
def test_a_job_that_asks_for_approval_is_noted_and_keeps_no_lane_while_it_waits():
    asks = NewJob("asks", HOURLY, kind="job", approval=True, lanes={"narrow": 1})
    other = NewJob("other", Every("30m"), kind="job", lanes={"narrow": 1})
    found, runs = simulated(snapshot_of(asks, other), Setup(min_interval=None, max_running=1))
    assert [(run.outcome, run.ended_at) for run in runs if run.job == "asks"] == [(None, None)]
    assert {lane.name: (lane.busiest, lane.full_ms) for lane in found.lanes} == {
        "running": (1, 47_000), "narrow": (1, 47_000),
    }  # fmt: skip
    [note] = found.notes
    assert (note.kind, note.job, note.at) == ("approval", "asks", START_MS + 3_600_000)
    assert "first at 2026-06-01 07:00 UTC" in note.text


@pytest.mark.promise("X4")
def test_a_job_that_is_disabled_on_the_way_is_noted_with_when():
    found, _ = simulated(
        snapshot_of(NewJob("bad", HOURLY, kind="job"), NewJob("good", HOURLY, kind="job")), fail={"bad": 1.0}
    )
    [note] = found.notes
    assert (note.kind, note.job) == ("never", "bad")
    assert note.text.startswith(
        "bad is disabled at 2026-06-01 11:00:01 UTC, after 5 errors in a row, and runs no more."
    )


@pytest.mark.promise("X4")
def test_a_simulation_says_how_far_it_is_and_ends_early_with_what_happened_until_then():
    snapshot, parts, runs = snapshot_of(NewJob("job", HOURLY, kind="job")), [], []

    def watch(part):
        parts.append(part)
        return part < 0.25

    asked = SimulationRequest(4 * DAY_MS)
    found = simulate(snapshot, asked, Setup(min_interval=None), on_run=runs.append, watch=watch)
    assert found.truncated
    assert len(parts) > 50
    assert parts == sorted(parts)
    assert parts[-2] < 0.25 <= parts[-1]
    assert found.total == len(runs) == 24
    assert START_MS + DAY_MS <= found.ends < START_MS + DAY_MS + 3_600_000
