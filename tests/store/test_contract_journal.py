"""What every store promises about events, alerts, refused starts, nodes and facts."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from tests.store.samples import NOW, alert, job, run
from wakeful.store.records import NodeRow, SkipRow


def bodies(groups):
    return [(group.stream, group.seq, json.loads(group.body)) for group in groups]


# -- events -----------------------------------------------------------------------------------------------------------


def test_a_transaction_writes_one_row_per_stream_and_numbers_its_events_without_gaps(store):
    def first(tx):
        tx.events.emit("run", ["started", 1], ["started", 2])
        tx.events.emit("job", ["added", 1])
        tx.events.emit("run", ["started", 3])

    store.write(first)
    store.write(lambda tx: tx.events.emit("run", ["finished", 1], ["finished", 2]))
    found = store.read(lambda tx: tx.events.after(0))
    assert bodies(found) == [
        ("run", 3, [["started", 1], ["started", 2], ["started", 3]]),
        ("job", 1, [["added", 1]]),
        ("run", 5, [["finished", 1], ["finished", 2]]),
    ]
    assert [group.id for group in found] == sorted({group.id for group in found})
    assert {group.at for group in found} == {NOW}


def test_a_work_that_fails_uses_up_no_number(store):
    def fails(tx):
        tx.events.emit("run", "never")
        raise KeyError

    store.write(lambda tx: tx.events.emit("run", "one"))
    with pytest.raises(KeyError):
        store.write(fails)
    store.write(lambda tx: tx.events.emit("run", "two"))
    assert bodies(store.read(lambda tx: tx.events.after(0))) == [("run", 1, ["one"]), ("run", 2, ["two"])]


def test_what_is_no_json_is_the_callers_mistake_and_undoes_its_work(store):
    def emits(tx):
        tx.lanes.add({"a": 1})
        tx.events.emit("run", object())

    with pytest.raises(TypeError):
        store.write(emits)
    assert store.read(lambda tx: (tx.lanes.all(), tx.events.after(0))) == ({}, [])


def test_events_are_read_from_any_point_of_one_stream_or_all(store):
    for number in range(6):
        store.write(lambda tx: tx.events.emit("even" if number % 2 == 0 else "odd", number))  # noqa: B023
    first, *rest = store.read(lambda tx: tx.events.after(0))
    assert store.read(lambda tx: tx.events.after(first.id)) == rest
    assert store.read(lambda tx: tx.events.after(first.id, limit=2)) == rest[:2]
    assert bodies(store.read(lambda tx: tx.events.after(first.id, ["even"]))) == [("even", 2, [2]), ("even", 3, [4])]
    assert store.read(lambda tx: tx.events.after(rest[-1].id)) == []


def test_flushing_writes_once_what_was_emitted(store):
    def work(tx):
        tx.events.emit("run", 1)
        return tx.events.flush(NOW), tx.events.flush(NOW)

    first, second = store.write(work)
    assert (bodies(first), second) == ([("run", 1, [1])], [])
    assert store.read(lambda tx: tx.events.after(0)) == first


def test_old_events_are_deleted_in_bites_and_numbers_go_on(store, clock):
    for number in range(5):
        store.write(lambda tx: tx.events.emit("run", number))  # noqa: B023
        clock.elapse(1)
    assert store.write(lambda tx: tx.events.prune(NOW + 3000, 2)) == 2
    assert store.write(lambda tx: tx.events.prune(NOW + 3000, 2)) == 1
    assert store.write(lambda tx: tx.events.prune(NOW + 3000, 2)) == 0
    store.write(lambda tx: tx.events.emit("run", 5))
    assert [group.seq for group in store.read(lambda tx: tx.events.after(0))] == [4, 5, 6]


def test_the_newest_events_stay_however_old_they_are(store):
    for number in range(2):
        store.write(lambda tx: tx.events.emit("run", number))  # noqa: B023
    assert store.write(lambda tx: tx.events.prune(NOW + 3000, 10)) == 1
    [newest] = store.read(lambda tx: tx.events.after(0))
    store.write(lambda tx: tx.events.emit("run", 2))
    assert [group.seq for group in store.read(lambda tx: tx.events.after(newest.id))] == [3], "ids go on from it"


def test_events_a_wrong_clock_stamped_far_ahead_do_not_keep_the_others_from_being_deleted(store, clock):
    for days in (0, 300, 0):
        clock.step(timedelta(days=days))
        store.write(lambda tx: tx.events.emit("run", 1))
        clock.step(timedelta(days=-days))
    month = 30 * 86_400_000
    assert store.write(lambda tx: tx.events.prune(NOW - month, 2)) == 1
    assert [group.at for group in store.read(lambda tx: tx.events.after(0))] == [NOW, NOW]


# -- refused starts ---------------------------------------------------------------------------------------------------


def test_refused_starts_are_counted_per_reason_with_the_last_time(store):
    store.write(
        lambda tx: tx.skips.count(
            [
                SkipRow(1, "paused", 1, NOW, None),
                SkipRow(1, "at_capacity", 1, NOW, "lane a"),
                SkipRow(1, "paused", 2, NOW + 1, "p"),
            ]
        )
    )
    store.write(
        lambda tx: tx.skips.count([SkipRow(1, "at_capacity", 1, NOW + 5, "lane b"), SkipRow(2, "paused", 1, NOW, "")])
    )
    store.write(lambda tx: tx.skips.count([]))
    assert store.read(lambda tx: tx.skips.of(1)) == [
        SkipRow(1, "at_capacity", 2, NOW + 5, "lane b"),
        SkipRow(1, "paused", 3, NOW + 1, "p"),
    ]
    assert store.read(lambda tx: tx.skips.of(3)) == []


# -- alerts -----------------------------------------------------------------------------------------------------------


def test_an_incident_is_opened_once_counted_while_it_lasts_and_closed_once(store):
    assert store.write(lambda tx: tx.alerts.open(alert(1))) == (alert(1), True)
    again = alert(1, message="still", last_at=NOW + 5, times=2)
    assert store.write(lambda tx: tx.alerts.open(alert(2, message="still", last_at=NOW + 5))) == (again, False)
    assert store.read(lambda tx: tx.alerts.all_open()) == [alert(1, message="still", last_at=NOW + 5, times=2)]
    assert store.read(lambda tx: tx.alerts.count_open()) == 1
    assert store.write(lambda tx: tx.alerts.close("failing:1", NOW + 9)) == again._replace(closed_at=NOW + 9)
    assert not store.write(lambda tx: tx.alerts.close("failing:1", NOW + 9))
    assert store.read(lambda tx: tx.alerts.all_open()) == []
    assert store.write(lambda tx: tx.alerts.open(alert(3)))[1]
    assert [event[2][0]["type"] for event in bodies(store.read(lambda tx: tx.events.after(0, ["alert"])))] == [
        "opened",
        "closed",
        "opened",
    ]


def test_a_snoozed_incident_is_found_when_its_time_is_over_and_while_it_is_open(store):
    store.write(lambda tx: [tx.alerts.open(alert(n, f"key:{n}")) for n in (1, 2, 3)])
    assert store.write(lambda tx: tx.alerts.snooze(1, NOW + 10))
    assert store.write(lambda tx: tx.alerts.snooze(2, NOW + 5))
    store.write(lambda tx: tx.alerts.close("key:3", NOW))
    assert not store.write(lambda tx: tx.alerts.snooze(3, NOW + 5))

    def over(now):
        return store.read(lambda tx: [found.id for found in tx.alerts.snoozes_over(now, 10)])

    assert (over(NOW + 4), over(NOW + 5), over(NOW + 10)) == ([], [2], [2, 1])
    store.write(lambda tx: tx.alerts.note_sent(2, NOW + 6))
    store.write(lambda tx: tx.alerts.note_awake(1))
    assert over(NOW + 99) == []
    assert store.read(lambda tx: tx.alerts.get(2)).notified_at == NOW + 6


def test_open_incidents_of_one_kind_are_found_by_their_key(store):
    keys = ["missed:1", "missed:jobs", "missed_not:1", "miss:1"]
    store.write(lambda tx: [tx.alerts.open(alert(n, key)) for n, key in enumerate(keys, 1)])
    store.write(lambda tx: tx.alerts.close("missed:1", NOW))
    assert [found.key for found in store.read(lambda tx: tx.alerts.open_of("missed"))] == ["missed:jobs"]


def test_a_job_is_snoozed_until_the_time_that_was_said_last(store):
    assert store.read(lambda tx: tx.alerts.job_snoozed_until(1)) is None
    store.write(lambda tx: tx.alerts.snooze_job(1, NOW + 5))
    store.write(lambda tx: tx.alerts.snooze_job(1, NOW + 3))
    assert store.read(lambda tx: tx.alerts.job_snoozed_until(1)) == NOW + 3


def test_alerts_are_listed_newest_first_for_one_job_or_all(store):
    store.write(lambda tx: [tx.alerts.open(alert(n, f"key:{n}", job_id=n % 2 or None)) for n in range(1, 6)])
    store.write(lambda tx: tx.alerts.close("key:5", NOW))
    assert [found.id for found in store.read(lambda tx: tx.alerts.latest())] == [5, 4, 3, 2, 1]
    assert [found.id for found in store.read(lambda tx: tx.alerts.latest(2, job_id=1))] == [5, 3]


# -- nodes and facts --------------------------------------------------------------------------------------------------


def test_nodes_join_and_leave_and_keep_their_names(store):
    assert store.read(lambda tx: tx.members.last()) is None
    nodes = [NodeRow(1, "one", NOW, NOW, None, "{}"), NodeRow(2, "two", NOW, NOW, None, '{"pid":1}')]
    store.write(lambda tx: [tx.members.join(node) for node in nodes])
    store.write(lambda tx: tx.members.leave(2, NOW + 5))
    assert store.read(lambda tx: tx.members.last()) == nodes[1]._replace(seen_at=NOW + 5, stopped_at=NOW + 5)
    assert store.read(lambda tx: tx.nodes.names_of([1, 2, 3])) == {1: "one", 2: "two"}


def test_what_is_known_of_a_node_changes_until_it_leaves(store):
    store.write(lambda tx: [tx.members.join(NodeRow(n, f"node-{n}", NOW, NOW, None, "{}")) for n in (1, 2)])
    store.write(lambda tx: [tx.members.describe(n, '{"kinds":["work"]}') for n in (1, 2, 3)])
    store.write(lambda tx: tx.members.leave(1, NOW + 5))
    store.write(lambda tx: tx.members.describe(1, "{}"))
    assert [store.read(lambda tx, n=n: tx.nodes.get(n).details) for n in (1, 2)] == ['{"kinds":["work"]}'] * 2


def test_the_last_node_was_alive_as_long_as_is_known_unless_it_has_left(store):
    store.write(lambda tx: [tx.members.join(NodeRow(n, f"node-{n}", NOW, NOW, None, "{}")) for n in (1, 2)])
    store.write(lambda tx: [tx.members.note_life(NOW + more) for more in (7, 3)])
    assert [store.read(lambda tx, n=n: tx.nodes.get(n).seen_at) for n in (1, 2)] == [NOW, NOW + 7]
    store.write(lambda tx: (tx.members.leave(2, NOW + 8), tx.members.note_life(NOW + 9)))
    assert store.read(lambda tx: tx.members.last()).seen_at == NOW + 8


def test_a_node_that_fell_silent_is_taken_over_by_exactly_one_other(store):
    nodes = [NodeRow(n, f"node-{n % 2}", NOW, NOW, None, "{}") for n in (1, 2, 3)]
    store.write(lambda tx: [tx.members.join(node) for node in nodes])
    assert store.write(lambda tx: tx.members.beat(1, NOW + 9, NOW + 3)) is False
    heard = nodes[0]._replace(seen_at=NOW + 9)
    assert store.read(lambda tx: tx.members.alive()) == [heard, *nodes[1:]]
    assert store.read(lambda tx: tx.members.silent(NOW + 9)) == nodes[1:]
    assert store.read(lambda tx: tx.members.earlier("node-1")) == [heard, nodes[2]]
    assert not store.write(lambda tx: tx.members.take_over(nodes[0], by=3, now=NOW + 20))  # heard of since it was read
    assert store.write(lambda tx: tx.members.take_over(nodes[1], by=3, now=NOW + 20))
    assert not store.write(lambda tx: tx.members.take_over(nodes[1], by=1, now=NOW + 20))
    assert store.write(lambda tx: tx.members.beat(2, NOW + 21, NOW + 21)) is None
    assert store.write(lambda tx: [tx.members.lives(number) for number in (1, 2, 3, 4)]) == [False, None, False, None]
    assert store.read(lambda tx: tx.members.alive()) == [heard, nodes[2]]


def test_a_node_that_left_is_neither_alive_nor_to_be_taken_over(store):
    node = NodeRow(1, "one", NOW, NOW, None, "{}")
    store.write(lambda tx: (tx.members.join(node), tx.members.leave(1, NOW)))
    assert store.read(lambda tx: (tx.members.alive(), tx.members.silent(NOW + 9), tx.members.earlier("one"))) == (
        [],
        [],
        [],
    )
    assert store.write(lambda tx: tx.members.beat(1, NOW + 1, NOW + 1)) is None
    assert not store.write(lambda tx: tx.members.take_over(node, by=2, now=NOW + 1))


def test_a_node_that_is_drained_is_alive_and_serves_no_kind(store):
    nodes = [NodeRow(1, "one", NOW, NOW, None, "{}"), NodeRow(2, "two", NOW, NOW, None, "{}")]
    store.write(lambda tx: [tx.members.join(node) for node in nodes])
    store.write(lambda tx: tx.nodes.drain(1, drain=True))
    assert store.write(lambda tx: (tx.members.lives(1), tx.members.lives(2))) == (True, False)
    assert store.write(lambda tx: (tx.members.standing(1, parked=True), tx.members.standing(2, parked=True))) == (
        (True, 0, False), (False, 0, False),
    )  # fmt: skip
    store.add(job(1, parked="lane", ready_at=NOW))
    assert store.write(lambda tx: (tx.members.standing(1, parked=True), tx.members.standing(9, parked=True))) == (
        (True, 0, True), (None, None, False),
    )  # fmt: skip
    assert store.write(lambda tx: tx.members.beat(1, NOW, NOW)) is True
    assert store.read(lambda tx: ([node.id for node in tx.members.serving()], len(tx.members.alive()))) == ([2], 2)


def test_a_node_whose_loop_stands_is_found(store):
    store.write(lambda tx: [tx.members.join(NodeRow(n, f"{n}", NOW, NOW, None, "{}")) for n in (1, 2, 3)])
    store.write(lambda tx: (tx.members.beat(1, NOW + 50, NOW + 50), tx.members.beat(2, NOW + 50, NOW + 10)))
    assert [node.id for node in store.read(lambda tx: tx.members.stalled(NOW + 20))] == [2]


def test_no_node_was_seen_in_the_future(store):
    store.write(lambda tx: [tx.members.join(NodeRow(n, f"{n}", NOW, NOW + n, None, "{}")) for n in (1, 20)])
    store.write(lambda tx: tx.members.correct_seen(NOW + 10))
    assert [node.seen_at for node in store.read(lambda tx: tx.members.alive())] == [NOW + 1, NOW + 10]


def test_the_clock_all_nodes_share_does_not_go_back(store):
    first = store.read(lambda tx: tx.facts.database_now())
    assert store.read(lambda tx: tx.facts.database_now()) >= first >= NOW


def test_a_store_without_other_readers_has_no_old_transaction(store):
    assert store.write(lambda tx: tx.facts.oldest_transaction()) is None


def test_the_highest_id_is_that_of_anything(store):
    assert store.read(lambda tx: tx.facts.highest_id()) == 0
    store.add(job(3))
    steps = [
        (4, lambda tx: tx.runs.add([run(4)])),
        (5, lambda tx: tx.members.join(NodeRow(5, "n", NOW, NOW, None, "{}"))),
        (2**62, lambda tx: tx.alerts.open(alert(2**62))),
    ]
    for highest, step in steps:
        store.write(step)
        assert store.read(lambda tx: tx.facts.highest_id()) == highest


def test_facts_are_remembered_as_texts_and_replaced(store):
    store.write(lambda tx: tx.facts.put({"a": 1, "b": "zwei"}))
    store.write(lambda tx: tx.facts.put({"a": 2}))
    store.write(lambda tx: tx.facts.put({}))
    assert store.read(lambda tx: tx.facts.of(["a", "b", "c"])) == {"a": "2", "b": "zwei"}


def test_a_process_that_does_not_listen_listens_not_in_vain(store):
    assert store.read(lambda tx: tx.facts.listens_in_vain()) is False
