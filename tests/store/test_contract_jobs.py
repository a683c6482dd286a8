"""What every store promises about jobs."""

from __future__ import annotations

import itertools

import pytest

from tests.store.samples import NOW, OpenStore, job, run
from wakeful.errors import StoreError
from wakeful.store import listing
from wakeful.store.jobs import SETTLED_COLUMNS, STARTED_COLUMNS, STATUS_SQL, JobFilter
from wakeful.store.records import JobState


def ids(pairs):
    return [definition.id for definition, _ in pairs]


def test_a_job_comes_back_as_it_was_given(store):
    given = job(
        1,
        'Zo\u00eb\'s "nightly" \U0001f319 \\n%_',
        owner="team",
        payload='{"text":"\u4f60\u597d\\u0000"}',
        due_at=NOW + 1,
        next_at=NOW + 2,
        slot=NOW + 3,
        last_slot=2**62,
        last_error="line one\nline two\t\u2028end",
        missed=3,
        notes='["thinned"]',
    )
    store.add(given)
    assert store.read(lambda tx: tx.jobs.by_id(1)) == given
    assert store.read(lambda tx: tx.jobs.by_name(given[0].name)) == given
    assert store.read(lambda tx: tx.jobs.due(NOW + 1, 10)) == [given]
    assert store.read(lambda tx: tx.jobs.matching(JobFilter())) == [given]
    assert store.read(lambda tx: tx.jobs.definitions([1])) == {1: given[0]}
    assert store.read(lambda tx: tx.jobs.states([1])) == {1: given[1]}


def test_what_is_not_there_is_not_found(store):
    assert store.read(lambda tx: tx.jobs.by_id(1)) is None
    assert store.read(lambda tx: tx.jobs.by_name("nobody")) is None
    assert store.read(lambda tx: tx.jobs.by_name("no\nbody\0")) is None
    assert store.read(lambda tx: tx.jobs.removed_by_name("nobody")) is None
    assert store.read(lambda tx: tx.jobs.removed_by_name("no\0body")) is None
    assert store.read(lambda tx: (tx.jobs.states([1]), tx.jobs.definitions([]), tx.jobs.names(["x"]))) == ({}, {}, {})


def test_the_enabled_jobs_that_programs_declare_are_listed_by_name(store):
    store.add(job(1, "b", kind="b"), job(2, "a", kind="a"), job(3, "c", kind="c", enabled=0), job(4, "d"))
    store.add(job(5, "e", kind="e", source="cli"), job(6, "f", kind="f", removed_at=NOW))
    assert store.read(lambda tx: tx.jobs.declared()) == ["a", "b"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 511, 512, 513, 1300])
def test_a_batch_of_any_size_arrives_whole(store, count):
    store.add(*(job(number, due_at=NOW) for number in range(1, count + 1)))
    store.write(
        lambda tx: tx.jobs.save([state._replace(missed=state.job_id) for _, state in tx.jobs.due(NOW, count + 1)])
    )
    found = store.read(lambda tx: tx.jobs.states(range(1, count + 2)))
    assert {number: state.missed for number, state in found.items()} == {n: n for n in range(1, count + 1)}


# -- what is due ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("H11")
def test_due_jobs_come_oldest_alarm_first_and_in_one_order_only(store):
    store.add(job(5, due_at=NOW), job(2, due_at=NOW - 9), job(9, due_at=NOW - 9), job(1, due_at=NOW - 3))
    store.add(job(3, due_at=NOW + 1), job(4), job(6, due_at=NOW - 9, parked=None))
    assert ids(store.read(lambda tx: tx.jobs.due(NOW, 100))) == [2, 6, 9, 1, 5]
    assert ids(store.read(lambda tx: tx.jobs.due(NOW, 2))) == [2, 6]
    assert ids(store.read(lambda tx: tx.jobs.due(NOW - 10, 100))) == []


def test_the_next_alarm_is_the_earliest_of_all(store):
    assert store.read(lambda tx: tx.jobs.next_alarm()) is None
    store.add(job(1), job(2, due_at=NOW + 9), job(3, due_at=NOW + 5))
    assert store.read(lambda tx: tx.jobs.next_alarm()) == NOW + 5


