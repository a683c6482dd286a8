"""The pure rules, for any trigger, state and moment."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wakeful import Cron, Every, Interval, Once
from wakeful.kernel.rules.options import DEFAULTS, read_options, to_text
from wakeful.kernel.rules.outcome import Result
from wakeful.kernel.rules.policy import FLOOR_MS, due_slot, next_start, trigger_text
from wakeful.kernel.rules.settle import settle
from wakeful.store.records import JobDef, JobState, RunRow
from wakeful.triggers.moments import from_ms

LADDER = (30_000, 60_000, 300_000, 900_000, 3_600_000)

BASE = 1_767_225_600_000  # 2026-01-01T00:00:00Z
DAY = 86_400_000

moments = st.integers(BASE, BASE + 40 * DAY)
grids = st.builds(
    lambda ms, anchor: Every(ms / 1000, anchor=from_ms(anchor)),
    st.sampled_from([1_000, 3_000, 10_000, 60_000, 420_000, 3_600_000, DAY]),
    st.integers(BASE - 40 * DAY, BASE + 10 * DAY),
)
crons = st.sampled_from(
    [
        Cron(text, tz="UTC")
        for text in ("* * * * *", "*/7 * * * *", "0 2 * * *", "*/5 * * * * *", "0 0 1 * *", "5 4 * * 1")
    ]
)
intervals = st.builds(Interval, st.sampled_from(["1s", "30s", "5m", "1h"]))
recurring = st.one_of(grids, crons, intervals)
slotted = st.one_of(grids, crons)
outcomes = st.sampled_from(["success", "noop", "skipped", "error", "timeout", "cancelled", "unknown"])


def idle(**fields):
    empty = dict.fromkeys(JobState._fields)
    empty |= {
        "job_id": 1,
        "revision": 1,
        "enabled": 1,
        "paused": 0,
        "queued": 0,
        "errors": 0,
        "crashes": 0,
        "missed": 0,
        "counted_to": 0,
    }
    return JobState(**{**empty, "slot_runs": 0, **fields})


def job_of(trigger, **options):
    return JobDef(
        1, "a", "job", None, "code", trigger_text(trigger), "null", to_text(read_options(options)), BASE, BASE, None
    )


def run_of(slot, started, attempt=1):
    due = slot or started
    return RunRow(7, 1, "job", "schedule", slot, attempt, None, None, None, "active", None, due, started, node=1)


def settled(job, state, run, result, now):
    ids = itertools.count(1000)
    return settle(job, state, run, result, now=now, rand=0.0, new_id=lambda: next(ids))


@pytest.mark.promise("H1", "H2")
@given(trigger=slotted, now=moments, back=st.integers(0, 3 * DAY), rand=st.floats(0, 0.999))
def test_the_next_start_lies_after_now_and_never_repeats_the_last_slot(trigger, now, back, rand):
    ran = trigger.next_slot(now)
    assume(ran is not None)
    state = idle(last_slot=ran, last_run_at=ran, last_finished_at=ran)
    coming = next_start(trigger, state, max(BASE, ran - back), rand)
    if coming.slot is not None:
        assert coming.slot > ran - back
        assert coming.at >= coming.slot
        assert coming.slot != ran


@pytest.mark.promise("H1", "H3")
@given(trigger=recurring, now=moments, late=st.integers(0, 2 * DAY))
def test_slots_go_up_and_keep_the_floor(trigger, now, late):
    state, starts = idle(), []
    for _ in range(5):
        coming = next_start(trigger, state, now, 0.0)
        if coming.at is None:
            break
        now = max(now, coming.at)
        starts.append((coming.slot, now))
        state = state._replace(last_slot=coming.slot, last_run_at=now, last_finished_at=now)
    slots = [slot for slot, _ in starts]
    assert slots == sorted(set(slots))
    assert all(later - earlier >= FLOOR_MS for (_, earlier), (_, later) in itertools.pairwise(starts))


@pytest.mark.promise("H4")
@given(trigger=slotted, now=moments, offline=st.integers(0, 30 * DAY))
def test_a_late_slot_is_worth_one_run_and_all_the_others_are_counted(trigger, now, offline):
    slot = trigger.next_slot(now)
    assume(slot is not None and trigger.min_gap_ms() >= FLOOR_MS)
    later = slot + offline
    due = due_slot(trigger, DEFAULTS, idle(slot=slot, next_at=slot, due_at=slot), later)
    assert slot <= due.slot <= later
    following = trigger.next_slot(due.slot)
    assert following is None or following > later, "not the latest"
    assert due.passed + 1 == trigger.count_slots(slot - 1, later)
    assert due.reason == ("catch_up" if offline > 60_000 else "schedule")


@pytest.mark.promise("H6")
@given(trigger=recurring, now=moments, took=st.integers(0, DAY), errors=st.integers(0, 3), outcome=outcomes)
def test_settling_delays_after_errors_and_never_advances(trigger, now, took, errors, outcome):
    slot = trigger.next_slot(now)
    assume(slot is not None)
    end = slot + took
    running = idle(run_id=7, last_slot=slot, last_run_at=slot, errors=errors, slot_runs=1)
    result = Result(outcome, error="x" if outcome in ("error", "timeout") else None)
    answer = settled(job_of(trigger), running, run_of(slot, slot), result, end).state
    normal = settled(job_of(trigger), running._replace(errors=0), run_of(slot, slot), Result("success"), end).state
    assert answer.run_id is None
    assert answer.due_at == answer.next_at
    assert answer.next_at is None or answer.next_at >= max(end, answer.slot)
    if outcome in ("error", "timeout"):
        assert answer.errors == errors + 1
        assert answer.next_at == max(normal.next_at, end + LADDER[errors])
    else:
        assert answer.errors == (0 if outcome in ("success", "noop") else errors)
        assert answer.next_at == normal.next_at


@pytest.mark.promise("H7")
@given(trigger=recurring, now=moments, allowed=st.integers(1, 8), failures=st.integers(1, 10))
def test_errors_go_up_one_by_one_until_the_job_is_disabled(trigger, now, allowed, failures):
    job, state = job_of(trigger, max_errors=allowed), idle()
    for number in range(1, failures + 1):
        coming = next_start(trigger, state, now, 0.0)
        now = max(now, coming.at or now, state.next_at or now)
        state = state._replace(run_id=7, last_slot=coming.slot, last_run_at=now, slot=None, next_at=None)
        answer = settled(job, state, run_of(coming.slot, now), Result("error", error=f"e{number}"), now)
        state = answer.state
        assert state.errors == number
        assert state.last_error == f"e{number}"
        if number == allowed:
            assert (state.enabled, state.due_at, state.next_at) == (0, None, None)
            assert [alert.kind for alert in answer.alerts if alert.message is not None] == ["disabled"]
            return
        assert state.enabled
        assert state.next_at > now


@pytest.mark.promise("X9")
@given(
    trigger=slotted, now=moments, attempt=st.integers(1, 4), delays=st.lists(st.integers(1, 7200), max_size=3),
    transient=st.booleans(),
)  # fmt: skip
def test_a_retry_is_the_same_slot_one_attempt_later_and_before_the_next_slot(trigger, now, attempt, delays, transient):
    slot = trigger.next_slot(now)
    assume(slot is not None)
    job = job_of(trigger, retry=delays) if delays else job_of(trigger)
    running = idle(run_id=7, last_slot=slot, last_run_at=slot, slot_runs=1)
    result = Result("error", error="x", transient=transient)
    answer = settled(job, running, run_of(slot, slot, attempt), result, slot)
    if not answer.queue:
        assert answer.state.queued == 0
        assert answer.state.errors == 1
        return
    [again] = answer.queue
    assert (again.slot, again.attempt, again.retry_of, again.status) == (slot, attempt + 1, 7, "queued")
    assert again.due_at == slot + delays[attempt - 1] * 1000
    assert answer.state.next_at is None or again.due_at < answer.state.next_at
    assert (answer.state.queued, answer.state.errors, answer.state.due_at) == (1, 0, again.due_at)


@pytest.mark.promise("H13")
@given(now=moments, ahead=st.integers(-DAY, DAY), outcome=outcomes, took=st.integers(0, DAY))
def test_once_is_over_after_one_run_however_it_ended(now, ahead, outcome, took):
    trigger = Once(from_ms(now + ahead))
    coming = next_start(trigger, idle(), now, 0.0)
    assert (coming.slot, coming.at) == (now + ahead, max(now, now + ahead))
    running = idle(run_id=7, last_slot=coming.slot, last_run_at=coming.at, slot_runs=1)
    result = Result(outcome, error="x" if outcome in ("error", "timeout") else None)
    answer = settled(job_of(trigger), running, run_of(coming.slot, coming.at), result, coming.at + took)
    assert (answer.state.enabled, answer.state.due_at, answer.queue) == (0, None, ())
    assert answer.state.last_error == result.error
