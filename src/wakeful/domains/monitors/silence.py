"""A monitor whose report did not come: the deadline of a job with the trigger `Ping`.

Nothing is run: the slot passes with the reason `no_ping`, the job counts an error, and an alert opens. Reports that
could not be received are not held against anybody: where this store had no engine when a report was expected, or the
engine comes to the deadline more than a minute late (a sleeping laptop, a database that was away, a clock set forward),
the grace begins again.
"""

from __future__ import annotations

from wakeful.domains.monitors import NO_PING, UNHEARD
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.hooks import Silence
from wakeful.kernel.rules.passing import skip_slots
from wakeful.kernel.rules.policy import LATE_MS, count_passed, end
from wakeful.kernel.rules.reports import DOWN, after_silence, down
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, SkipRow
from wakeful.triggers import Ping, format_interval
from wakeful.triggers.moments import spoken
from wakeful.triggers.zones import place_named

SILENT = "no ping came, expected "


def note_silence(tx: Transaction, context: Context, job: JobDef, state: JobState, trigger: Ping) -> Silence:
    """What silence means for a monitor; the alert is written here."""
    now, expected = tx.now, state.slot or tx.now
    zone = place_named(trigger.own_zone)
    heard_since = _heard_since(tx, context, state, expected)
    if heard_since is not None and heard_since + trigger.grace_ms > now:
        until = heard_since + trigger.grace_ms
        detail = f"listening since {spoken(heard_since, zone)}, so its grace begins again"
        return Silence(state._replace(next_at=until, due_at=until), SkipRow(job.id, UNHEARD, 1, now, detail))
    why = f"{SILENT}{spoken(expected, zone)} with {format_interval(trigger.grace_ms)} of grace"
    # More silence is the same incident: what it says stays when a ping was expected first.
    first = state.last_error if (state.last_error or "").startswith(SILENT) else None
    state, message = down(job.name, state, first or why, now)
    open_alert(tx, context, DOWN, job.id, message or why, job_id=job.id)
    state, passes = skip_slots(job.trigger, state, now, NO_PING)
    passed = 1 if trigger.relative else max(1, count_passed(trigger, expected - 1, now))
    coming = after_silence(trigger, state, now, context.rng.random())
    state = state._replace(missed=state.missed + passed, ready_at=None, parked=None)
    if coming.slot is None:
        state = end(state, coming.ended or "", now)
    else:
        state = state._replace(slot=coming.slot, next_at=coming.at, due_at=coming.at)
    return Silence(state, SkipRow(job.id, NO_PING, passed, now, why), passes)


def _heard_since(tx: Transaction, context: Context, state: JobState, expected: int) -> int | None:
    """Since when reports could be received, where that is later than one was expected; None where it is not."""
    if state.due_at is not None and tx.now - state.due_at > LATE_MS:
        return tx.now
    since = context.watching_since()
    if since <= expected or tx.exclusive:
        return since if since > expected else None
    fresh = tx.now - context.lease.lease_ms
    others = [node.started_at for node in tx.members.alive() if node.seen_at >= fresh and node.id != context.id]
    since = min([since, *others])
    return since if since > expected else None
