"""Runs in the store: the one history of everything that was started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.store.listing import shown
from wakeful.store.open_runs import OpenRuns
from wakeful.store.records import DETAIL_COLUMNS, RUN_COLUMNS, Finish, Given, RunDetails, RunRow
from wakeful.store.rows import where

if TYPE_CHECKING:
    from wakeful.store.owners import Owned

#: History that may go: done, and not the job's last run.
_PRUNABLE = (
    "r.finished_at IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM job_state s WHERE s.job_id = r.job_id AND s.last_run_id = r.id)"
)
_FINISH = ("id", "status", "outcome", "started_at", "finished_at", "lanes")
_ACTIVATE = ("id", "kind", "status", "started_at", "node", "lanes")


TOGETHER = 50  # jobs that one statement asks about


class RunFilter(NamedTuple):
    """Which runs to list, the newest first; None leaves that side open. Ids are in the order the runs were made."""

    job_id: int | None = None
    kind: str | None = None
    status: str | None = None
    outcome: str | None = None
    reason: str | None = None
    phase: str | None = None
    node: str | None = None  # by name
    from_id: int | None = None
    before_id: int | None = None
    limit: int = 50
    hidden: tuple[str, ...] = ()  # kinds that are left out unless one, or a job, is requested
    owned: Owned | None = None  # only those of jobs that a caller may see


class Ended(NamedTuple):
    """How a run ended, and how long it took; no outcome while it is open."""

    id: int
    job_id: int
    status: str
    outcome: str | None
    started_at: int | None
    finished_at: int | None

    @property
    def took(self) -> int | None:
        """Milliseconds from its start to its end."""
        return None if self.started_at is None or self.finished_at is None else self.finished_at - self.started_at


class Used(NamedTuple):
    """A run that was started and has ended: how, how long it took in milliseconds, and what it used, as JSON."""

    id: int
    job_id: int
    outcome: str
    took: int
    usage: str | None


class Runs(OpenRuns):
    """Verbs on runs; each call is part of the transaction it was made in."""

    def add(self, runs: Sequence[RunRow]) -> None:
        """Insert runs. A slot, an attempt or a retry that was already made is refused by the schema itself."""
        if runs:
            self._ahead.clear()
            self._session.insert_soon("runs", RUN_COLUMNS, runs)

    def activate(self, runs: Sequence[RunRow]) -> None:
        """Queued runs become active, with the node they carry."""
        rows = [(run.id, run.kind, run.status, run.started_at, run.node, run.lanes) for run in runs]
        self._session.update_many("runs", _ACTIVATE, rows)

    def finish(self, ends: Sequence[Finish]) -> None:
        """Write the end of runs; the caller has checked in this transaction that they are still its own."""
        if ends:
            self._ahead.clear()
            self._session.update_many("runs", _FINISH, ends)

    def detail(self, details: Sequence[RunDetails]) -> None:
        """Add to what runs have to say; a field that is None leaves what is there."""
        if not details:
            return
        keep = ", ".join(f"{name} = coalesce(excluded.{name}, run_details.{name})" for name in DETAIL_COLUMNS[1:])
        self._session.insert_many("run_details", DETAIL_COLUMNS, details, f"ON CONFLICT (run_id) DO UPDATE SET {keep}")

    def inherit(self, run_id: int, from_id: int, *, approvals: bool = True) -> None:
        """A further attempt is made with what the first was given, and with what people said to it."""
        approval = "approval" if approvals else "NULL"
        self._session.execute(
            f"INSERT INTO run_details (run_id, payload, approval) SELECT ?, payload, {approval} FROM run_details "
            f"WHERE run_id = ? AND (payload IS NOT NULL OR {approval} IS NOT NULL)",
            (run_id, from_id),
        )

    def ask(self, run_id: int, phase: str, payload: str, approval: str) -> None:
        """The run waits for a person's answer about this payload; one it was given by hand stays."""
        self._session.execute("UPDATE runs SET phase = ? WHERE id = ?", (phase, run_id))
        self._session.execute(
            "INSERT INTO run_details (run_id, payload, approval) VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
            "payload = coalesce(run_details.payload, excluded.payload), approval = excluded.approval",
            (run_id, payload, approval),
        )

    def has_slot(self, job_id: int, slot: int) -> bool:
        """Whether that slot of the job has a run on record."""
        sql = "SELECT 1 FROM runs WHERE job_id = ? AND slot = ? LIMIT 1"
        return bool(self._session.rows(sql, (job_id, slot)))

    def get(self, run_id: int) -> RunRow | None:
        return self._runs.one("WHERE id = ?", run_id)

    def details(self, run_id: int) -> RunDetails | None:
        return self._details.one("WHERE run_id = ?", run_id)

    def given(self, run_id: int) -> Given:
        """What the run starts with besides its job's payload."""
        details = self.details(run_id)
        return Given(details.payload, details.approval) if details is not None else Given()

    def adopt(self, run_ids: Sequence[int], node_id: int) -> None:
        """They are that node's from now on."""
        self._session.update_many("runs", ("id", "node"), [(run_id, node_id) for run_id in run_ids])

    def to_cancel(self) -> list[int]:
        """Runs in progress whose cancellation was requested."""
        sql = "SELECT id FROM runs WHERE finished_at IS NULL AND status = 'active' AND cancel = 1 ORDER BY id + 0"
        return self._column(sql)

    def asking(self, run_ids: Sequence[int]) -> set[int]:
        """Which of these runs wait for a person's answer."""
        only = "status = 'waiting' AND phase = 'approval'"
        return {int(row[0]) for row in self._session.select_in(("id",), "runs", "id", run_ids, only=only)}

    def ask_cancel(self, run_id: int) -> None:
        self._session.execute("UPDATE runs SET cancel = 1 WHERE id = ? AND finished_at IS NULL", (run_id,))
        self._session.announce()

    def goes_on(self, run_id: int, phase: str | None) -> bool:
        """Record the phase of an active run that continues although it should have ended; False if it has ended."""
        sql = "UPDATE runs SET phase = ? WHERE id = ? AND finished_at IS NULL AND status = 'active'"
        return bool(self._session.execute(sql, (phase, run_id)))

    def reschedule(self, run_id: int, due_at: int, reason: str | None = None) -> None:
        """A run that waits is due at another time, and perhaps for another reason."""
        self._ahead.clear()
        sql = "UPDATE runs SET due_at = ?, reason = coalesce(?, reason) WHERE id = ? AND status = 'queued'"
        self._session.execute(sql, (due_at, reason, run_id))

    def successor(self, run_id: int) -> int | None:
        """The run that tried again what this one did not finish."""
        return self._number("SELECT id FROM runs WHERE retry_of = ?", run_id)

    def attempts_without_failure(self, run_id: int) -> int:
        """Of this run and those it continues, as far back as they are on record, how many did not fail."""
        sql = (
            "WITH RECURSIVE chain(retry_of, outcome) AS (SELECT retry_of, outcome FROM runs WHERE id = ? UNION ALL "
            "SELECT runs.retry_of, runs.outcome FROM runs JOIN chain ON runs.id = chain.retry_of) "
            "SELECT COUNT(*) FROM chain WHERE outcome NOT IN ('error', 'timeout')"
        )
        return self._count(sql, run_id)

    def recovered(self, run: RunRow) -> RunRow:
        """The run that this one recovers, however often it was cut off, as far back as is on record; else itself."""
        while run.reason == "recovery" and run.retry_of is not None and (before := self.get(run.retry_of)) is not None:
            run = before
        return run

    def log(
        self,
        job_id: int | None,
        limit: int,
        before: int | None = None,
        status: str | None = None,
        *,
        hidden: Sequence[str] = (),
    ) -> list[RunRow]:
        """The newest runs first, of one job, or of all jobs except hidden kinds."""
        kinds = shown("kind", hidden).removeprefix(" AND "), tuple(hidden) or None if job_id is None else None
        clause, params = where([("job_id = ?", job_id), ("id < ?", before), ("status = ?", status), kinds])
        # Without the + the planner walks the whole table backwards to find one job's few runs.
        order = "id" if job_id is None else "id + 0"
        return self._runs.all(f"{clause} ORDER BY {order} DESC LIMIT ?", *params, limit)

    def matching(self, wanted: RunFilter) -> list[RunRow]:
        """The newest that match, newest first."""
        conditions: list[tuple[str, Any]] = [
            ("r.job_id = ?", wanted.job_id),
            ("r.kind = ?", wanted.kind),
            ("r.status = ?", wanted.status),
            ("r.outcome = ?", wanted.outcome),
            ("r.reason = ?", wanted.reason),
            ("r.phase = ?", wanted.phase),
            ("r.node IN (SELECT n.id FROM nodes n WHERE n.name = ?)", wanted.node),
            ("r.id >= ?", wanted.from_id),
            ("r.id < ?", wanted.before_id),
        ]
        if wanted.hidden and wanted.kind is None and wanted.job_id is None:
            conditions.append((shown("r.kind", wanted.hidden).removeprefix(" AND "), wanted.hidden))
        if wanted.owned is not None:
            condition, values = wanted.owned.condition("j")
            conditions.append((f"EXISTS (SELECT 1 FROM jobs j WHERE j.id = r.job_id AND {condition})", tuple(values)))
        is_open = wanted.status is not None and wanted.status != "done"
        conditions.append(("r.finished_at IS NULL", () if is_open else None))
        clause, params = where(conditions)
        # As in `log`: where another index finds the few, the planner must not walk all runs in their order.
        order = "r.id + 0" if is_open or wanted.job_id is not None else "r.id"
        return self._runs.joined("r", f"{clause} ORDER BY {order} DESC LIMIT ?", *params, wanted.limit)

    def last_of(self, job_ids: Sequence[int], number: int) -> dict[int, list[Ended]]:
        """The last runs of each of these jobs, the newest first."""
        found: dict[int, list[Ended]] = {}
        one = (
            f"SELECT * FROM (SELECT {', '.join(Ended._fields)} FROM runs WHERE job_id = ? "
            f"ORDER BY id + 0 DESC LIMIT {int(number)}) AS last"
        )
        for start in range(0, len(job_ids), TOGETHER):
            asked = job_ids[start : start + TOGETHER]
            for row in self._session.rows(" UNION ALL ".join([one] * len(asked)), asked):
                found.setdefault(row[1], []).append(Ended._make(row))
        return found

    def used_by(self, job_ids: Sequence[int], number: int, *, reporting: bool = False) -> dict[int, list[Used]]:
        """The last runs of each of these jobs that were started and have ended, the newest first.

        With `reporting`, only those of them that reported what they used.
        """
        found: dict[int, list[Used]] = {}
        details = "JOIN run_details d ON d.run_id = last.id" + (" WHERE d.usage IS NOT NULL" if reporting else "")
        one = (
            "SELECT last.*, d.usage FROM (SELECT id, job_id, outcome, finished_at - started_at FROM runs "
            "WHERE job_id = ? AND outcome IS NOT NULL AND started_at IS NOT NULL AND finished_at IS NOT NULL "
            f"ORDER BY id + 0 DESC LIMIT {int(number)}) AS last {'' if reporting else 'LEFT '}{details}"
        )
        for start in range(0, len(job_ids), TOGETHER):
            asked = job_ids[start : start + TOGETHER]
            for row in self._session.rows(" UNION ALL ".join([one] * len(asked)), asked):
                found.setdefault(row[1], []).append(Used._make(row))
        # A planner may join by a hash, and then the order of the selected runs is lost.
        return {job_id: sorted(runs, key=lambda run: run.id, reverse=True) for job_id, runs in found.items()}

    def outcomes(self, from_id: int, hidden: Sequence[str] = ()) -> dict[str, int]:
        """How the runs that were made from that id on ended, counted; none of hidden kinds."""
        which = f"id >= ? AND outcome IS NOT NULL{shown('kind', hidden)}"
        sql = f"SELECT outcome, count(*) FROM runs WHERE {which} GROUP BY outcome"
        return {str(outcome): int(count) for outcome, count in self._session.rows(sql, (from_id, *hidden))}

    def settled_twice(self, from_id: int, reasons: Sequence[str]) -> int:
        """How many slots have more than one success among the runs made from that id on for one of these reasons."""
        sql = (
            "SELECT count(*) FROM (SELECT job_id FROM runs WHERE id >= ? AND outcome = 'success' AND slot IS NOT NULL "
            f"AND reason IN ({', '.join('?' * len(reasons))}) GROUP BY job_id, slot HAVING count(*) > 1) twice"
        )
        return int(self._column(sql, from_id, *reasons)[0])

    def started_count(self, from_id: int, limit: int, hidden: Sequence[str] = ()) -> tuple[int, int]:
        """Of the newest `limit` runs made from that id on: how many began, hidden kinds aside; how many there were."""
        sql = (
            f"SELECT count(CASE WHEN started_at IS NOT NULL{shown('kind', hidden)} THEN 1 END), count(*) "
            "FROM (SELECT kind, started_at FROM runs WHERE id >= ? ORDER BY id DESC LIMIT ?) newest"
        )
        began, looked_at = self._session.rows(sql, (*hidden, from_id, limit))[0]
        return int(began), int(looked_at)

    def open_counts(self, hidden: Sequence[str] = ()) -> dict[str, int]:
        """How many runs are not done, by what they are doing; those that wait for a person under their phase."""
        sql = (
            "SELECT CASE WHEN status = 'waiting' AND phase = 'approval' THEN phase ELSE status END, count(*) FROM runs "
            f"WHERE finished_at IS NULL{shown('kind', hidden)} GROUP BY 1"
        )
        return {str(status): int(count) for status, count in self._session.rows(sql, tuple(hidden))}

    def lateness(self, from_id: int, limit: int, hidden: Sequence[str] = ()) -> list[int]:
        """How late the newest starts by time were, in milliseconds; of those made from that id on."""
        sql = (
            "SELECT started_at - due_at FROM runs WHERE id >= ? AND started_at IS NOT NULL AND reason = 'schedule'"
            f"{shown('kind', hidden)} ORDER BY id DESC LIMIT ?"
        )
        return self._column(sql, from_id, *hidden, limit)

    def durations(self, job_id: int, since: int) -> list[tuple[str, int | None]]:
        """(outcome, milliseconds) of the job's runs that ended at or after `since`."""
        rows = self._session.rows(
            "SELECT outcome, finished_at - started_at FROM runs "
            "WHERE job_id = ? AND finished_at IS NOT NULL AND finished_at >= ? ORDER BY id + 0",
            (job_id, since),
        )
        return [(str(outcome), duration) for outcome, duration in rows]

    def older(self, before_id: int, cursor: int, limit: int) -> tuple[list[RunRow], int]:
        """Done runs below `before_id` that may be deleted, from `cursor` on; and where to continue (0: finished).

        A job's last run stays, and so does every run of a chain that is still open.
        """
        rows = self._session.rows(
            # Joined to these few: asked with EXISTS, the server reads the states of all jobs to answer it.
            f"SELECT r.finished_at IS NOT NULL AND coalesce(s.last_run_id, 0) <> r.id, {self._runs.of('r')} "
            f"FROM (SELECT {self._runs.columns} FROM runs WHERE id > ? AND id < ? ORDER BY id LIMIT ?) r "
            "LEFT JOIN job_state s ON s.job_id = r.job_id ORDER BY r.id",
            (cursor, before_id, limit),
        )
        chained = self._continued()
        found = [RunRow._make(row[1:]) for row in rows if row[0] and row[1] not in chained]
        return found, int(rows[-1][1]) if len(rows) == limit else 0

    def open_below(self, before_id: int) -> set[int]:
        """The runs below `before_id` that have not ended."""
        return set(self._column("SELECT id FROM runs WHERE finished_at IS NULL AND id < ?", before_id))

    def older_of(self, job_id: int, before_id: int, limit: int) -> list[RunRow]:
        """The job's done runs below `before_id` that may be deleted, as above."""
        chained = self._continued()
        rest = f"WHERE r.job_id = ? AND r.id < ? AND {_PRUNABLE} ORDER BY r.id LIMIT ?"
        runs = self._runs.joined("r", rest, job_id, before_id, limit + len(chained))
        return [run for run in runs if run.id not in chained][:limit]

    def beyond(self, job_id: int, keep: int, limit: int) -> list[RunRow]:
        """The job's done runs beyond the newest `keep` that may be deleted, as above."""
        chained = self._continued()
        rest = f"WHERE r.job_id = ? AND {_PRUNABLE} ORDER BY r.id + 0 DESC LIMIT ? OFFSET ?"
        runs = self._runs.joined("r", rest, job_id, limit + len(chained), keep)
        return [run for run in runs if run.id not in chained][:limit]

    def _continued(self) -> set[int]:
        """Every run that an open one continues, directly or through others; open chains are few and short."""
        sql = "SELECT retry_of FROM runs WHERE finished_at IS NULL AND retry_of IS NOT NULL"
        ahead = self._column(sql)
        found: set[int] = set()
        while ahead:
            run_id = ahead.pop()
            found.add(run_id)
            ahead += self._column("SELECT retry_of FROM runs WHERE id = ? AND retry_of IS NOT NULL", run_id)
        return found

    def prune_job(self, job_id: int, limit: int) -> list[int]:
        """Delete a forgotten job's runs, at most `limit`; which."""
        found = self._column("SELECT id FROM runs WHERE job_id = ? LIMIT ?", job_id, limit)
        self.delete(found)
        return found

    def delete(self, run_ids: Sequence[int]) -> None:
        if run_ids:
            self._session.delete_in("runs", "id", run_ids)
            self._session.delete_in("run_details", "run_id", run_ids)
