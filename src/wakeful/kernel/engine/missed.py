"""Starts that were missed: a job was due, its grace passed, and it did not start.

Three looks find them, and none costs anything per stored job. At a start, and when the loop comes late to its alarm (a
sleeping machine, a database that was away, a blocked loop), before anything that waited is started: so an outage is one
incident however many jobs it held up. With every sweep, for what is due or waits for a lane for longer than its grace.
And whenever a slot is let go because its time has passed.

One job is an incident of its own; several found at once are one. It is over once each of them has started, or is not
wanted any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import alert_rules, close_alert, open_alert
from wakeful.kernel.rules.alerting import many
from wakeful.kernel.rules.parking import is_lane
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.records import Alert

MISSED, SEVERAL = "missed", "jobs"
MOST = 1_000  # jobs an incident keeps track of; beyond them it knows their number
OUTAGE_MS = 120_000  # engines say that they are alive every minute
LATE_ALARM_MS = 10_000  # a loop that is awake is not so late
LOOK_AGAIN_MS = 60_000
#: Jobs that became due at one moment stand a millisecond apart in a line, and are one incident.
TOGETHER_MS = MOST


class Late(NamedTuple):
    """A job that should have started, and when."""

    job_id: int
    name: str
    due_at: int


class Found(NamedTuple):
    """What a look found: the first of them by time, and how many there are."""

    jobs: Sequence[Late]
    total: int


NONE = Found((), 0)


def look_for_missed(tx: Transaction, context: Context, away_since: int | None = None) -> int:
    """Alert about jobs that have been due for longer than their grace; how many there are.

    `away_since`: when something of this store was last known to run, where that was before an outage.
    """
    since = tx.now - alert_rules(tx).grace
    found = _overdue(tx, context, since)
    if found.total and tx.nodes.held() is None:  # held jobs are not expected to start
        note_missed(tx, context, found, _outage(tx, away_since))
    return found.total


def watch_missed(tx: Transaction, context: Context, lines: dict[str, int]) -> None:
    """Part of a sweep: close incidents that are over, and find new ones; `lines`: jobs by what they wait for."""
    for alert in tx.alerts.open_of(MISSED):
        if not _still_missed(tx, alert):
            close_alert(tx, context, MISSED, alert.key.partition(":")[2])
    look_for_missed(tx, context)
    since = tx.now - alert_rules(tx).grace
    for key in lines:
        if is_lane(key) and _waiting(tx, context, key, since):
            waiting = _waiting(tx, context, key, since + TOGETHER_MS)
            note_missed(tx, context, Found(waiting, len(waiting)), f"the lane {key.partition(':')[2] or key} is full")


def _waiting(tx: Transaction, context: Context, key: str, since: int) -> list[Late]:
    """Who has waited in a line since that time or longer, but for those that wait by design."""
    return [
        Late(job.id, job.name, state.ready_at or tx.now)
        for job, state in tx.jobs.parked_on(key, since, MOST)
        if job.kind not in context.declared.hooks.patient
    ]


def note_missed(tx: Transaction, context: Context, found: Found, why: str = "") -> None:
    """Open an incident for jobs that have none yet, or count the existing one again."""
    known = {job_id: alert for alert in tx.alerts.open_of(MISSED) for job_id in _data(alert)["jobs"]}
    again = {known[late.job_id].key: known[late.job_id] for late in found.jobs if late.job_id in known}
    for alert in again.values():
        subject = alert.key.partition(":")[2]
        open_alert(tx, context, MISSED, subject, alert.message, job_id=alert.job_id)
    new = [late for late in found.jobs if late.job_id not in known]
    if not new:
        return
    count = found.total - (len(found.jobs) - len(new))
    grace = format_interval(alert_rules(tx).grace) + (f" ({why})" if why else "")
    if count == 1:
        (late,) = new
        message = f"{late.name} was due at {spoken(late.due_at)} and did not start within its grace of {grace}"
        open_alert(tx, context, MISSED, late.job_id, message, job_id=late.job_id, data=_text([late.job_id], 1))
        return
    before = next((alert for alert in tx.alerts.open_of(MISSED) if alert.job_id is None), None)
    tracked: list[int] = _data(before)["jobs"] if before is not None else []
    if before is not None:
        counted = _data(before)["count"]
        count = counted if counted > len(tracked) else counted + count  # beyond those it tracks, they are in it already
    were = "1 job was" if count == 1 else f"{count} jobs were"
    message = (
        f"{were} due and did not start within their grace of {grace}: "
        f"{many([late.name for late in new], count)}. The first was due at {spoken(new[0].due_at)}."
    )
    jobs = [*tracked, *(late.job_id for late in new)][:MOST]
    open_alert(tx, context, MISSED, SEVERAL, message, data=_text(jobs, count))


def _overdue(tx: Transaction, context: Context, since: int) -> Found:
    hidden = context.declared.hooks.unstarted
    rows = tx.jobs.late(since, hidden, MOST)
    if not rows:
        return NONE
    count = len(rows) if len(rows) < MOST else tx.jobs.late_count(since, hidden)
    return Found([Late(*row) for row in rows], count)


def _outage(tx: Transaction, away_since: int | None) -> str:
    if away_since is None or tx.now - away_since < OUTAGE_MS:
        return ""
    return f"nothing could start from {spoken(away_since)} to {spoken(tx.now)}"


def _still_missed(tx: Transaction, alert: Alert) -> bool:
    return bool(tx.jobs.not_started_since(_data(alert)["jobs"], alert.opened_at))


def _data(alert: Alert) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(alert.data) if alert.data else {"jobs": [], "count": 0}
    return found


def _text(jobs: Sequence[int], count: int) -> str:
    return json.dumps({"jobs": list(jobs), "count": count})


class OutageWatch:
    """Notices that the loop comes late to its alarm, and has what was missed meanwhile reported as one incident."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fine_at = clock.now()
        self._next_look = 0

    def fine(self) -> None:
        """The loop looked, and the store answered."""
        self._fine_at = self._clock.now()

    def is_late(self, alarm: int | None) -> bool:
        """Whether the loop comes so late to its alarm that something held it up."""
        return alarm is not None and self._clock.now() - alarm > LATE_ALARM_MS and self._clock.boot() >= self._next_look

    async def look(self, store: Store, context: Context) -> None:
        """Before what waited is started."""
        away_since = self._fine_at
        await store.write(lambda tx: look_for_missed(tx, context, away_since))
        self._next_look = self._clock.boot() + LOOK_AGAIN_MS  # only now: what a failed look did not see, the next does