def test_arming_jobs_writes_when_they_are_looked_at_and_what_waits_alone(store):
    store.add(job(1, missed=3), job(2), job(3, due_at=NOW + 50))

    def arm(tx):
        states = tx.jobs.states([1, 2])
        tx.jobs.save_armed([state._replace(due_at=NOW + 7, queued=1, missed=9) for state in states.values()])

    store.write(arm)
    found = store.read(lambda tx: tx.jobs.states([1, 2, 3]))
    assert {number: (state.due_at, state.queued, state.missed) for number, state in found.items()} == {
        1: (NOW + 7, 1, 3),
        2: (NOW + 7, 1, 0),
        3: (NOW + 50, 0, 0),
    }
    assert store.read(lambda tx: tx.jobs.next_alarm()) == NOW + 7


def test_what_another_process_arms_for_a_time_long_past_is_due_after_a_look(store, store_url, clock):
    store.add(job(1), job(2, due_at=NOW + 9))
    assert store.write(lambda tx: tx.jobs.next_alarm()) == NOW + 9
    with OpenStore(store_url, clock) as other:
        other.write(lambda tx: tx.jobs.save([tx.jobs.states([1])[1]._replace(due_at=NOW - 90_000)]))

    def look(tx):
        tx.jobs.look_below()
        return ids(tx.jobs.due(NOW, 10))

    assert store.write(look) == [1]


def test_jobs_armed_for_later_are_walked_through_by_id(store):
    store.add(*(job(n, due_at=NOW + 100 - n) for n in range(1, 6)), job(6, due_at=NOW), job(7))
    first = store.read(lambda tx: tx.jobs.ahead_of(NOW, 0, 3))
    assert ids(first) == [1, 2, 3]
    assert ids(store.read(lambda tx: tx.jobs.ahead_of(NOW, 3, 3))) == [4, 5]


def test_jobs_with_a_slot_or_a_place_in_a_line_ahead_are_among_them_though_they_have_no_alarm(store):
    store.add(job(1, next_at=NOW + 1, run_id=9), job(2, ready_at=NOW + 1, parked="press"), job(3, next_at=NOW))
    assert ids(store.read(lambda tx: tx.jobs.ahead_of(NOW, 0, 9))) == [1, 2]


def test_jobs_that_were_stored_after_a_moment_are_walked_through_by_id(store):
    store.add(
        job(1), job(2, updated_at=NOW + 1), job(3, updated_at=NOW + 1, removed_at=NOW + 1), job(4, updated_at=NOW + 2)
    )
    found = store.read(lambda tx: [tx.jobs.stored_after(NOW, after, 1) for after in (0, 2, 4)])
    assert [[definition.id for definition in part] for part in found] == [[2], [4], []]


def test_when_the_newest_job_was_added_is_known(store):
    assert store.read(lambda tx: tx.jobs.last_added(0)) == 0
    store.add(job(1, created_at=NOW + 5), job(2, created_at=NOW + 3))
    assert store.read(lambda tx: (tx.jobs.last_added(1), tx.jobs.last_added(2))) == (NOW + 3, 0)


# -- names and lists --------------------------------------------------------------------------------------------------


def test_a_name_belongs_to_one_job_until_that_is_removed(store):
    store.add(job(1, "report"))
    with pytest.raises(StoreError):
        store.add(job(2, "report"))
    assert store.read(lambda tx: tx.jobs.by_id(2)) is None
    store.write(lambda tx: tx.jobs.define(tx.jobs.by_id(1)[0]._replace(removed_at=NOW)))
    store.add(job(2, "report"))
    assert store.read(lambda tx: tx.jobs.by_name("report"))[0].id == 2
    assert store.read(lambda tx: tx.jobs.removed_by_name("report"))[0].id == 1
    assert store.read(lambda tx: tx.jobs.names(["report", "other"])) == {"report": 2}


def test_of_several_removed_jobs_the_last_one_answers_to_the_name(store):
    for number, removed_at in ((1, NOW + 5), (2, NOW + 9), (3, NOW + 9), (4, NOW)):
        store.add(job(number, "report", removed_at=removed_at))
    assert store.read(lambda tx: tx.jobs.removed_by_name("report"))[0].id == 3


def test_names_are_listed_in_the_order_of_their_letters_on_every_store(store):
    names = ["b", "B", "a", "é", "Z-1", "z 1", "10", "9", "_", "ab", "a-b", "a b", "日本", "\U0001f319", "\uffee"]
    store.add(*(job(number, name) for number, name in enumerate(names, 1)))
    pages, after = [], None
    while page := store.read(lambda tx: tx.jobs.matching(JobFilter(after=after, limit=4))):  # noqa: B023
        pages += [definition.name for definition, _ in page]
        after = pages[-1]
    assert pages == sorted(names)


