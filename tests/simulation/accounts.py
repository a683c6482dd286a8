"""The ledger of a world, against a plain model: every slot walked one by one, and what the handlers saw."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.invariants import Broken
from wakeful.kernel.rules.ledger import UNACCOUNTED, Account, Listed
from wakeful.kernel.rules.passing import has_grid
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.views.ledger import account_of, ledger_of_all, listed_of, tally_of
from wakeful.store.interface import Transaction
from wakeful.store.stretches import SlotSpan
from wakeful.triggers.moments import iso

BEGUN = {"ran", "running", "waiting"}  # what is known of a slot whose run was given to a handler


def check_sums(tx: Transaction) -> None:
    """At any moment: for every job, what was due is accounted for."""
    for name, tally in ledger_of_all(tx, 0).jobs.items():
        if tally.unaccounted:
            raise Broken(f"X25: {tally.unaccounted} slots of {name} have no record: {tally}")
        parts = tally.ran + tally.running + tally.merged + tally.missing
        parts += sum(tally.waiting.values()) + sum(tally.passed_over.values())
        if parts != tally.due or min(tally.ran, tally.running, tally.merged, tally.missing) < 0:
            raise Broken(f"X25: the ledger of {name} does not add up: {tally}")


def check_slots(tx: Transaction, begun: Iterable[tuple[int, int]]) -> None:
    """Each slot of each job: it has one fate, and those that were begun ran. The sums are those of the slots."""
    found = begun_by_job(begun)
    sums = ledger_of_all(tx, 0).jobs
    for placed in tx.slots.jobs():
        pair = tx.jobs.by_id(placed.id)
        assert pair is not None
        account = account_of(tx, *pair, SlotSpan(0, tx.now))
        listed = listed_of(tx, account)
        _check_due(placed.name, account, listed)
        for slot in sorted(found.get(placed.id, set())):
            fate = listed.fates.get(slot)
            if slot <= tx.now and (fate is None or fate.what not in BEGUN) and not listed.unlisted:
                raise Broken(f"X25: the slot {iso(slot)} of {placed.name} was run, and the ledger says {fate}")
        if placed.name in sums and tally_of(listed.sums()) != sums[placed.name]:
            one_by_one = tally_of(listed.sums())
            raise Broken(f"X25: {placed.name} slot by slot has {one_by_one}, and as a sum {sums[placed.name]}")


def begun_by_job(begun: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for job_id, slot in begun:
        found.setdefault(job_id, set()).add(slot)
    return found


def _check_due(name: str, account: Account, listed: Listed) -> None:
    """The plain model: walk the triggers one slot at a time, and look for each."""
    for text, part in account.history.parts(account.span):
        trigger = trigger_of(text)
        slot = trigger.next_slot(max(part.after, account.created_at)) if has_grid(trigger) else None
        while slot is not None and slot <= part.until:
            if listed.fates.get(slot, UNACCOUNTED) == UNACCOUNTED:
                raise Broken(f"X25: the slot {iso(slot)} of {name} has no record")
            slot = trigger.next_slot(slot)
