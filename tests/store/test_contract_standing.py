"""What every store promises about how things stand: what waits, what is late, what is open, what was tried."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, alert, job, run
from wakeful.store.records import NodeRow, SkipRow
from wakeful.store.troubles import Troubles


def test_jobs_of_hidden_kinds_are_not_seen(store):
    assert store.read(lambda tx: tx.jobs.any_shown()) is False
    store.add(job(1))
    assert store.read(lambda tx: (tx.jobs.any_shown(), tx.jobs.any_shown(("work",)))) == (True, False)


def test_jobs_that_are_due_for_long_are_listed_and_counted_by_time(store):
    store.add(job(1, due_at=NOW - 5), job(2, due_at=NOW - 10), job(3, due_at=NOW + 10), job(4))
    found = store.read(lambda tx: tx.jobs.late(NOW, (), 9))
    assert found == [(2, "job-2", NOW - 10), (1, "job-1", NOW - 5)]
    assert store.read(lambda tx: (tx.jobs.late_count(NOW, ()), tx.jobs.late_count(NOW, ("work",)))) == (2, 0)
    assert len(store.read(lambda tx: tx.jobs.late(NOW, (), 1))) == 1
    assert store.read(lambda tx: tx.jobs.oldest_alarm()) == NOW - 10


def test_of_what_is_due_those_that_were_refused_for_a_reason_since_can_be_left_out(store):
    store.add(job(1, due_at=NOW - 5), job(2, due_at=NOW - 10), job(3, due_at=NOW - 20), job(4, due_at=NOW - 7))
    skips = [(1, "draining", 1, NOW - 5), (2, "draining", 1, NOW - 11), (4, "held", 1, NOW), (4, "draining", 0, NOW)]
    store.write(lambda tx: tx.skips.count([SkipRow(*one, None) for one in skips]))
    found = store.read(lambda tx: tx.jobs.late(NOW, (), 9, after=NOW - 20, but="draining"))
    assert [job_id for job_id, _, _ in found] == [2]
    assert store.read(lambda tx: tx.skips.latest([1, 2, 3, 4])) == {1: "draining", 2: "draining", 4: "held"}
    assert [skip.reason for skip in store.read(lambda tx: tx.skips.of(4))] == ["held"]


def test_what_jobs_wait_for_is_counted_with_the_first_that_came(store):
    store.add(job(1, parked="gpu", ready_at=NOW - 5), job(2, parked="gpu", ready_at=NOW), job(3))
    assert store.read(lambda tx: (tx.jobs.lines(), tx.jobs.lines(("work",)))) == ([("gpu", 2, NOW - 5)], [])


def test_a_state_and_a_fact_are_read_as_they_are(store):
    pair = job(1, due_at=NOW)
    store.add(pair)
    store.write(lambda tx: tx.facts.put({"alive_at": NOW}))
    assert store.read(lambda tx: (tx.jobs.state_of(1), tx.jobs.state_of(2))) == (pair[1], None)
    assert store.read(lambda tx: (tx.facts.get("alive_at"), tx.facts.get("nothing"))) == (str(NOW), None)


def test_jobs_that_have_started_since_or_are_stopped_are_not_waited_for(store):
    store.add(job(1), job(2, last_run_at=NOW + 1), job(3, last_run_at=NOW - 1), job(4, paused=1), job(5, enabled=0))
    assert store.read(lambda tx: sorted(tx.jobs.not_started_since([1, 2, 3, 4, 5, 6], NOW))) == [1, 3]


def test_open_alerts_are_counted_by_whether_a_person_has_seen_them(store):
    store.write(lambda tx: [tx.alerts.open(alert(n, f"failing:{n}", opened_at=NOW + n)) for n in (1, 2, 3)])
    store.write(lambda tx: tx.alerts.open(alert(4, "approval:4", kind="approval", opened_at=NOW + 9)))
    store.write(lambda tx: tx.alerts.ack(3, NOW + 20))
    assert store.read(lambda tx: tx.alerts.count_awaited("approval")) == (2, 1)
    assert store.read(lambda tx: tx.alerts.newest_awaited("approval")).id == 2
    assert [found.id for found in store.read(lambda tx: tx.alerts.awaited("approval", limit=5))] == [1, 2]
    assert [found.id for found in store.read(lambda tx: tx.alerts.awaited("approval", limit=1))] == [1]
    assert store.write(lambda tx: tx.alerts.unack(3, NOW + 19)) is False
    assert store.write(lambda tx: tx.alerts.unack(3, NOW + 20)) is True
    assert store.read(lambda tx: tx.alerts.count_awaited("approval")) == (3, 0)


def test_an_alert_is_opened_again_unless_there_is_a_newer_one(store):
    store.write(lambda tx: tx.alerts.open(alert(1, "failing:1")))
    assert store.write(lambda tx: tx.alerts.reopen(1)) is False
    store.write(lambda tx: tx.alerts.close("failing:1", NOW + 1))
    assert store.write(lambda tx: tx.alerts.reopen(1)) is True
    store.write(lambda tx: tx.alerts.close("failing:1", NOW + 2))
    store.write(lambda tx: tx.alerts.open(alert(2, "failing:1")))
    assert store.write(lambda tx: tx.alerts.reopen(1)) is False


def test_attempts_that_did_not_fail_and_runs_of_late_are_counted(store):
    store.add(job(1))
    store.add_runs(run(1, outcome="cancelled"), run(2, outcome="error", retry_of=1, attempt=2), run(3, retry_of=2))
    assert store.read(lambda tx: tx.runs.attempts_without_failure(3)) == 1
    assert store.read(lambda tx: tx.runs.started_count(1, 9)) == (2, 3)
    assert store.read(lambda tx: tx.runs.started_count(2, 9)) == (1, 2)
    assert store.read(lambda tx: tx.runs.started_count(1, 9, ("work",))) == (0, 3)
    counted = [(1, 9, ()), (3, 9, ()), (1, 0, ()), (1, 9, ("work",))]
    assert [store.read(lambda tx, c=one: tx.of(Troubles).failed_count(*c)) for one in counted] == [1, 0, 0, 0]


def test_a_hold_is_read_by_every_node_that_lives_and_by_those_that_join(store):
    def join(tx, number):
        tx.members.join(NodeRow(number, f"node-{number}", NOW, NOW, None, "{}"))

    store.write(lambda tx: [join(tx, number) for number in (1, 2)])
    store.write(lambda tx: tx.members.leave(2, NOW))
    assert store.write(lambda tx: (tx.nodes.held(), tx.members.standing(1))) == (None, (False, 0, False))
    store.write(lambda tx: tx.nodes.hold('{"by": "ada"}'))
    store.write(lambda tx: join(tx, 3))
    assert store.read(lambda tx: tx.nodes.held()) == '{"by": "ada"}'
    assert store.write(lambda tx: [tx.members.standing(number) for number in (1, 2, 3)]) == [
        (False, 1, False), (None, None, False), (False, 1, False),
    ]  # fmt: skip
    store.write(lambda tx: tx.nodes.hold('{"by": "ada", "messages": true}'))
    assert store.write(lambda tx: [tx.members.standing(1), tx.members.standing(3)]) == [
        (False, 2, False),
        (False, 2, False),
    ]
    store.write(lambda tx: tx.nodes.hold(None))
    assert store.write(lambda tx: (tx.nodes.held(), tx.members.standing(3))) == (None, (False, 0, False))


@pytest.mark.parametrize("crowd", [0, 40])
def test_a_node_is_given_its_standing_and_what_is_due_if_it_may_claim(store, crowd):
    def due_for(node_id, *, limit=2, parked=True):
        def work(tx):
            standing, due = tx.jobs.due_for(node_id, NOW, limit, parked=parked)
            return tuple(standing), [state.job_id for _, state in due]

        return store.write(work)

    for number in (1, 2, 3):
        store.write(lambda tx, n=number: tx.members.join(NodeRow(n, f"node-{n}", NOW, NOW, None, "{}")))
    store.write(lambda tx: (tx.nodes.drain(2, drain=True), tx.members.leave(3, NOW)))
    store.write(lambda tx: tx.nodes.hold('{"by": "ada"}'))
    store.add(*[job(number, due_at=NOW) for number in range(101, 101 + crowd)])
    assert len(due_for(1, limit=40)[1]) == crowd  # and the next question is asked as after a crowd
    store.add(*[job(number, due_at=NOW - 5) for number in (1, 2)])
    assert due_for(1) == ((False, 1, False), [1, 2])
    assert due_for(2) == ((True, 1, False), [])
    assert due_for(3) == ((None, None, False), [])
    store.add(job(3, parked="lane", ready_at=NOW))
    assert due_for(1) == ((False, 1, True), [1, 2])
    assert due_for(1, parked=False) == ((False, 1, False), [1, 2])
