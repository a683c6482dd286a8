"""What every store promises about requests from outside."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, end, job, run
from wakeful.domains.agents.inbound import domain
from wakeful.domains.agents.inbound.tables import InboundRequests, RequestRow
from wakeful.errors import StoreError


def request(number, job_id=1, **changes):
    row = RequestRow(number, job_id, "webhook", f"d-{number}", None, 100 + number, NOW + number, "{}", "body")
    return row._replace(**changes)


def add(store, *rows):
    for row in rows:
        store.write(lambda tx, row=row: tx.of(InboundRequests).add(row))


def ids(rows):
    return [row.id for row in rows]


def test_a_request_comes_back_as_it_was_given(store):
    given = request(2**62 + 1, 2**61, delivery_id=None, replay_of=7, body='{"text": "Zoë ☕"}')
    add(store, given)
    assert store.read(lambda tx: tx.of(InboundRequests).get(given.id)) == given
    assert store.read(lambda tx: tx.of(InboundRequests).get(1)) is None


def test_a_delivery_id_is_there_once_for_each_schedule(store):
    add(store, request(1), request(2, 2, delivery_id="d-1"), request(3, delivery_id=None), request(4, delivery_id=None))
    with pytest.raises(StoreError):
        add(store, request(5, delivery_id="d-1"))
    asked = [(1, "d-1"), (2, "d-1"), (3, "d-1"), (1, "d-5")]
    found = store.read(lambda tx: [tx.of(InboundRequests).called(*one) for one in asked])
    assert [row.id if row is not None else None for row in found] == [1, 2, None, None]


def test_requests_are_listed_newest_first_of_one_schedule_or_of_all(store):
    add(store, request(1), request(2, 2), request(3), request(4))
    assert ids(store.read(lambda tx: tx.of(InboundRequests).newest(None, None, 3))) == [4, 3, 2]
    assert ids(store.read(lambda tx: tx.of(InboundRequests).newest(None, 2, 3))) == [1]
    assert ids(store.read(lambda tx: tx.of(InboundRequests).newest(1, 4, 10))) == [3, 1]


def test_the_schedules_that_hear_chats_are_found_by_name(store):
    store.add(
        job(1, "b.talk", trigger="chat", payload='{"agent": "b"}'),
        job(2, "a.talk", trigger="chat", payload='{"agent": "a"}'),
        job(3, "c.gone", trigger="chat", removed_at=NOW),
        job(4, "a.deploy", trigger="webhook", owner="a"),
    )
    assert store.read(lambda tx: tx.of(InboundRequests).chat_jobs(None)) == [2, 1]
    assert store.read(lambda tx: tx.of(InboundRequests).chat_jobs("b")) == [1]
    assert store.read(lambda tx: tx.of(InboundRequests).chat_jobs("c")) == []


def test_contents_are_pruned_before_ids_and_what_a_run_waits_for_stays(store):
    store.add_runs(run(101), run(102, outcome="success"), run(103, outcome="error"))
    add(store, *(request(number) for number in (1, 2, 3, 4)))
    assert store.write(lambda tx: tx.of(InboundRequests).prune(NOW + 4, NOW, 10)) == 2
    kept = store.read(lambda tx: tx.of(InboundRequests).newest(None, None, 10))
    assert [(row.id, row.body) for row in kept] == [(4, "body"), (3, None), (2, None), (1, "body")]
    assert store.write(lambda tx: tx.of(InboundRequests).prune(NOW + 4, NOW, 10)) == 0
    assert store.write(lambda tx: tx.of(InboundRequests).prune(NOW + 9, NOW + 9, 1)) == 1
    assert store.write(lambda tx: tx.of(InboundRequests).prune(NOW + 9, NOW + 9, 10)) == 2
    assert ids(store.read(lambda tx: tx.of(InboundRequests).newest(None, None, 10))) == [1]
    store.write(lambda tx: tx.runs.finish([end(101)]))
    assert store.write(lambda tx: tx.of(InboundRequests).prune(NOW + 9, NOW + 9, 10)) == 1


def test_requests_go_with_their_job(store):
    store.add(job(1))
    add(store, request(1), request(2, 2))
    store.write(lambda tx: tx.jobs.forget([1], domain.job_tables))
    assert ids(store.read(lambda tx: tx.of(InboundRequests).newest(None, None, 10))) == [2]
