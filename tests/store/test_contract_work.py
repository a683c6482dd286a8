"""What every store promises about work items of the queue and of sources, and about names that are taken."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW
from wakeful.domains.agents.sources.tables import SourceTables
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowVerbs

INBOX = "directory:/inbox"


def item(number, **changes):
    plain = WorkItem(number, "a", f"item {number}", None, f"x-{number}", 0, "ready", None, 0, NOW, None)
    return plain._replace(**changes)


@pytest.fixture
def stocked(store):
    def put(*items):
        store.write(lambda tx: [tx.of(AgentTables).add_item(one, ord(one.agent)) for one in items])
        return store

    return put


def next_id(store, *args):
    found = store.write(lambda tx: tx.of(AgentTables).next_item(*args))
    return None if found is None else found.id


def test_the_next_item_is_of_the_queue_or_of_the_source_and_not_of_another(stocked):
    store = stocked(
        item(1, source="github:o/n"), item(2, source=INBOX), item(3), item(4, priority=5), item(5, agent="b")
    )
    assert (next_id(store, "a"), next_id(store, "a", None, [4]), next_id(store, "a", None, [3, 4])) == (4, 3, None)
    assert (next_id(store, "a", INBOX, [4]), next_id(store, "a", INBOX, [2, 3, 4])) == (2, None)
    for args, expected in [(("a", None), True), (("c", INBOX), False), (("b", INBOX), True)]:
        assert store.read(lambda tx, args=args: tx.of(AgentTables).has_ready(*args)) is expected


def test_what_was_noted_about_an_item_is_kept(stocked):
    store = stocked(item(1, source=INBOX))
    claimed = item(1, source=INBOX, status="claimed", run_id=7, attempts=1, mark='{"nonce":"n"}', held=1)
    store.write(lambda tx: tx.of(AgentTables).save_item(claimed))
    assert store.read(lambda tx: tx.of(AgentTables).item_of(7)) == claimed
    store.write(lambda tx: tx.of(SourceTables).rename(1, "another", "more"))
    assert store.read(lambda tx: tx.of(AgentTables).item(1)) == claimed._replace(title="another", body="more")


def test_items_are_found_by_what_their_source_calls_them(stocked):
    store = stocked(item(1), item(2), item(3, agent="b", external_id="x-1"), item(4, external_id=None))
    found = store.read(lambda tx: tx.of(SourceTables).called("a", ["x-1", "x-9"]))
    assert {name: one.id for name, one in found.items()} == {"x-1": 1}


def test_what_is_settled_and_still_held_is_to_be_reported(stocked):
    store = stocked(
        item(1, source=INBOX, held=1, status="done"),
        item(2, source=INBOX, held=1),
        item(3, source=INBOX, status="done"),
        item(4, source="github:o/n", held=1, status="failed"),
        item(5, source=INBOX, held=1, status="failed"),
    )
    found = store.read(lambda tx: tx.of(SourceTables).unreported("a", INBOX, 10))
    assert [one.id for one in found] == [1, 5]
    assert len(store.read(lambda tx: tx.of(SourceTables).unreported("a", INBOX, 1))) == 1


def test_a_run_has_an_item_until_it_is_settled_and_only_settled_ones_are_pruned(stocked):
    store = stocked(
        item(1, status="done", run_id=7), item(2), item(3, status="claimed", run_id=8), item(4, status="failed")
    )
    assert store.read(lambda tx: tx.of(AgentTables).item_of(7)) is None
    assert store.read(lambda tx: tx.of(AgentTables).item_of(8)).id == 3
    assert store.write(lambda tx: tx.of(AgentTables).prune_items(NOW + 1, 10)) == 2
    assert [one.id for one in store.read(lambda tx: tx.of(AgentTables).items("a", None, None, 10))] == [3, 2]


def test_only_what_waits_untouched_can_be_dropped_and_only_by_its_run_forgotten(stocked):
    store = stocked(
        item(1, source=INBOX),
        item(2, source=INBOX, held=1),
        item(3, source=INBOX, status="claimed", run_id=7),
        item(4, source=INBOX, mark='{"again":true}'),
        item(5),
    )
    assert store.read(lambda tx: tx.of(SourceTables).waiting("a", INBOX)) == [(1, "x-1")]
    store.write(lambda tx: tx.of(SourceTables).drop("a", INBOX, [1, 2, 3, 5]))
    left = store.read(lambda tx: tx.of(AgentTables).items("a", None, None, 10))
    assert [one.id for one in left] == [5, 4, 3, 2]
    store.write(lambda tx: tx.of(SourceTables).forget(3, 8))
    store.write(lambda tx: tx.of(SourceTables).forget(3, 7))
    assert store.read(lambda tx: tx.of(AgentTables).item(3)) is None


def test_what_another_system_calls_the_same_is_there_once_also_if_two_nodes_add_it_at_once(stocked):
    store = stocked(item(1))
    stocked(item(2, external_id="x-1"), item(3, agent="b", external_id="x-1"))
    left = store.read(lambda tx: tx.of(AgentTables).items(None, None, None, 10))
    assert [(one.id, one.agent) for one in left] == [(3, "b"), (1, "a")]


def test_an_item_is_not_pruned_before_its_source_has_heard_of_it(stocked):
    store = stocked(item(1, source=INBOX, held=1, status="done"), item(2, source=INBOX, status="done"))
    assert store.write(lambda tx: tx.of(AgentTables).prune_items(NOW + 1, 10)) == 1
    assert [one.id for one in store.read(lambda tx: tx.of(SourceTables).unreported("a", INBOX, 10))] == [1]


def test_names_of_workflows_that_were_removed_are_free(store):
    for name in ("mail", "bills"):
        store.write(lambda tx, name=name: tx.of(WorkflowVerbs).add(WorkflowRow.new(name, "v1", "code", NOW)))
    store.write(lambda tx: tx.of(WorkflowVerbs).change("bills", NOW, removed_at=NOW))
    assert store.read(lambda tx: tx.of(WorkflowVerbs).deployed(["bills", "mail", "news"])) == {"mail"}
