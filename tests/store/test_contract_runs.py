"""What every store promises about runs."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, end, job, run
from wakeful.errors import StoreError
from wakeful.store.records import Finish, Given, NodeRow, RunDetails


def ids(runs):
    return [found.id for found in runs]


def test_a_run_comes_back_as_it_was_given(store):
    given = run(
        2**62 + 1, 2**61, slot=NOW, attempt=3, retry_of=9, caused_by=8, phase="prepared", lanes='["a"]', cancel=1
    )
    store.add_runs(given)
    assert store.read(lambda tx: tx.runs.get(given.id)) == given
    assert store.read(lambda tx: tx.runs.get(1)) is None


def test_a_recovery_leads_back_to_what_was_cut_off_first(store):
    store.add_runs(run(1, reason="manual"), run(2, reason="recovery", retry_of=1, attempt=2))
    store.add_runs(run(3, reason="recovery", retry_of=2, attempt=3), run(4, reason="retry", retry_of=3, attempt=4))
    store.add_runs(run(9, reason="recovery", retry_of=8, attempt=2))  # what it recovers is no longer on record
    for given, first in ((1, 1), (3, 1), (4, 4), (9, 9)):
        assert store.read(lambda tx, given=given: tx.runs.recovered(tx.runs.get(given))).id == first


# -- what can never be recorded twice ---------------------------------------------------------------------------------


@pytest.mark.promise("H2")
@pytest.mark.parametrize(
    "second",
    [
        run(2, slot=NOW),
        run(2, slot=NOW, reason="schedule", outcome="success"),
        run(2, slot=NOW + 1, attempt=2, retry_of=77),
        run(1, job_id=5),
    ],
    ids=["slot", "slot in another state", "retry of the same run", "id"],
)
def test_a_slot_an_attempt_and_a_retry_are_made_once(store, second):
    store.add_runs(run(1, slot=NOW, retry_of=77))
    with pytest.raises(StoreError):
        store.add_runs(run(9), second)
    assert ids(store.read(lambda tx: tx.runs.all_open())) == [1]


def test_another_attempt_another_slot_another_job_and_runs_without_a_slot_are_welcome(store):
    store.add_runs(run(1, slot=NOW), run(2, slot=NOW, attempt=2, retry_of=1), run(3, slot=NOW + 1))
    store.add_runs(run(4, job_id=2, slot=NOW), run(5), run(6), run(7, attempt=2, retry_of=2))
    assert ids(store.read(lambda tx: tx.runs.all_open())) == [1, 2, 3, 4, 5, 6, 7]


def test_whether_a_slot_was_run_is_known(store):
    store.add_runs(run(1, slot=NOW, outcome="error"), run(2))
    asked = [(1, NOW), (1, NOW + 1), (2, NOW)]
    assert store.read(lambda tx: [tx.runs.has_slot(*each) for each in asked]) == [True, False, False]


def test_slots_with_two_successes_of_runs_that_started_by_themselves_are_counted(store):
    done = {"status": "done", "outcome": "success", "finished_at": NOW, "reason": "schedule"}
    again = {**done, "attempt": 2, "reason": "recovery"}
    store.add_runs(run(11, slot=NOW, **done), run(12, slot=NOW, retry_of=11, **again))
    store.add_runs(run(13, slot=NOW + 1, **{**done, "outcome": "crashed"}), run(14, slot=NOW + 1, retry_of=13, **again))
    store.add_runs(run(15, slot=NOW + 2, **done), run(16, slot=NOW + 2, retry_of=15, **{**again, "reason": "manual"}))
    by_itself = ("schedule", "recovery")
    assert store.read(lambda tx: [tx.runs.settled_twice(first, by_itself) for first in (1, 12)]) == [1, 0]


@pytest.mark.parametrize(
    "broken",
    [
        run(1, status="done"),
        run(1, status="done", finished_at=NOW),
        run(1, status="active", finished_at=NOW),
        run(1, status="waiting", outcome="success"),
        run(1, status="sleeping"),
        run(1, outcome="splendid"),
    ],
    ids=["no end", "no outcome", "an end too soon", "an outcome too soon", "unknown state", "unknown outcome"],
)
def test_a_row_that_contradicts_itself_is_refused_by_the_schema(store, broken):
    if broken.status == "waiting":
        broken = broken._replace(finished_at=None)
    with pytest.raises(StoreError):
        store.add_runs(broken)
    assert store.read(lambda tx: tx.runs.get(1)) is None


# -- the life of a run ------------------------------------------------------------------------------------------------


def test_a_queued_run_becomes_active_with_its_node(store):
    store.add_runs(run(1), run(2))
    active = run(1, status="active", started_at=NOW + 1, node=4, lanes='["a"]')
    store.write(lambda tx: tx.runs.activate([active]))
    assert store.read(lambda tx: (tx.runs.get(1), tx.runs.get(2))) == (active, run(2))


def test_a_finished_run_is_done_and_a_waiting_one_is_not(store):
    store.add_runs(run(1, status="active", started_at=NOW, lanes='["a"]'), run(2, status="active", started_at=NOW))
    store.write(lambda tx: tx.runs.finish([end(1, "error"), Finish(2, "waiting", None, NOW, None, None)]))
    done, waiting = store.read(lambda tx: (tx.runs.get(1), tx.runs.get(2)))
    assert (done.status, done.outcome, done.finished_at, done.lanes) == ("done", "error", NOW + 10, None)
    assert (waiting.status, waiting.outcome, waiting.finished_at) == ("waiting", None, None)
    assert ids(store.read(lambda tx: tx.runs.all_open())) == [2]


def test_the_runs_that_wait_for_a_person_are_listed_separately(store):
    store.add_runs(run(1, status="waiting", phase="approval"), run(2, status="waiting"), run(3, status="active"))
    store.add_runs(run(4, phase="approval", outcome="cancelled"))
    assert store.read(lambda tx: tx.runs.asking([1, 2, 3, 4, 5])) == {1}
    assert store.read(lambda tx: tx.runs.asking([])) == set()


def test_open_runs_are_found_oldest_first(store):
    store.add_runs(run(3, status="waiting"), run(1, status="active"), run(2, outcome="success"), run(4, job_id=2))
    assert ids(store.read(lambda tx: tx.runs.open(1))) == [1, 3]
    assert ids(store.read(lambda tx: tx.runs.all_open())) == [1, 3, 4]
    assert store.read(lambda tx: tx.runs.open(3)) == []


def test_what_a_node_holds_is_found(store):
    store.add_runs(run(4, status="active", node=1), run(2, status="active", node=2), run(3, status="waiting", node=1))
    store.add_runs(run(1, status="active", node=3), run(5, node=1), run(6, node=1, outcome="success"))
    assert ids(store.read(lambda tx: tx.runs.of_nodes([1, 2]))) == [2, 4]
    assert store.read(lambda tx: tx.runs.of_nodes([])) == []


def test_what_a_node_that_left_still_held_is_an_orphan_until_another_adopts_it(store):
    store.write(lambda tx: [tx.members.join(NodeRow(n, f"{n}", NOW, NOW, None, "{}")) for n in (1, 2)])
    store.write(lambda tx: tx.members.leave(2, NOW))
    store.add_runs(run(1, status="active", node=1), run(2, status="active", node=2), run(3, status="active", node=9))
    store.add_runs(run(4, status="waiting", node=2), run(5, outcome="success", node=2), run(6))
    assert ids(store.read(lambda tx: tx.runs.orphans())) == [2, 3]
    store.write(lambda tx: tx.runs.adopt([2, 3], 1))
    assert store.read(lambda tx: tx.runs.orphans()) == []
    assert ids(store.read(lambda tx: tx.runs.of_nodes([1]))) == [1, 2, 3]


def test_only_a_run_in_progress_can_be_asked_to_end(store):
    store.add_runs(run(3, status="active"), run(1, status="active"), run(2), run(4, outcome="success"))
    store.write(lambda tx: [tx.runs.ask_cancel(number) for number in (1, 2, 3, 4, 5)])
    assert store.read(lambda tx: tx.runs.to_cancel()) == [1, 3]
    assert store.read(lambda tx: tx.runs.get(4)).cancel == 0


def test_only_an_active_run_can_go_on_past_its_end(store):
    store.write(lambda tx: tx.runs.add([run(1, status="active"), run(2, 2, status="queued")]))
    store.write(lambda tx: tx.runs.add([run(3, 3, status="active")]))
    store.write(lambda tx: tx.runs.finish([end(3)]))
    assert [store.write(lambda tx, n=n: tx.runs.goes_on(n, "timeout")) for n in (1, 2, 3, 4)] == [True, *[False] * 3]
    assert [store.read(lambda tx, n=n: tx.runs.get(n)).phase for n in (1, 2, 3)] == ["timeout", None, None]


def test_only_a_queued_run_can_be_moved(store):
    store.add_runs(run(1), run(2, status="active"))
    store.write(lambda tx: [tx.runs.reschedule(number, NOW + 99) for number in (1, 2)])
    assert store.read(lambda tx: [tx.runs.get(number).due_at for number in (1, 2)]) == [NOW + 99, NOW]


def test_the_run_that_tried_again_is_found(store):
    store.add_runs(run(1, outcome="error"), run(2, attempt=2, retry_of=1))
    assert store.read(lambda tx: [tx.runs.successor(number) for number in (1, 2)]) == [2, None]


# -- details ----------------------------------------------------------------------------------------------------------


def test_details_are_added_to_and_never_taken_away(store):
    store.write(lambda tx: tx.runs.detail([RunDetails(1, payload='{"a":1}', output='"half"'), RunDetails(2)]))
    store.write(lambda tx: tx.runs.detail([RunDetails(1, output='"whole"', error="late"), RunDetails(3, usage="{}")]))
    assert store.read(lambda tx: tx.runs.details(1)) == RunDetails(1, '{"a":1}', '"whole"', None, "late")
    assert store.read(lambda tx: tx.runs.details(9)) is None
    found = store.read(lambda tx: tx.runs.details_of([1, 3, 9]))
    assert {number: details.usage for number, details in found.items()} == {1: None, 3: "{}"}


def test_a_further_attempt_is_made_with_what_the_first_was_given_and_nothing_else(store):
    store.write(lambda tx: tx.runs.detail([RunDetails(1, payload='"given"', error="failed"), RunDetails(2, error="x")]))
    store.write(lambda tx: (tx.runs.inherit(11, 1), tx.runs.inherit(12, 2), tx.runs.inherit(13, 3)))
    assert store.read(lambda tx: tx.runs.details_of([11, 12, 13])) == {11: RunDetails(11, '"given"')}


def test_a_long_text_is_kept_to_the_last_letter(store):
    long = "ä\u20ac\U0001f319" * 200_000
    store.write(lambda tx: tx.runs.detail([RunDetails(1, output=long)]))
    assert store.read(lambda tx: tx.runs.details(1)).output == long
    assert store.read(lambda tx: tx.runs.details_of([1]))[1].output == long


# -- history ----------------------------------------------------------------------------------------------------------


def test_the_log_has_the_newest_first_in_pages(store):
    store.add_runs(*(run(n, job_id=n % 2, outcome="success") for n in range(1, 9)), run(9, job_id=1))
    assert ids(store.read(lambda tx: tx.runs.log(None, 3))) == [9, 8, 7]
    assert ids(store.read(lambda tx: tx.runs.log(None, 3, before=7))) == [6, 5, 4]
    assert ids(store.read(lambda tx: tx.runs.log(1, 10))) == [9, 7, 5, 3, 1]
    assert ids(store.read(lambda tx: tx.runs.log(1, 10, before=7, status="done"))) == [5, 3, 1]
    assert ids(store.read(lambda tx: tx.runs.log(None, 10, status="queued"))) == [9]


def test_durations_are_of_runs_that_ended_in_time(store):
    store.add_runs(
        run(1, outcome="success", started_at=NOW, finished_at=NOW + 7),
        run(2, outcome="cancelled", started_at=None, finished_at=NOW + 8),
        run(3, outcome="error", started_at=NOW, finished_at=NOW + 6),
        run(4, job_id=2, outcome="error"),
        run(5),
    )
    assert store.read(lambda tx: tx.runs.durations(1, NOW + 7)) == [("success", 7), ("cancelled", None)]


# -- what may be deleted ----------------------------------------------------------------------------------------------


def test_old_runs_go_but_never_an_open_one_a_jobs_last_or_what_an_open_one_continues(store):
    store.add(job(1, last_run_id=6), job(2, last_run_id=3))
    store.add_runs(
        run(1, outcome="success"),
        run(2, status="waiting"),
        run(3, job_id=2, outcome="error"),
        run(4, outcome="error"),
        run(5, attempt=2, retry_of=4),
        run(6, outcome="success"),
        run(7, outcome="success"),
        run(8, outcome="success"),
    )
    store.write(lambda tx: tx.runs.detail([RunDetails(1, error="x"), RunDetails(4, error="x")]))
    old, cursor = store.read(lambda tx: tx.runs.older(8, 0, 100))
    assert (ids(old), cursor) == ([1, 7], 0)
    store.write(lambda tx: tx.runs.delete(ids(old)))
    assert ids(store.read(lambda tx: tx.runs.log(None, 100))) == [8, 6, 5, 4, 3, 2]
    assert list(store.read(lambda tx: tx.runs.details_of([1, 4]))) == [4]


def test_pruning_by_age_goes_on_where_it_stopped(store):
    store.add_runs(*(run(n, outcome="success") for n in range(1, 8)))
    cursor, bites = 0, []
    while True:
        old, cursor = store.read(lambda tx: tx.runs.older(7, cursor, 4))  # noqa: B023
        store.write(lambda tx: tx.runs.delete(ids(old)))  # noqa: B023
        bites.append(ids(old))
        if cursor == 0:
            break
    assert bites == [[1, 2, 3, 4], [5, 6]]


def test_the_newest_runs_of_a_job_are_kept_and_an_open_chain_beside_them(store):
    store.add_runs(
        run(1, outcome="error"),
        run(2, attempt=2, retry_of=1),
        *(run(n, outcome="success") for n in range(3, 8)),
        run(8, job_id=2, outcome="success"),
        run(9, status="active"),
    )
    deleted = []
    while bite := ids(store.read(lambda tx: tx.runs.beyond(1, 2, 2))):
        store.write(lambda tx: tx.runs.delete(bite))
        deleted += bite
    assert sorted(deleted) == [3, 4, 5]
    assert ids(store.read(lambda tx: tx.runs.log(None, 100))) == [9, 8, 7, 6, 2, 1]


def test_the_runs_of_a_job_before_an_id_are_found_and_an_open_chain_is_left_out(store):
    store.add_runs(
        run(1, outcome="error"),
        run(2, attempt=2, retry_of=1),
        *(run(n, outcome="success") for n in range(3, 7)),
        run(7, job_id=2, outcome="success"),
    )
    assert ids(store.read(lambda tx: tx.runs.older_of(1, 6, 9))) == [3, 4, 5]
    assert ids(store.read(lambda tx: tx.runs.older_of(1, 6, 2))) == [3, 4]
    assert store.read(lambda tx: [tx.runs.open_below(before) for before in (2, 3, 9)]) == [set(), {2}, {2}]


def test_a_forgotten_jobs_runs_are_deleted_in_bites(store):
    store.add_runs(*(run(n, outcome="success") for n in range(1, 6)), run(6, job_id=2))
    store.write(lambda tx: tx.runs.detail([RunDetails(1, error="x"), RunDetails(6, error="y")]))
    assert [len(store.write(lambda tx: tx.runs.prune_job(1, 3))) for _ in range(3)] == [3, 2, 0]
    assert ids(store.read(lambda tx: tx.runs.log(None, 9))) == [6]
    assert list(store.read(lambda tx: tx.runs.details_of([1, 6]))) == [6]


def test_empty_batches_are_no_mistake(store):
    store.write(lambda tx: (tx.runs.add([]), tx.runs.activate([]), tx.runs.finish([]), tx.runs.detail([])))
    assert store.read(lambda tx: tx.runs.all_open()) == []


def test_with_a_jobs_open_runs_comes_what_the_one_that_goes_first_was_given(store):
    store.add_runs(
        run(1, status="active"),
        run(2, status="queued", due_at=NOW + 9),
        run(3, status="queued", due_at=NOW),
        run(4, status="queued", due_at=NOW),
        run(5, job_id=2, status="queued"),
        run(6, outcome="success"),
    )
    store.write(lambda tx: tx.runs.detail([RunDetails(3, payload="[3]", approval="{}"), RunDetails(4, payload="[4]")]))
    runs, first = store.read(lambda tx: tx.runs.open_and_first(1))
    assert runs == store.read(lambda tx: tx.runs.open(1))
    assert first == {3: Given("[3]", "{}")}
    assert store.read(lambda tx: tx.runs.open_and_first(2))[1] == {5: Given()}
    assert store.read(lambda tx: tx.runs.open_and_first(3)) == ([], {})
    assert store.read(lambda tx: [tx.runs.given(number) for number in (3, 4, 5)]) == [
        Given("[3]", "{}"), Given("[4]"), Given(),
    ]  # fmt: skip


def test_what_is_read_ahead_of_jobs_is_what_each_would_be_answered_and_not_after_a_write(store):
    store.add_runs(
        run(1, status="active"),
        run(2, status="queued", due_at=NOW + 9),
        run(3, status="queued", due_at=NOW),
        run(5, job_id=2, status="queued"),
        run(6, job_id=2, outcome="success"),
    )
    store.write(lambda tx: tx.runs.detail([RunDetails(3, payload="[3]", approval="{}")]))
    jobs = (1, 2, 3)

    def ahead(tx, write=lambda tx: None):
        tx.runs.read_ahead(jobs)
        write(tx)
        return [tx.runs.open_and_first(job) for job in jobs]

    alone = store.read(lambda tx: [tx.runs.open_and_first(job) for job in jobs])
    assert store.read(ahead) == alone
    assert [sorted(first) for _, first in alone] == [[3], [5], []]
    for number, write in enumerate(
        [
            lambda tx: tx.runs.reschedule(2, NOW - 9),
            lambda tx: tx.runs.add([run(7, job_id=3, status="queued")]),
            lambda tx: tx.runs.finish([Finish(5, "done", "success", NOW, NOW, None)]),
        ]
    ):
        found = store.write(lambda tx, write=write: ahead(tx, write))
        assert found == store.read(lambda tx: [tx.runs.open_and_first(job) for job in jobs])
        assert [sorted(first) for _, first in found] == [[[2], [5], []], [[2], [5], [7]], [[2], [], [7]]][number]


def test_rows_of_one_table_that_are_written_one_after_the_other_are_as_the_last_says(store):
    def write(tx):
        for number in (1, 2, 3):
            tx.runs.add([run(number, job_id=number, status="queued")])
        for number, node in ((1, 7), (2, 8), (1, 9), (3, 7)):
            tx.runs.activate([run(number, job_id=number, status="active", node=node)])
        tx.runs.finish([Finish(2, "done", "success", NOW, NOW, None)])
        tx.runs.activate([run(3, job_id=3, status="active", node=5)])

    store.write(write)
    found = store.read(lambda tx: [tx.runs.get(number) for number in (1, 2, 3)])
    assert [(one.status, one.node) for one in found] == [("active", 9), ("done", 8), ("active", 5)]


def test_the_last_runs_of_each_job_come_newest_first(store):
    store.add_runs(
        run(1, outcome="success", started_at=NOW, finished_at=NOW + 7),
        run(2, outcome="error", started_at=NOW, finished_at=NOW + 1),
        run(3, status="active", started_at=NOW),
        run(4, job_id=2, status="queued"),
    )
    found = store.read(lambda tx: tx.runs.last_of([1, 2, 9], 2))
    assert {job_id: [(one.id, one.outcome, one.took) for one in runs] for job_id, runs in found.items()} == {
        1: [(3, None, None), (2, "error", 1)],
        2: [(4, None, None)],
    }
    many = store.read(lambda tx: tx.runs.last_of(list(range(1, 120)), 20))
    assert [one.id for one in many[1]] == [3, 2, 1]
