"""What lists, figures, streams and approvals ask of a store, in each dialect."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, alert, job, run
from wakeful.store.jobs import JobFilter
from wakeful.store.owners import Owned
from wakeful.store.records import NodeRow, RunDetails
from wakeful.store.runs import RunFilter


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BC", ["abc"]),
        ("%", ["10%"]),
        ("_", ["x_y"]),
        ("!", ["a!b"]),
        ("ü", ["über"]),
        ("", None),
        ("zz", []),
    ],
)
def test_jobs_are_found_by_a_part_of_their_name_word_for_word(store, text, found):
    names = ["10%", "Ab", "a!b", "abc", "x_y", "über"]
    store.write(lambda tx: tx.jobs.add([job(number, name) for number, name in enumerate(names, 1)]))
    listed = store.read(lambda tx: [one.name for one, _ in tx.jobs.matching(JobFilter(contains=text))])
    assert listed == (names if found is None else found)


def test_runs_are_found_by_what_they_are_newest_first(store):
    def fill(tx):
        tx.jobs.add([job(1, owner="ana"), job(2)])
        tx.members.join(NodeRow(9, "here", NOW, NOW, None, "{}"))
        tx.runs.add(
            [
                run(1, 1, outcome="success", node=9),
                run(2, 2, outcome="error", kind="other"),
                run(3, 1, status="waiting", phase="approval", started_at=NOW),
                run(4, 2, reason="schedule", slot=NOW),
            ]
        )

    def found(**wanted):
        return store.read(lambda tx: [one.id for one in tx.runs.matching(RunFilter(**wanted))])

    store.write(fill)
    assert found() == [4, 3, 2, 1]
    assert found(limit=2) == [4, 3]
    assert found(before_id=3) == [2, 1]
    assert found(from_id=2, before_id=4) == [3, 2]
    assert found(job_id=1) == found(owned=Owned("ana")) == [3, 1]
    assert found(kind="other") == found(outcome="error") == [2]
    assert found(status="waiting") == found(phase="approval") == [3]
    assert found(status="done") == [2, 1]
    assert found(reason="schedule") == [4]
    assert found(node="here") == [1]
    assert found(node="there") == found(owned=Owned("nobody")) == []


def test_runs_are_counted(store):
    def fill(tx):
        tx.jobs.add([job(1), job(2, due_at=NOW), job(3, due_at=NOW + 1)])
        tx.runs.add(
            [
                run(1, outcome="success", reason="schedule", due_at=NOW - 7),
                run(2, outcome="success", reason="schedule", due_at=NOW - 3),
                run(3, outcome="error"),
                run(4, status="waiting", phase="approval"),
                run(5, status="waiting"),
                run(6),
            ]
        )

    store.write(fill)
    assert store.read(lambda tx: tx.runs.outcomes(0)) == {"success": 2, "error": 1}
    assert store.read(lambda tx: tx.runs.outcomes(3)) == {"error": 1}
    assert store.read(lambda tx: tx.runs.open_counts()) == {"approval": 1, "waiting": 1, "queued": 1}
    assert store.read(lambda tx: tx.runs.lateness(0, 10)) == [3, 7]
    assert store.read(lambda tx: tx.runs.lateness(0, 1)) == [3]
    assert store.read(lambda tx: tx.jobs.overdue(NOW)) == 1


def test_a_question_keeps_its_payload_and_the_answer_goes_with_what_continues_it(store):
    store.write(lambda tx: tx.jobs.add([job(1)]))
    store.write(lambda tx: tx.runs.add([run(1), run(2), run(11), run(12), run(13)]))
    store.write(lambda tx: tx.runs.detail([RunDetails(2, payload='"given"')]))
    store.write(lambda tx: [tx.runs.ask(number, "approval", '"job\'s"', "[1]") for number in (1, 2)])
    details = store.read(lambda tx: tx.runs.details_of([1, 2]))
    assert (details[1].payload, details[2].payload) == ('"job\'s"', '"given"')
    assert store.read(lambda tx: tx.runs.get(1)).phase == "approval"
    store.write(lambda tx: tx.runs.detail([RunDetails(1, approval="[2]")]))
    store.write(lambda tx: (tx.runs.inherit(11, 1), tx.runs.inherit(12, 1, approvals=False)))
    inherited = store.read(lambda tx: tx.runs.details_of([11, 12]))
    assert (inherited[11].payload, inherited[11].approval) == ('"job\'s"', "[2]")
    assert (inherited[12].payload, inherited[12].approval) == ('"job\'s"', None)


def test_events_are_read_by_streams_and_the_range_on_record_is_known(store):
    assert store.read(lambda tx: tx.events.ids()) == (0, 0)
    for number in range(4):
        store.write(lambda tx, number=number: tx.events.emit(["run", "job"][number % 2], [str(number)]))
    oldest, newest = store.read(lambda tx: tx.events.ids())
    assert newest - oldest == 3

    def found(after, streams, limit=10):
        return store.read(lambda tx: [one.body for one in tx.events.after(after, streams, limit)])

    assert found(0, None) == ['[["0"]]', '[["1"]]', '[["2"]]', '[["3"]]']
    assert found(oldest, ["run"]) == ['[["2"]]']
    assert found(0, ["job", "run"], 1) == ['[["0"]]']
    assert found(0, ["alert"]) == []


def test_alerts_are_read_in_pages_and_seen_once(store):
    store.write(lambda tx: [tx.alerts.open(alert(number, f"k:{number}")) for number in (1, 2, 3)])
    store.write(lambda tx: tx.alerts.close("k:2", NOW))

    def found(before, limit, open_only):
        return store.read(lambda tx: [one.id for one in tx.alerts.latest(limit, before=before, open_only=open_only)])

    assert found(None, 2, open_only=False) == [3, 2]
    assert found(2, 2, open_only=False) == [1]
    assert found(None, 9, open_only=True) == [3, 1]
    assert store.write(lambda tx: tx.alerts.ack(1, NOW + 1)) is True
    assert store.write(lambda tx: tx.alerts.ack(1, NOW + 2)) is False
    assert store.read(lambda tx: tx.alerts.get(1)).acked_at == NOW + 1
    assert store.read(lambda tx: tx.alerts.get(9)) is None


def test_jobs_are_counted_up_to_a_bound_and_found_by_kind(store):
    def fill(tx):
        tx.jobs.add([job(1), job(2), job(3, kind="other")])

    store.write(fill)
    assert store.read(lambda tx: tx.jobs.count_up_to(JobFilter(), 10)) == 3
    assert store.read(lambda tx: tx.jobs.count_up_to(JobFilter(), 2)) == 2
    kinds = store.read(lambda tx: tx.jobs.kinds())
    assert kinds[3] == "other"
    assert kinds.keys() == {1, 2, 3}
    assert [one.id for one in store.read(lambda tx: tx.jobs.of_kinds(["other"]))] == [3]
    assert store.read(lambda tx: tx.jobs.of_kinds([])) == []


def test_what_the_last_runs_used_is_read_with_them(store):
    def fill(tx):
        tx.jobs.add([job(1)])
        tx.runs.add(
            [
                run(1, outcome="success", started_at=NOW, finished_at=NOW + 7),
                run(2, outcome="error", started_at=NOW, finished_at=NOW + 3),
                run(3, status="active", started_at=NOW),
            ]
        )
        tx.runs.detail([RunDetails(1, usage='{"cost": 1}')])

    store.write(fill)
    used = store.read(lambda tx: tx.runs.used_by([1], 5))
    assert [(one.outcome, one.usage) for one in used[1]] == [("error", None), ("success", '{"cost": 1}')]
    reporting = store.read(lambda tx: tx.runs.used_by([1], 5, reporting=True))
    assert [one.outcome for one in reporting[1]] == ["success"]


def test_the_busiest_lane_comes_first_and_what_is_only_counted_is_not_stored(store):
    store.write(lambda tx: tx.lanes.add({"a": 1, "b": 3, "c": 0}))
    assert [(key, used) for key, used, _ in store.read(lambda tx: tx.lanes.busiest(1))] == [("b", 3)]
    before = store.read(lambda tx: tx.events.ids())
    store.write(lambda tx: tx.events.count("one"))
    assert store.read(lambda tx: tx.events.ids()) == before
