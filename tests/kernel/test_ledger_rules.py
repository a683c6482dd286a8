"""The sums of a ledger as pure functions: what a run, a stretch and the state say about a slot."""

from __future__ import annotations

import pytest

from tests.kernel.scene import virtual
from wakeful import Every
from wakeful.kernel.cluster.nodes import LONE_RUN, Seen
from wakeful.kernel.rules.ledger import (
    Account,
    Counted,
    SlotDisposition,
    SlotRun,
    fate_of_runs,
    list_slots,
    open_parts,
    quick_sums,
)
from wakeful.kernel.rules.passing import BELOW_FLOOR, PAUSED
from wakeful.kernel.rules.policy import FLOOR_MS, trigger_text
from wakeful.kernel.rules.trigger_history import TriggerHistory
from wakeful.kernel.views import verdict_facts
from wakeful.kernel.views.ledger import ledger_of_all
from wakeful.store.records import JobState
from wakeful.store.stretches import KEPT_FROM, RAN, SlotSpan, Stretch

pytestmark = pytest.mark.promise("X25")
HOUR = 3_600_000
HOURLY = trigger_text(Every("1h").resolved(0, "UTC"))


def account(after, until, **state):
    known = JobState.new(1)._replace(**state)
    return Account(known, TriggerHistory([], HOURLY), HOURLY, 0, SlotSpan(after, until), until)


def test_attempts_of_which_the_first_was_pruned_say_what_was_kept_of_the_slot():
    again = SlotRun(HOUR, 2, "done", None, "retry")
    assert fate_of_runs([again], SlotDisposition("ran")) == SlotDisposition("ran")
    assert fate_of_runs([again._replace(attempt=1)], SlotDisposition("ran")) == SlotDisposition("missing")
    assert fate_of_runs([again]) == SlotDisposition("missing")


def test_what_lies_within_the_floor_after_a_start_is_passed_over_and_the_floor_itself_is_not():
    now = 10 * HOUR
    (part,) = open_parts(account(0, now, last_slot=HOUR, slot=now + HOUR, counted_to=HOUR))
    assert part.fate == SlotDisposition("passed_over", BELOW_FLOOR)
    assert part.span == SlotSpan(HOUR, HOUR + FLOOR_MS - 1)


def test_a_slot_that_waits_though_it_was_counted_is_waiting():
    now = 5 * HOUR
    pending = account(0, now, slot=2 * HOUR, counted_to=4 * HOUR)
    found = {part.slot: part.fate.what for part in open_parts(pending)}
    assert found[2 * HOUR] == "waiting"
    passed = Stretch(1, PAUSED, HOUR, 4 * HOUR, 4, 0)
    listed = list_slots(pending, [], [passed]).fates
    assert [listed[hour * HOUR].what for hour in (1, 2, 3)] == ["passed_over", "waiting", "passed_over"]


def test_a_stretch_that_is_cut_counts_what_lies_after_the_beginning_of_the_span():
    stretch = Stretch(1, PAUSED, HOUR, HOUR, 1, 0).of_slots([HOUR, 2 * HOUR, 3 * HOUR])
    asked = account(HOUR, 3 * HOUR, slot=4 * HOUR, counted_to=3 * HOUR)
    assert quick_sums(asked, Counted(cut=[stretch])) == {SlotDisposition("passed_over", PAUSED): 2}


def test_that_a_slot_ran_says_more_than_why_it_was_passed_over():
    asked = account(0, HOUR, slot=2 * HOUR, counted_to=HOUR)
    stretches = [Stretch(1, fate, HOUR, HOUR, 1, 0) for fate in (RAN, PAUSED)]
    for order in (stretches, stretches[::-1]):
        assert list_slots(asked, [], order).fates == {HOUR: SlotDisposition("ran")}


@virtual
async def test_a_ledger_begins_where_the_records_begin(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.sleep("5h")
        kept = scene.clock.now() - 2 * HOUR
        await scheduler.transact(lambda tx, _: tx.facts.put({KEPT_FROM: str(kept)}))
        found = await scheduler.read(lambda tx: ledger_of_all(tx, 0))
        assert (int(found.since.timestamp() * 1000), found.total.due) == (kept, 2)


@pytest.mark.promise("X26")
@virtual
async def test_a_process_that_runs_one_job_is_no_server_and_many_runs_are_said_to_be_more(scene, monkeypatch):
    monkeypatch.setattr(verdict_facts, "COUNTED", 2)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.sleep("90m")

        def facts(tx, node):
            seen = Seen(holder={"node": node})
            return verdict_facts.standing(tx, "UTC", seen, 0)

        alone, served = [await scheduler.read(lambda tx, n=node: facts(tx, n)) for node in (f"{LONE_RUN}1", "host")]
        if await scheduler.read(lambda tx: tx.exclusive):
            assert (alone.served, served.served) == (False, True)
        assert (served.runs, served.more_runs) == (1, False)
        await scene.sleep("2h")
        later = await scheduler.read(lambda tx: facts(tx, "host"))
        assert later.more_runs