def test_each_side_of_a_filter_narrows_the_list(store):
    store.add(
        job(1, kind="mail", owner="a", source="cli"),
        job(2, owner="a", source="api", run_id=7, paused=1),
        job(3, enabled=0, paused=1),
        job(4, enabled=0),
        job(5, removed_at=NOW, enabled=0),
    )
    store.write(lambda tx: tx.runs.add([run(7, 2)]))

    def found(**wanted):
        return ids(store.read(lambda tx: tx.jobs.matching(JobFilter(**wanted))))

    assert found() == [1, 2, 3, 4]
    assert found(kind="mail") == found(source="cli") == [1]
    assert found(owner="a") == [1, 2]
    assert [found(status=status) for status in ("running", "paused", "disabled", "idle")] == [[2], [3], [4], [1]]
    assert found(enabled=True) == [1, 2]
    assert found(enabled=False, limit=1) == [3]
    assert found(owner="a", status="idle", after="job-1") == []
    assert store.read(lambda tx: tx.jobs.counts()) == {"running": 1, "paused": 1, "disabled": 1, "idle": 1}
    for wanted in ({}, {"kind": "mail"}, {"owner": "a"}, {"status": "paused"}, {"enabled": False}, {"contains": "B-2"}):
        assert store.read(lambda tx: tx.jobs.count(JobFilter(**wanted))) == len(found(**wanted)), wanted  # noqa: B023
    assert store.read(lambda tx: tx.jobs.count(JobFilter(limit=1, after="job-2"))) == 4


FLAGS = list(itertools.product((0, 1), (0, 1), (None, 1), (None, NOW)))


@pytest.mark.parametrize("few", [0, 20_000], ids=["by name", "by status"])
def test_counts_and_listings_say_what_a_look_at_every_job_would(store, monkeypatch, few):
    monkeypatch.setattr(listing, "FEW", few)
    truth, active = {status: [] for status in STATUS_SQL}, []
    flags = itertools.product(FLAGS, (None, "approval"), ((None, None), (NOW, "success"), (NOW, "error"), (NOW, None)))
    for number, ((enabled, paused, run_id, removed_at), phase, (ended_at, last)) in enumerate(flags, 1):
        open_run = 1000 + number if run_id is not None else None
        ended = {"ended_at": None if enabled else ended_at, "last_outcome": last}
        pair = job(number, enabled=enabled, paused=paused, run_id=open_run, removed_at=removed_at, **ended)
        store.add(pair)
        if open_run is not None:
            active.append(run(open_run, number, phase=phase, status="waiting" if phase else "active"))
        if removed_at is None:
            status = ("waiting" if phase else "running") if run_id else "paused" if paused else "idle"
            if status == "idle" and not enabled:
                status = "done" if ended_at is not None and last == "success" else "disabled"
            truth[status].append(number)
            assert listing.status_of(pair[1], asking=phase is not None) == status
    store.write(lambda tx: tx.runs.add(active))
    found = store.read(lambda tx: {status: tx.jobs.matching(JobFilter(status=status)) for status in STATUS_SQL})
    assert {status: sorted(ids(pairs)) for status, pairs in found.items()} == truth
    counts = {status: len(numbers) for status, numbers in truth.items()}
    assert store.read(lambda tx: tx.jobs.counts()) == counts
    assert store.read(lambda tx: {status: tx.jobs.count(JobFilter(status=status)) for status in STATUS_SQL}) == counts


def test_what_starts_next_is_found_among_alarms_parked_and_running_jobs(store):
    store.add(
        *(job(number, due_at=NOW + number, next_at=NOW + number) for number in range(1, 30)),
        *(job(40 + n, parked="lane", ready_at=NOW - n, next_at=NOW - n) for n in range(3)),
        job(43, parked="other", ready_at=NOW, next_at=NOW),
        job(50, run_id=500, due_at=NOW - 50),
        job(51, run_id=501),
        job(52, run_id=502, due_at=NOW - 40, removed_at=NOW),
        job(60, paused=1),
        job(61, enabled=0),
    )
    store.write(lambda tx: tx.runs.add([run(500, 50, status="waiting"), run(501, 51), run(502, 52, status="waiting")]))
    assert sorted(ids(store.read(lambda tx: tx.jobs.soonest(2)))) == [1, 2, 3, 4, 41, 42, 43, 50, 51]
    assert store.read(lambda tx: tx.jobs.armed(100)) == 29 + 4
    assert store.read(lambda tx: tx.jobs.armed(5)) == 5


