"""Jobs in the store: definitions, their hot state, and what starts after what."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from wakeful.store import alarms
from wakeful.store.alarms import LOOK_AGAIN_MS, NEAR_MS, Alarms
from wakeful.store.listing import BOTH, DECLARED, JOINED, STATUS_SQL, JobFilter, Listing, pair_of, shown
from wakeful.store.records import JOB_COLUMNS, STATE_COLUMNS, JobDef, JobState
from wakeful.store.rows import Rows

if TYPE_CHECKING:
    from wakeful.store.owners import Owned

__all__ = ["LOOK_AGAIN_MS", "NEAR_MS", "STATUS_SQL", "JobFilter", "Jobs"]

STARTED_COLUMNS = (
    "job_id", "due_at", "next_at", "slot", "run_id", "queued", "parked", "ready_at", "last_slot", "last_run_id",
    "last_run_at", "missed", "slot_runs", "backoff_until", "counted_to",
)  # fmt: skip
SETTLED_COLUMNS = (
    "job_id", "enabled", "paused", "due_at", "next_at", "slot", "run_id", "queued", "ready_at", "last_finished_at",
    "last_outcome", "last_error", "errors", "crashes", "missed", "backoff_until", "notes", "failing_since", "ended_at",
    "counted_to",
)  # fmt: skip
_ARMED = ("job_id", "due_at", "queued", "ready_at")
_STARTED = itemgetter(*map(STATE_COLUMNS.index, STARTED_COLUMNS))
_SETTLED = itemgetter(*map(STATE_COLUMNS.index, SETTLED_COLUMNS))


class Jobs(Alarms, Listing):
    """Verbs on jobs; each call is part of the transaction it was made in."""

    _jobs = Rows("jobs", JobDef)

    def overdue(self, now: int, hidden: Sequence[str] = ()) -> int:
        """How many jobs are due and not yet handled by the engine, without hidden kinds."""
        found = int(self._session.rows(alarms.OVERDUE, (now,))[0][0])
        for kind in hidden:
            sql = f"SELECT count(*) FROM {JOINED} WHERE j.kind = ? AND s.due_at <= ?"
            found -= self._count(sql, kind, now)
        return found

    def late(
        self, since: int, hidden: Sequence[str], limit: int, *, after: int = 0, but: str | None = None
    ) -> list[tuple[int, str, int]]:
        """(job, name, since when) of jobs that have been due since that time or longer, the first `limit` by time.

        But for jobs in progress, those that were ready and only waited in a line, those that run elsewhere, and those
        of hidden kinds. `after`: of these, what became due later. `but`: what was not refused for that reason since.
        """
        refused = "SELECT 1 FROM skips k WHERE k.job_id = s.job_id AND k.reason = ? AND k.last_at >= s.due_at"
        only, given = f" AND s.due_at > ? AND NOT EXISTS ({refused})", (after, but or "")
        rows = self._session.rows(
            f"SELECT s.job_id, j.name, s.due_at {self._late(hidden)}{only} "
            "ORDER BY p.level DESC, s.due_at, s.job_id LIMIT ?",
            (since, *hidden, *given, limit),
        )
        return sorted(((int(job_id), str(name), int(due_at)) for job_id, name, due_at in rows), key=itemgetter(2, 0))

    def late_count(self, since: int, hidden: Sequence[str]) -> int:
        """How many these are."""
        return self._count(f"SELECT count(*) {self._late(hidden)}", since, *hidden)

    @staticmethod
    def _late(hidden: Sequence[str]) -> str:
        # CROSS JOIN keeps the levels in the outer loop, so that only due jobs are read.
        return (
            "FROM priorities p CROSS JOIN job_state s CROSS JOIN jobs j WHERE s.priority = p.level "
            "AND s.due_at IS NOT NULL AND s.due_at <= ? AND s.run_id IS NULL AND s.ready_at IS NULL "
            "AND j.id = s.job_id "
            f"AND j.removed_at IS NULL{shown('j.kind', hidden)}"
        )

    def not_started_since(self, job_ids: Sequence[int], since: int) -> list[int]:
        """Those of the jobs that have not started since that time, and that a person still wants to."""
        columns = ("job_id", "last_run_at", "enabled", "paused", "ended_at")
        rows = self._session.select_in(columns, "job_state", "job_id", job_ids)
        left = [
            int(job_id)
            for job_id, last_run_at, enabled, paused, ended_at in rows
            if (last_run_at is None or last_run_at < since) and not paused and (enabled or ended_at is not None)
        ]
        kept = self._session.select_in(("id",), "jobs", "id", left, only="removed_at IS NULL") if left else []
        return sorted(int(row[0]) for row in kept)

    def states(self, job_ids: Sequence[int]) -> dict[int, JobState]:
        """The current state of those jobs, locked until this transaction ends."""
        rows = self._session.select_in(STATE_COLUMNS, "job_state", "job_id", job_ids, lock=True)
        return {row[0]: tuple.__new__(JobState, row) for row in rows}  # as in `pair_of`

    def parts_of_states(self, job_ids: Sequence[int], columns: Sequence[str]) -> dict[int, tuple[object, ...]]:
        """Some columns of the states of those jobs, which this transaction has locked."""
        rows = self._session.select_in(("job_id", *columns), "job_state", "job_id", job_ids)
        return {row[0]: tuple(row[1:]) for row in rows}

    def state_of(self, job_id: int) -> JobState | None:
        """The state of a job for descriptions: read without a lock."""
        rows = self._session.select_in(STATE_COLUMNS, "job_state", "job_id", [job_id])
        return JobState._make(rows[0]) if rows else None

    def by_id(self, job_id: int) -> tuple[JobDef, JobState] | None:
        """Also a removed job's: its history stays."""
        return self._one("j.id = ?", job_id)

    def by_name(self, name: str) -> tuple[JobDef, JobState] | None:
        return self._one("j.name = ? AND j.removed_at IS NULL", name) if name.isprintable() else None

    def removed_by_name(self, name: str) -> tuple[JobDef, JobState] | None:
        """The last job that had this name and was removed."""
        if not name.isprintable():
            return None
        return self._one("j.name = ? AND j.removed_at IS NOT NULL ORDER BY j.removed_at DESC, j.id DESC LIMIT 1", name)

    def names(self, names: Sequence[str]) -> dict[str, int]:
        """Which of these names are taken, and by which job."""
        rows = self._session.select_in(("name", "id"), "jobs", "name", names, only="removed_at IS NULL")
        return {row[0]: row[1] for row in rows}

    def taken(self, names: Sequence[str]) -> dict[str, int]:
        """As `names`, for jobs that are to be added and whose names are expected to be free.

        A question to a server is saved where they are: its index refuses a name that is taken, and the transaction is
        run again, and asks.
        """
        return self.names(names) if self._session.exclusive or self._session.repeated else {}

    def add(self, pairs: Sequence[tuple[JobDef, JobState]]) -> None:
        states = [state for _, state in pairs]
        self._announce(states)
        self._open_levels(states)
        self._session.insert_soon("jobs", JOB_COLUMNS, [definition for definition, _ in pairs])
        self._session.insert_soon("job_state", STATE_COLUMNS, states)

    def save(self, states: Sequence[JobState]) -> None:
        """Write whole states; the caller read them in this transaction."""
        if states:
            self._announce(states)
            self._open_levels(states)
            self._session.update_many("job_state", STATE_COLUMNS, states)

    def save_started(self, states: Sequence[JobState]) -> None:
        """Write what a start changes; half the columns, and every run pays for them."""
        if states:
            self._session.update_many("job_state", STARTED_COLUMNS, list(map(_STARTED, states)))

    def save_armed(self, states: Sequence[JobState]) -> None:
        """Write only when they are looked at, and how many of their runs wait, since when."""
        self._announce(states)
        rows = [(one.job_id, one.due_at, one.queued, one.ready_at) for one in states]
        self._session.update_many("job_state", _ARMED, rows)

    def save_settled(self, states: Sequence[JobState]) -> None:
        """Write what the end of a run changes."""
        if states:
            self._session.update_many("job_state", SETTLED_COLUMNS, list(map(_SETTLED, states)))

    def laned(self, after: int, limit: int) -> list[JobDef]:
        """The jobs that may have lanes, by id from `after` on; reads them all, and is for once in a store's life."""
        rest = "WHERE id > ? AND removed_at IS NULL AND options LIKE ? ORDER BY id LIMIT ?"
        return self._jobs.all(rest, after, '%"lanes"%', limit)

    def stored_after(self, moment: int, after: int, limit: int) -> list[JobDef]:
        """The jobs that were added, or changed, or given another trigger after that moment, by id; reads them all.

        Whatever is done to a job now, by an earlier clock, hides when it was last changed.
        """
        retimed = "id IN (SELECT job_id FROM past_triggers WHERE until > ?)"
        stored = f"(updated_at > ? OR created_at > ? OR {retimed})"
        rest = f"WHERE id > ? AND {stored} AND removed_at IS NULL ORDER BY id LIMIT ?"
        return self._jobs.all(rest, after, moment, moment, moment, limit)

    def last_added(self, after: int) -> int:
        """When the newest job was added, by the clock as it was then; 0 where its id is not above `after`."""
        return self._count("SELECT created_at FROM jobs WHERE id > ? ORDER BY id DESC LIMIT 1", after)

    def define(self, *definitions: JobDef) -> None:
        if definitions:
            self._session.update_many("jobs", JOB_COLUMNS, definitions)

    def forget(self, job_ids: Sequence[int], tables: Sequence[str] = ()) -> None:
        """Delete jobs whose whole history is gone, and their rows in these further tables."""
        if not job_ids:
            return
        self._session.delete_in("jobs", "id", job_ids)
        for table in ("job_state", "job_stops", "proposals", "skips", "chains", "stretches", "past_triggers", *tables):
            self._session.delete_in(table, "job_id", job_ids)

    def requeue_parked(self, parked: str, now: int, limit: int) -> int:
        """Requeue the first of the jobs that wait for `parked`; how many there were."""
        back = self._session.rows(
            # Due since it first was: so it comes before jobs that became due while it waited. Where the clock was set
            # back meanwhile, that is in the future, and it is due now.
            "UPDATE job_state SET due_at = CASE WHEN ready_at < ? THEN ready_at ELSE ? END, parked = NULL "
            "WHERE job_id "
            + self._session.among(
                "SELECT job_id FROM job_state WHERE parked = ? ORDER BY priority DESC, ready_at, job_id LIMIT ?"
            )
            + " RETURNING due_at",
            (now, now, parked, limit),
        )
        if back and self._session.watermark is not None:
            self._session.watermark.armed(min(int(due_at) for (due_at,) in back))
        return len(back)

    def set_lines_back(self, now: int, ms: int) -> None:
        """The clock was set back by that much: those who wait since a time that is ahead now keep their order."""
        waiting = "SELECT job_id FROM job_state WHERE parked IS NOT NULL AND ready_at > ?"
        sql = f"UPDATE job_state SET ready_at = ready_at - ? WHERE job_id {self._session.among(waiting)}"
        self._session.execute(sql, (ms, now))

    def parked_counts(self, hidden: Sequence[str] = ()) -> dict[str, int]:
        """How many jobs wait, by what they wait for, without hidden kinds."""
        source = JOINED if hidden else "job_state s"
        sql = f"SELECT s.parked, count(*) FROM {source} WHERE s.parked IS NOT NULL{shown('j.kind', hidden)} "
        rows = self._session.rows(sql + "GROUP BY s.parked ORDER BY s.parked", tuple(hidden))
        return {str(key): int(count) for key, count in rows}

    def lines(self, hidden: Sequence[str] = ()) -> list[tuple[str, int, int]]:
        """What jobs wait for, how many, and since when the first; without hidden kinds."""
        source = JOINED if hidden else "job_state s"
        sql = (
            f"SELECT s.parked, count(*), min(s.ready_at) FROM {source} WHERE s.parked IS NOT NULL "
            f"AND s.ready_at IS NOT NULL{shown('j.kind', hidden)} GROUP BY s.parked ORDER BY s.parked"
        )
        return [(str(key), int(jobs), int(since)) for key, jobs, since in self._session.rows(sql, tuple(hidden))]

    def oldest_alarm(self) -> int | None:
        """The first alarm that is set, however long its time is past."""
        found = [due_at for _, due_at in self._session.rows(*alarms.first_alarms(None)) if due_at is not None]
        return min(found, default=None)

    def has_kind(self, kind: str) -> bool:
        """Whether there is a job of that kind."""
        return bool(self._session.rows("SELECT 1 FROM jobs WHERE kind = ? AND removed_at IS NULL LIMIT 1", (kind,)))

    def kinds(self) -> dict[int, str]:
        """The kind of every job that is not removed."""
        return {int(row[0]): str(row[1]) for row in self._session.bulk(("id", "kind"), "jobs WHERE removed_at IS NULL")}

    def of_kinds(self, kinds: Sequence[str]) -> list[JobDef]:
        """All jobs of these kinds that are not removed."""
        rows = self._session.select_in(JOB_COLUMNS, "jobs", "kind", kinds, only="removed_at IS NULL") if kinds else []
        return [JobDef._make(row) for row in rows]

    def any_shown(self, hidden: Sequence[str] = ()) -> bool:
        """Whether there is a job of any but hidden kinds."""
        sql = f"SELECT 1 FROM jobs j WHERE j.removed_at IS NULL{shown('j.kind', hidden)} LIMIT 1"
        return bool(self._session.rows(sql, tuple(hidden)))

    def parked_on(self, key: str, since: int, limit: int) -> list[tuple[JobDef, JobState]]:
        """Jobs that have waited for `key` since that time or longer, in the order in which they go."""
        ask = alarms.parked_alone if self._session.exclusive else alarms.parked_shared
        return [pair_of(row) for row in self._session.rows(*ask(BOTH, key, since, limit))]

    def chain(self, upstream: str, job_id: int, on_end: str) -> None:
        self._session.execute(
            "INSERT INTO chains (upstream, job_id, on_end) VALUES (?, ?, ?) "
            "ON CONFLICT (upstream, job_id) DO UPDATE SET on_end = excluded.on_end",
            (upstream, job_id, on_end),
        )

    def unchain(self, job_id: int) -> None:
        self._session.execute("DELETE FROM chains WHERE job_id = ?", (job_id,))

    def upstream(self, job_id: int) -> str | None:
        """The name of the job this one starts after."""
        return self._text("SELECT upstream FROM chains WHERE job_id = ? LIMIT 1", job_id)

    def any_chains(self) -> bool:
        return bool(self._session.rows("SELECT 1 FROM chains LIMIT 1"))

    def chained(self, upstream: str) -> list[tuple[int, str]]:
        """(job, on) of everything that starts after the job of that name ends."""
        rows = self._session.rows("SELECT job_id, on_end FROM chains WHERE upstream = ? ORDER BY job_id", (upstream,))
        return [(int(job_id), str(on_end)) for job_id, on_end in rows]

    def finished(
        self, before: int, cursor: tuple[int, int], look_at: int, limit: int
    ) -> tuple[list[int], tuple[int, int] | None]:
        """One-shot and removed jobs that were over before that time: they may be forgotten with their runs.

        Never one that runs or waits to, nor one that a program declares or a file owns: it would only be added again.
        At most `limit`, of the next `look_at` that are over; and where to continue (None: those were the last).
        """
        over = self._session.rows(
            "SELECT s.ended_at, s.job_id, CASE WHEN s.enabled = 0 AND s.run_id IS NULL AND s.queued = 0 AND "
            "(s.last_finished_at IS NULL OR s.last_finished_at < ?) AND (j.removed_at IS NOT NULL OR "
            f"(j.trigger LIKE '{{\"type\":\"once\"%' AND j.source <> 'file' AND NOT ({DECLARED}))) THEN 1 ELSE 0 END "
            "FROM (SELECT * FROM job_state WHERE ended_at IS NOT NULL AND ended_at < ? AND (ended_at, job_id) > (?, ?) "
            "ORDER BY ended_at, job_id LIMIT ?) s JOIN jobs j ON j.id = s.job_id ORDER BY s.ended_at, s.job_id",
            (before, before, *cursor, look_at),
        )
        found: list[int] = []
        for ended_at, job_id, forgettable in over:
            if forgettable:
                found.append(int(job_id))
            if len(found) == limit:
                return self._at_rest(found), (int(ended_at), int(job_id))
        return self._at_rest(found), (int(over[-1][0]), int(over[-1][1])) if len(over) == look_at else None

    def _at_rest(self, job_ids: list[int]) -> list[int]:
        """The jobs that still have no run in progress; locked, so that none is started before they are removed."""
        states = self.states(job_ids) if job_ids else {}
        return [job_id for job_id in job_ids if (state := states.get(job_id)) and not (state.run_id or state.queued)]

    def count_of(self, owned: Owned) -> int:
        """How many jobs an owner has."""
        condition, values = owned.condition("j")
        sql = f"SELECT count(*) FROM jobs j WHERE {condition} AND j.removed_at IS NULL"
        return int(self._session.rows(sql, values)[0][0])

    def bytes_of(self, owned: Owned) -> int:
        """What an owner has stored: definitions, removed ones too while they are kept, and payloads of single runs."""
        condition, values = owned.condition("j")
        jobs = f"SELECT sum(length(trigger) + length(payload) + length(options)) FROM jobs j WHERE {condition}"
        runs = (
            "SELECT sum(length(d.payload)) FROM jobs j JOIN runs r ON r.job_id = j.id "
            f"JOIN run_details d ON d.run_id = r.id WHERE {condition} AND d.payload IS NOT NULL"
        )
        return sum(int(self._session.rows(sql, values)[0][0] or 0) for sql in (jobs, runs))

    def disown(self, owned: Owned, now: int) -> int:
        """Take the owner from its jobs, removed ones included; how many there were."""
        condition, values = owned.condition("jobs")
        mine = f"(SELECT id FROM jobs WHERE {condition})"
        self._session.execute(f"UPDATE job_state SET revision = revision + 1 WHERE job_id IN {mine}", values)
        return self._session.execute(f"UPDATE jobs SET owner = NULL, updated_at = ? WHERE {condition}", (now, *values))

    def _one(self, where: str, value: object) -> tuple[JobDef, JobState] | None:
        sql = f"SELECT {', '.join(BOTH)} FROM {JOINED} WHERE {where}{self._session.lock_clause}"
        found = self._session.rows(sql, (value,))
        return pair_of(found[0]) if found else None

    def _open_levels(self, states: Sequence[JobState]) -> None:
        """Before they are written: what is due is asked for by priority, and theirs are among those asked about."""
        found = {state.priority for state in states} - {0}
        if found:
            # In one order, so that two transactions with new levels do not deadlock.
            rows = [(level,) for level in sorted(found)]
            self._session.insert_many("priorities", ("level",), rows, "ON CONFLICT DO NOTHING")

    def _announce(self, states: Sequence[JobState]) -> None:
        """Before they are written: notify the other nodes, unless they will look by themselves before these are due."""
        # Only here, where people and programs change jobs. What a node arms while it settles, it looks at itself.
        alarms = [state.due_at for state in states if state.due_at is not None]
        if alarms and not self._session.exclusive and self._sooner(min(alarms)):
            self._session.announce()

    def _sooner(self, due_at: int) -> bool:
        """Whether the nodes' next alarm is later. What is near is, without asking: a second is how long they may sleep
        on an alarm that was taken away meanwhile.
        """
        if due_at <= self._session.now + NEAR_MS:
            return True
        first = self.next_alarm()
        return first is None or due_at < first
