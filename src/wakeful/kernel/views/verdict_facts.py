"""How the whole store stands: the facts that its verdict is made from, each found through an index."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.kernel.cluster.nodes import LONE_RUN, Seen, is_served
from wakeful.kernel.model.job import next_jobs
from wakeful.kernel.model.run import GIVEN_UP, UNSENT
from wakeful.kernel.rules.holding import hold_of, hold_words
from wakeful.kernel.rules.lately import FEWEST, HABIT, PRUNED, RECENT, fails_often, pruned_since
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.kernel.rules.verdict import Failing, Line, Unsteady, VerdictInput
from wakeful.kernel.views.audit import found_slots
from wakeful.store.troubles import Troubles
from wakeful.triggers.moments import from_ms, to_ms
from wakeful.triggers.zones import place_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wakeful.store.interface import Transaction

COUNTED = 1_000  # runs since midnight; a higher count is shown as "more than"
FAILED_COUNTED = 100_000  # failed runs since midnight
NAMED = 1_000  # failing jobs that are counted
LOOKED_AT = 1_000  # failures of late, to find jobs that fail more often than they used to
LATELY_MS = 7 * 86_400_000


def standing(tx: Transaction, zone: str, seen: Seen, silence_ms: int, hidden: Sequence[str] = ()) -> VerdictInput:
    """As the store is now, without jobs and runs of hidden kinds."""
    runs = tx.runs.open_counts(hidden)
    unseen, seen_alerts = tx.alerts.count_awaited(but=APPROVAL)  # a question is counted as the run that asks
    due_since = tx.jobs.oldest_alarm()
    hold = hold_of(tx.nodes.held())
    newest = tx.alerts.newest_awaited(but=APPROVAL) if unseen else None
    facts = VerdictInput(
        now=tx.now,
        served=_is_served(tx, seen),
        silence_ms=silence_ms,
        held=hold_words(hold) if hold is not None else None,
        unaccounted=sum(found_slots(tx).values()),
        questions=runs.get(APPROVAL, 0),
        alerts=unseen,
        alert=newest.message if newest is not None else None,
        acknowledged=seen_alerts,
        lines=tuple(Line(key, jobs, since) for key, jobs, since in tx.jobs.lines(hidden)),
        due_since=due_since if due_since is not None and due_since <= tx.now else None,
        any_job=tx.jobs.any_shown(hidden),
        running=sum(runs.values()),
        next_at=_next_start(tx, hidden),
    )
    return _with_life(tx, seen, _with_failures(tx, zone, hidden, facts))


def _with_failures(tx: Transaction, zone: str, hidden: Sequence[str], facts: VerdictInput) -> VerdictInput:
    """What ran today, what failed and has not succeeded since, and what did not arrive."""
    today, week = midnight(tx.now, zone), ids.first_id_at(max(0, tx.now - LATELY_MS))
    troubles = tx.of(Troubles)
    began, looked_at = tx.runs.started_count(ids.first_id_at(today), COUNTED, hidden)
    failed = troubles.failed_count(ids.first_id_at(today), FAILED_COUNTED, hidden)
    gone, failed_and_gone = pruned_since(tx.facts.get(PRUNED), today, hidden)
    often = [
        (name, troubles.last_ends(job_id, RECENT + HABIT))
        for job_id, name in troubles.failed_often(FEWEST, LOOKED_AT, hidden)
    ]
    unsent = [found(tx) for found in UNSENT.values()]
    return facts._replace(
        runs=began + gone,
        failed=failed + failed_and_gone,
        more_runs=looked_at >= COUNTED,
        failing=tuple(Failing(*found) for found in troubles.failing(NAMED, hidden)),
        unsteady=tuple(
            Unsteady(name, sum(ends[:RECENT]), len(ends[:RECENT])) for name, ends in often if fails_often(ends)
        ),
        undelivered=sum(count(tx, week) for count in GIVEN_UP.values()),
        unsent=sum(count for count, _ in unsent),
        unsent_since=min((since for _, since in unsent if since is not None), default=None),
    )


def midnight(now: int, zone: str) -> int:
    """When the day began there; where clocks skip midnight, when they continue."""
    local = from_ms(now).astimezone(place_named(zone))
    return min(now, to_ms(datetime(local.year, local.month, local.day, tzinfo=local.tzinfo)))


def _is_served(tx: Transaction, seen: Seen) -> bool:
    holder = seen.holder
    return is_served(tx, seen) and not (holder is not None and str(holder.get("node", "")).startswith(LONE_RUN))


def _with_life(tx: Transaction, seen: Seen, facts: VerdictInput) -> VerdictInput:
    """When a server was last seen alive, and whether any live one can start something."""
    said = int(tx.facts.of(["alive_at"]).get("alive_at", "0"))
    if tx.exclusive:
        since = seen.holder.get("since") if seen.holder is not None else None
        begun = since if isinstance(since, int) and since <= tx.now else 0  # ahead: by the clock before it was set back
        return facts._replace(heard_at=max(said, begun) or None)
    now = tx.facts.database_now()
    living = tx.nodes.living(now - seen.times.lease_ms)
    blocked = [node.name for node in living if node.loop_at is not None and now - node.loop_at >= seen.times.stalled_ms]
    return facts._replace(
        heard_at=max([said, *(node.seen_at for node in living)]) or None,
        stalled=tuple(blocked) if len(blocked) == len(living) else (),
        draining=bool(living) and all(node.draining for node in living),
    )


def _next_start(tx: Transaction, hidden: Sequence[str]) -> int | None:
    jobs = next_jobs(tx, 1, hidden)
    return min((start for job in jobs for start in [next(iter(job.starts()), None)] if start is not None), default=None)