# -- saving -----------------------------------------------------------------------------------------------------------


def everything_changed(state):
    """The state with another value in every column but its job's."""
    texts = {"parked", "last_outcome", "last_error", "notes"}
    return JobState(state.job_id, *("x" if name in texts else 7 for name in JobState._fields[1:]))


@pytest.mark.parametrize(
    ("save", "columns"),
    [
        (lambda tx, state: tx.jobs.save([state]), JobState._fields),
        (lambda tx, state: tx.jobs.save_started([state]), STARTED_COLUMNS),
        (lambda tx, state: tx.jobs.save_settled([state]), SETTLED_COLUMNS),
    ],
    ids=["all of it", "a start", "an end"],
)
def test_saving_writes_what_it_says_and_leaves_the_rest(store, save, columns):
    before, neighbour = job(1), job(2)
    store.add(before, neighbour)
    wanted = everything_changed(before[1])
    store.write(lambda tx: save(tx, wanted))
    changed = before[1]._replace(**{name: getattr(wanted, name) for name in columns})
    assert store.read(lambda tx: tx.jobs.states([1, 2])) == {1: changed, 2: neighbour[1]}


def test_saving_nothing_is_no_mistake(store):
    store.add(job(1))
    store.write(lambda tx: (tx.jobs.save([]), tx.jobs.save_started([]), tx.jobs.save_settled([]), tx.jobs.add([])))
    assert store.read(lambda tx: tx.jobs.matching(JobFilter())) == [job(1)]


def test_a_forgotten_job_leaves_nothing_behind_and_its_neighbour_everything(store):
    store.add(job(1, "a"), job(2, "b"))
    store.write(lambda tx: (tx.jobs.chain("b", 1, "any"), tx.jobs.chain("a", 2, "any")))
    store.write(lambda tx: tx.jobs.forget([1]))
    assert store.read(lambda tx: (tx.jobs.by_id(1), tx.jobs.states([1]), tx.jobs.chained("b"))) == (None, {}, [])
    assert store.read(lambda tx: tx.jobs.by_id(2)) == job(2, "b")
    assert store.read(lambda tx: tx.jobs.chained("a")) == [(2, "any")]


def test_a_removed_or_finished_one_shot_job_may_be_forgotten_and_no_other(store):
    old = {"enabled": 0, "last_finished_at": NOW - 1, "ended_at": NOW - 1}
    store.add(
        job(1, trigger="once", **old),
        job(2, removed_at=NOW - 1, enabled=0, ended_at=NOW - 1),
        job(3, trigger="every", **old),
        job(4, trigger="once", enabled=1, last_finished_at=NOW - 1),
        job(5, trigger="once", enabled=0, last_finished_at=NOW, ended_at=NOW - 1),
        job(6, trigger="once", run_id=1, **old),
        job(7, trigger="once", queued=1, **old),
        job(8, removed_at=NOW - 1, enabled=0, ended_at=NOW - 1, run_id=1),
        job(9, trigger="once", **old, last_outcome="error"),
        job(10, trigger="once", enabled=0, ended_at=NOW),
        job(11, trigger="once", enabled=0, last_finished_at=NOW - 1),  # by a person
        job(12, trigger="once", **old, source="file"),
        job(13, "declared", trigger="once", **old, kind="declared"),
        job(14, trigger="once", enabled=0, ended_at=NOW - 1),  # its time was missed
    )
    start = (0, 0)
    assert store.read(lambda tx: tx.jobs.finished(NOW, start, 100, 10)) == ([1, 2, 9, 14], None)
    assert store.read(lambda tx: tx.jobs.finished(NOW, start, 100, 2)) == ([1, 2], (NOW - 1, 2))
    assert store.read(lambda tx: tx.jobs.finished(NOW, (NOW - 1, 2), 4, 10)) == ([], (NOW - 1, 7))
    assert store.read(lambda tx: tx.jobs.finished(NOW, (NOW - 1, 7), 5, 10)) == ([9, 14], (NOW - 1, 14))
