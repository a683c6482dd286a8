"""Slots that have no run on record: those that passed without one, and those whose runs were pruned.

A stretch costs one row however many slots it spans. As long as a job's slots meet one fate one after the other, one
stretch covers them; a slot with another fate begins a new one. A job whose slots differ all the time would make a
stretch for each: beyond a few a day they share rows, whose patterns say which slots they are. A row takes a limited
number of slots, so that to keep one costs the same however many are kept.

Starts that were missed, of jobs that were due, whose grace passed and that did not start, are an alert. Three looks
find them, and none costs anything per stored job. At a start, and when the loop comes late to its alarm (a sleeping
machine, a database that was away, a blocked loop), before anything that waited is started: so an outage is one incident
however many jobs it held up. With every sweep, for what is due or waits for a lane for longer than its grace. And
whenever a slot is let go because its time has passed. One job is an incident of its own; several found at once are one.
It is over once each of them has started, or is not wanted any more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import alert_rules, close_alert, open_alert
from wakeful.kernel.rules.alerting import many
from wakeful.kernel.rules.parking import is_lane
from wakeful.kernel.rules.passing import MISSED, Passed, has_grid, is_grid
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.trigger_history import TriggerHistory, has_slot, members_of
from wakeful.store.stretches import RAN, Around, SlotSpan, Stretch
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.records import AlertRow, JobDef, JobState, RunRow
    from wakeful.triggers import Trigger


DAY_MS = 86_400_000
LATEST = 2**62
PER_DAY = 8  # stretches of one job and fate that begin on one day; further ones share the last one's row
FULL = 200  # slots that may share a row: to add one, the row is read and written as a whole

Adjacent = Callable[[Stretch, Stretch], bool]
Members = Callable[[Stretch], list[int] | None]


class _Row:
    """A stretch that others may join; its pattern is read and written once, however many do."""

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch
        self._slots: list[int] | None = None  # where others share it

    @property
    def is_whole(self) -> bool:
        """Whether it has all slots of its trigger from the first to the last."""
        return self._slots is None and self.stretch.pattern is None

    def extend(self, other: Stretch) -> None:
        """`other` follows on the grid, with none between them."""
        self.stretch = self.stretch._replace(last_slot=other.last_slot, slots=self.stretch.slots + other.slots)

    def unite(self, other: Stretch, members: Members) -> None:
        """Both in one row; where it cannot be known which slots they have, only how many."""
        mine, others = self._slots or members(self.stretch), members(other)
        end = max(self.stretch.last_slot, other.last_slot)
        if mine is None or others is None:
            total = self.stretch.slots + other.slots
            self.stretch, self._slots = self.stretch._replace(last_slot=end, slots=total, pattern=None), None
            return
        if others[0] > mine[-1]:
            mine.extend(others)
        self._slots = mine if others[-1] == mine[-1] else sorted({*mine, *others})
        self.stretch = self.stretch._replace(last_slot=end, slots=len(self._slots))

    def written(self) -> list[Stretch]:
        """As it is stored: in several rows, where one would hold too many slots."""
        if self._slots is None:
            return [self.stretch]
        size = len(self._slots) // -(-len(self._slots) // FULL) + 1
        return [self.stretch.of_slots(self._slots[at : at + size]) for at in range(0, len(self._slots), size)]


def join(
    stretches: Sequence[Stretch], adjacent: Adjacent, members: Members = Stretch.listed, per_day: int = PER_DAY
) -> list[Stretch]:
    """As few stretches as say the same: `stretches` of one job and fate, in any order.

    `members`: the slots of a stretch, where they can be known.
    """
    rows: list[_Row] = []
    begun: dict[int, int] = defaultdict(int)  # how many stretches begin on a day
    for stretch in sorted(stretches, key=lambda item: (item.since, item.first_slot, -item.last_slot)):
        last = rows[-1].stretch if rows else None
        day = stretch.first_slot // DAY_MS
        if last is not None and last.since == stretch.since:
            whole = rows[-1].is_whole and stretch.pattern is None
            if stretch.first_slot > last.last_slot and whole and adjacent(last, stretch):
                rows[-1].extend(stretch)
                continue
            crowded = begun[day] >= per_day and stretch.last_slot // DAY_MS == day == last.first_slot // DAY_MS
            if stretch.first_slot <= last.last_slot or (crowded and last.slots + stretch.slots <= FULL):
                rows[-1].unite(stretch, members)
                continue
        begun[day] += 1
        rows.append(_Row(stretch))
    return [stretch for row in rows for stretch in row.written()]


class _Kept(NamedTuple):
    """Slots of a job that met one fate under one trigger."""

    job_id: int
    fate: str
    since: int


def keep_passed(tx: Transaction, passes: Sequence[Passed]) -> None:
    """Keep what became of slots that have no run; the caller holds their jobs."""
    passes = [item for item in passes if not (item.again and was_run(tx, item.job_id, item.trigger, item.first_slot))]
    if not passes:
        return
    past = tx.stretches.past_triggers_of(sorted({item.job_id for item in passes}))
    new: dict[_Kept, list[Stretch]] = defaultdict(list)
    triggers: dict[_Kept, str] = {}
    for item in passes:
        history = TriggerHistory(past.get(item.job_id, ()), item.trigger)
        key = _Kept(item.job_id, item.fate, history.key_at(item.first_slot))
        new[key].append(Stretch(item.job_id, item.fate, item.first_slot, item.last_slot, item.slots, key.since))
        triggers[key] = history.trigger_at(item.first_slot)
    known: dict[_Kept, list[Stretch]] = defaultdict(list)
    for stretch in tx.stretches.near([_around(key, items, triggers[key]) for key, items in new.items()]):
        known[_Kept(stretch.job_id, stretch.fate, stretch.since)].append(stretch)
    old, made = list[Stretch](), list[Stretch]()
    for key, items in new.items():
        gone, changed = _changed(known[key], items, triggers[key])
        old += gone
        made += changed
    tx.stretches.replace(old, made)


def _around(key: _Kept, items: Sequence[Stretch], trigger: str) -> Around:
    """Which stretches may change: those that these touch, and on a grid all of their first day, as they are counted."""
    first, last = min(item.first_slot for item in items), max(item.last_slot for item in items)
    return Around(*key, first - first % DAY_MS if is_grid(trigger) else first, last)


def _changed(before: Sequence[Stretch], new: Sequence[Stretch], trigger: str) -> tuple[list[Stretch], list[Stretch]]:
    """The stretches of one job and fate that change, as they are and as they are to be."""
    grid = trigger_of(trigger)

    def adjacent(one: Stretch, other: Stretch) -> bool:
        # Slots that were run under another trigger, before the clock went back, lie between those of this one.
        follows = has_grid(grid) and grid.next_slot(one.last_slot) == other.first_slot
        return follows and _on_grid(grid, one.first_slot, one.last_slot, other.last_slot)

    per_day = PER_DAY if has_grid(grid) else 1
    joined = join([*before, *new], adjacent, lambda item: members_of(item, trigger), per_day)
    kept, stays = set(before), set(joined)
    return [item for item in before if item not in stays], [item for item in joined if item not in kept]


def _on_grid(grid: Trigger, *slots: int) -> bool:
    """Whether a trigger has all of these slots."""
    return all(grid.next_slot(slot - 1) == slot for slot in slots)


def take_back(tx: Transaction, job: JobDef, slot: int) -> int:
    """Take back that this slot and later ones have passed; returns the time up to which all others have."""
    history = TriggerHistory(tx.stretches.past_triggers(job.id), job.trigger)
    current = history.key_at(LATEST)
    old, new = list[Stretch](), list[Stretch]()
    for stretch in tx.stretches.within(job.id, SlotSpan(slot - 1, LATEST)):
        earlier = stretch.since != current  # its trigger was replaced: what passed then has passed
        if stretch.fate == RAN or (earlier and not has_slot(stretch, slot, history)):
            continue
        slots = members_of(stretch, history.trigger_behind(stretch)) or []
        left = [member for member in slots if member < slot or (earlier and member > slot)]
        old.append(stretch)
        if left:
            whole = stretch._replace(last_slot=left[-1], slots=len(left))
            new.append(whole if stretch.pattern is None and left[-1] < slot else stretch.of_slots(left))
    tx.stretches.replace(old, new)
    return max(slot - 1, history.current_since())


def keep_slots(tx: Transaction, runs: Sequence[RunRow]) -> None:
    """Keep the slots of runs that are about to be deleted; `runs` that never started were missed."""
    firsts = [run for run in runs if run.slot is not None and run.attempt == 1]  # a slot counts once, with all attempts
    if not firsts:
        return
    job_ids = sorted({run.job_id for run in firsts})
    tx.jobs.states(job_ids)  # locks what is known of these jobs' slots
    jobs = tx.jobs.definitions(job_ids)
    past = tx.stretches.past_triggers_of(job_ids)
    history = {job_id: TriggerHistory(past.get(job_id, ()), job.trigger) for job_id, job in jobs.items()}
    keep_passed(tx, [_pruned(run, history[run.job_id]) for run in firsts if run.job_id in history])


def _pruned(run: RunRow, history: TriggerHistory) -> Passed:
    slot = run.slot or 0
    return Passed(run.job_id, RAN if run.started_at is not None else MISSED, slot, slot, 1, history.trigger_at(slot))


def was_started(tx: Transaction, job: JobDef, state: JobState, slot: int) -> bool:
    """Whether the slot is on record; can only be once the clock went back or the trigger was changed."""
    ran = max(state.last_run_at or 0, state.last_slot or 0)
    if not ran or slot > max(ran, state.counted_to):
        return False
    return was_run(tx, job.id, job.trigger, slot)


def was_run(tx: Transaction, job_id: int, trigger: str, slot: int) -> bool:
    """Whether that slot of a job with this trigger was run, as far back as stretches are kept."""
    if tx.runs.has_slot(job_id, slot):
        return True
    found = tx.stretches.covering(job_id, slot, RAN)
    if not found:
        return False
    history = TriggerHistory(tx.stretches.past_triggers(job_id), trigger)
    return any(has_slot(stretch, slot, history) for stretch in found)


ALERT, SEVERAL = "missed", "jobs"
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
    for alert in tx.alerts.open_of(ALERT):
        if not _still_missed(tx, alert):
            close_alert(tx, context, ALERT, alert.key.partition(":")[2])
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
    known = {job_id: alert for alert in tx.alerts.open_of(ALERT) for job_id in _data(alert)["jobs"]}
    again = {known[late.job_id].key: known[late.job_id] for late in found.jobs if late.job_id in known}
    for alert in again.values():
        subject = alert.key.partition(":")[2]
        open_alert(tx, context, ALERT, subject, alert.message, job_id=alert.job_id)
    new = [late for late in found.jobs if late.job_id not in known]
    if not new:
        return
    count = found.total - (len(found.jobs) - len(new))
    grace = format_interval(alert_rules(tx).grace) + (f" ({why})" if why else "")
    if count == 1:
        (late,) = new
        message = f"{late.name} was due at {spoken(late.due_at)} and did not start within its grace of {grace}"
        open_alert(tx, context, ALERT, late.job_id, message, job_id=late.job_id, data=_text([late.job_id], 1))
        return
    before = next((alert for alert in tx.alerts.open_of(ALERT) if alert.job_id is None), None)
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
    open_alert(tx, context, ALERT, SEVERAL, message, data=_text(jobs, count))


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


def _still_missed(tx: Transaction, alert: AlertRow) -> bool:
    return bool(tx.jobs.not_started_since(_data(alert)["jobs"], alert.opened_at))


def _data(alert: AlertRow) -> dict[str, Any]:
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
