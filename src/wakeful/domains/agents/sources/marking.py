"""What the store knows about items of a source: their claims there, and what was decided. Verbs of one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from wakeful.domains.agents.fencing import holds
from wakeful.domains.agents.naming import wake_job
from wakeful.domains.agents.senders.trusting import OWN
from wakeful.domains.agents.sources.source import ItemHeld, SourceFailed, SourceItem, SourceListing, WorkSource
from wakeful.domains.agents.sources.tables import SourceTables
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.agents.work import name_item, next_for
from wakeful.kernel.rules.outcome import clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

VERDICT = "verdict"


class Claimant(Protocol):
    """Who claims: a run of an agent, at a source."""

    @property
    def source(self) -> WorkSource: ...
    @property
    def agent(self) -> str: ...
    @property
    def run_id(self) -> int: ...


def owner_of(tx: Transaction, agent: str) -> int | None:
    """The wake job of an agent; None where there is none any more."""
    return tx.jobs.names([wake_job(agent)]).get(wake_job(agent))


def read(item: WorkItem) -> dict[str, Any]:
    """What is noted about an item."""
    return dict(json.loads(item.mark)) if item.mark is not None else {}


def verdict(item: WorkItem) -> str | None:
    """What was decided about an item whose run has not ended yet: done or failed."""
    return read(item).get(VERDICT)


def bring_in(tx: Transaction, context: Context, post: Claimant, listing: SourceListing, most: int) -> None:
    """Sync the waiting items with those at the source; items that runs hold are left alone."""
    owner, source = owner_of(tx, post.agent), post.source
    if owner is None:
        return
    tables, own = tx.of(SourceTables), tx.of(AgentTables)
    known = tables.called(post.agent, [found.external_id for found in listing.found]) if listing.found else {}
    waiting = tables.waiting(post.agent, source.key)
    for found in listing.found:
        item = known.get(found.external_id)
        if item is None and len(waiting) < most:
            own.add_item(_new(tx, context, post, found), owner)
        elif item is not None and item.source == source.key:
            _again(tx, source, item, found)
    if listing.is_whole:
        listed = {found.external_id for found in listing.found}
        tables.drop(post.agent, source.key, [number for number, called in waiting if called not in listed])


def _new(tx: Transaction, context: Context, post: Claimant, found: SourceItem) -> WorkItem:
    body = None if found.body is None else clean(found.body)
    title, called = clean(found.title), clean(found.external_id)
    number, key = context.new_id(), post.source.key
    return WorkItem(
        id=number, agent=post.agent, title=title, body=body, external_id=called, priority=0, status="ready",
        run_id=None, attempts=0, created_at=tx.now, last_error=None, source=key,
    )  # fmt: skip


def _again(tx: Transaction, source: WorkSource, item: WorkItem, found: SourceItem) -> None:
    """An item that was reported and waits again is worked on again; one that waits says what it says there."""
    if item.status in ("done", "failed") and not item.held and source.is_back(found, read(item)):
        tx.of(AgentTables).save_item(item._replace(status="ready", attempts=0, last_error=None, mark=None))
    elif item.status != "ready":
        return
    if found.body is not None and (item.title, item.body) != (clean(found.title), clean(found.body)):
        tx.of(SourceTables).rename(item.id, clean(found.title), clean(found.body))


def claim(tx: Transaction, post: Claimant, passed: Sequence[int], nonce: str) -> WorkItem | None:
    """Claim the next item for a run, with a nonce for its source; the same one where the run has one.

    None also for a run that is over: nobody would give back what it claims.
    """
    if not holds(tx, post.run_id):
        return None
    tables = tx.of(AgentTables)
    item = tables.item_of(post.run_id)
    if item is None:
        item = next_for(tx, post.agent, post.source.key, passed)
        if item is None:
            return None
        item = item._replace(status="claimed", run_id=post.run_id, attempts=item.attempts + 1)
    if item.source is None:
        name_item(tx, post.run_id, item)
    else:
        item = item._replace(mark=json.dumps({"nonce": nonce, **read(item)}), held=1)
    tables.save_item(item)
    return item


def still(tx: Transaction, item: WorkItem) -> WorkItem | None:
    """The item as it is now; None if it is no longer that of the run which the caller acts for."""
    found = tx.of(AgentTables).item(item.id)
    return found if found is not None and found.run_id == item.run_id and found.status != "ready" else None


def _own(tx: Transaction, item: WorkItem) -> WorkItem:
    found = still(tx, item)
    if found is None:
        raise SourceFailed(f"{item.title!r:.80} is no longer this run's: another one has taken it over.")
    return found


def note(tx: Transaction, item: WorkItem, said: Mapping[str, Any]) -> None:
    """Add to what is noted about a run's item; SourceFailed if another run has it by now."""
    found = _own(tx, item)
    tx.of(AgentTables).save_item(found._replace(mark=json.dumps({**read(found), **said})))


def put_back(tx: Transaction, item: WorkItem) -> None:
    """The source could not be asked for an item: it waits again, and was not tried."""
    found = still(tx, item)
    if found is not None and found.status == "claimed":
        tx.of(AgentTables).save_item(found._replace(status="ready", attempts=max(0, found.attempts - 1)))


def refresh(tx: Transaction, item: WorkItem, held: ItemHeld) -> WorkItem:
    """The item as it is at its source now; its run names it."""
    found = _own(tx, item)
    if held.is_own != bool(read(found).get(OWN)):
        found = found._replace(mark=json.dumps({**read(found), OWN: held.is_own}))
        tx.of(AgentTables).save_item(found)
    if found.run_id is not None:
        name_item(tx, found.run_id, found)
    title = clean(held.title) if held.title is not None else found.title
    body = clean(held.body) if held.body is not None else found.body
    if (title, body) != (found.title, found.body):
        tx.of(SourceTables).rename(found.id, title, body)
    return found._replace(title=title, body=body)


def decide(tx: Transaction, run_id: int, status: str) -> WorkItem | None:
    """Store the result of a run's item before it is reported to its source; None if it has no source."""
    item = tx.of(AgentTables).item_of(run_id)
    if item is None or item.source is None:
        return None
    item = item._replace(mark=json.dumps({**read(item), VERDICT: status}))
    tx.of(AgentTables).save_item(item)
    return item


def let_go(tx: Transaction, item: WorkItem, said: Mapping[str, Any] | None) -> None:
    """A run's item is no longer ours at the source; `said`: its answer to a report."""
    found = still(tx, item)
    if found is None:
        return
    decided = verdict(found)
    mark = {**(said or {}), **({VERDICT: decided} if decided is not None and found.status == "claimed" else {})}
    tx.of(AgentTables).save_item(found._replace(held=0, mark=json.dumps(mark) if mark or said is not None else None))
