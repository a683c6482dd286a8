"""Jobs as people ask for them: pages in the order of names, how many there are, and what starts next.

A query costs its answer and not the store: a page is found by an index that has its order, rare rows are found by
an index of their own, and common ones are counted as the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wakeful.store.records import JOB_COLUMNS, STATE_COLUMNS, JobDef, JobState
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from wakeful.store.owners import Owned

J_COLUMNS = tuple(f"j.{column}" for column in JOB_COLUMNS)
S_COLUMNS = tuple(f"s.{column}" for column in STATE_COLUMNS)
BOTH = J_COLUMNS + S_COLUMNS
JOINED = "jobs j JOIN job_state s ON s.job_id = j.id"
_WIDTH = len(JOB_COLUMNS)

#: Up to so many jobs in a status are sorted for a page; where there are more, the next ones are soon found by name.
FEW = 20_000
LATEST = 2**62


class JobFilter(NamedTuple):
    """Which jobs to list; None leaves that side open. `after` is the name the previous page ended with."""

    kind: str | None = None
    owner: str | None = None
    source: str | None = None
    status: str | None = None
    enabled: bool | None = None
    after: str | None = None
    limit: int | None = None
    contains: str | None = None  # in the name; letters of ASCII in either case
    hidden: tuple[str, ...] = ()  # kinds that are left out unless one is requested by name
    owned: Owned | None = None  # only those that a caller may see
    requested: bool = False  # only those that their owner made over MCP


#: How the last run of a job ended that is over, but not done.
UNDONE = ("error", "timeout", "crashed", "unknown")
DONE_SQL = f"ended_at IS NOT NULL AND coalesce(last_outcome, 'error') NOT IN {UNDONE}"
_ASKING = "SELECT job_id FROM runs WHERE finished_at IS NULL AND status = 'waiting' AND phase = 'approval'"
_OFF = "s.run_id IS NULL AND s.paused = 0 AND s.enabled = 0"
#: A job's status is derived, never stored: these conditions and `status_of` say the same. The first that holds.
STATUS_SQL = {
    "waiting": f"s.run_id IS NOT NULL AND s.job_id IN ({_ASKING})",
    "running": f"s.run_id IS NOT NULL AND s.job_id NOT IN ({_ASKING})",
    "paused": "s.run_id IS NULL AND s.paused = 1",
    "done": f"{_OFF} AND ({DONE_SQL})",
    "disabled": f"{_OFF} AND NOT ({DONE_SQL})",
    "idle": "s.run_id IS NULL AND s.paused = 0 AND s.enabled = 1",
}
#: Jobs that a program declares with their handler (`@scheduler.job`): such a job is of a kind of its own.
DECLARED = "j.source = 'code' AND j.kind = j.name"
_STOPPED = "(enabled = 0 OR paused = 1)"  # exactly the condition of the index
_STOPPED_S = "(s.enabled = 0 OR s.paused = 1)"
_OPEN_RUNS = "SELECT DISTINCT job_id FROM runs WHERE finished_at IS NULL"
_REMOVED = "removed_at IS NOT NULL"
#: Where all jobs of a status are found without looking at any other.
_RARE = {
    "waiting": _ASKING,
    "running": _OPEN_RUNS,
    "paused": f"SELECT job_id FROM job_state WHERE {_STOPPED} AND paused = 1",
    "done": f"SELECT job_id FROM job_state WHERE {_STOPPED} AND paused = 0 AND {DONE_SQL}",
    "disabled": f"SELECT job_id FROM job_state WHERE {_STOPPED} AND paused = 0 AND NOT ({DONE_SQL})",
}


class _Active(NamedTuple):
    """What counts ask about a job that runs."""

    job_id: int
    run_id: int
    paused: int
    enabled: int
    due_at: int | None
    ended_at: int | None
    last_outcome: str | None


class Shown(Protocol):
    """What a job's status follows from."""

    @property
    def run_id(self) -> int | None: ...
    @property
    def paused(self) -> int: ...
    @property
    def enabled(self) -> int: ...
    @property
    def ended_at(self) -> int | None: ...
    @property
    def last_outcome(self) -> str | None: ...


def status_of(state: Shown, *, asking: bool) -> str:
    """A job's status; `asking`: its run in progress waits for a person."""
    if state.run_id is not None:
        return "waiting" if asking else "running"
    return status_at_rest(state)


def status_at_rest(state: Shown) -> str:
    """What a job's status is while it does not run."""
    if state.paused:
        return "paused"
    if state.enabled:
        return "idle"
    succeeded = state.last_outcome is not None and state.last_outcome not in UNDONE
    return "done" if state.ended_at is not None and succeeded else "disabled"


def shown(kind: str, hidden: Sequence[str]) -> str:
    """The further condition that a column holds none of the hidden kinds, which are its parameters."""
    return f" AND {kind} NOT IN ({', '.join('?' * len(hidden))})" if hidden else ""


class Listing(Verbs):
    """Questions about many jobs; each call is part of the transaction it was made in."""

    _active = Rows("job_state", _Active)

    def matching(self, wanted: JobFilter) -> list[tuple[JobDef, JobState]]:
        """Jobs in the order of their names."""
        source, clause, params = self._chosen(wanted, states=wanted.contains is None)
        limit = f" LIMIT {int(wanted.limit)}" if wanted.limit is not None else ""
        end = f"FROM {source} {clause} ORDER BY j.name{limit}"
        if wanted.contains is not None:
            # Names alone are read from an index; rows only of those that have the text.
            names = self._column(f"SELECT j.name {end}", *params)
            ids = [row[0] for row in self._session.select_in(("id",), "jobs", "name", names, only="removed_at IS NULL")]
            return sorted(self._pairs(ids), key=lambda pair: pair[0].name) if ids else []
        return [pair_of(row) for row in self._session.rows(f"SELECT {', '.join(BOTH)} {end}", params)]

    def count(self, wanted: JobFilter) -> int:
        """How many jobs there are of that kind on all pages."""
        wanted = wanted._replace(after=None, limit=None)
        if wanted._replace(status=None, hidden=()) == JobFilter():
            counts = self.counts()
            found = counts.get(wanted.status, 0) if wanted.status is not None else sum(counts.values())
            return found - sum(self.count(JobFilter(kind=kind, status=wanted.status)) for kind in wanted.hidden)
        source, clause, params = self._chosen(wanted, states=False)
        return self._count(f"SELECT count(*) FROM {source} {clause}", *params)

    def count_up_to(self, wanted: JobFilter, most: int) -> int:
        """How many jobs match on all pages; no more than `most` are counted."""
        source, clause, params = self._chosen(wanted._replace(after=None, limit=None), states=False)
        some = f"SELECT 1 FROM {source} {clause} LIMIT {int(most)}"
        return self._count(f"SELECT count(*) FROM ({some}) counted", *params)

    def counts(self, hidden: Sequence[str] = ()) -> dict[str, int]:
        """How many jobs there are by status, without hidden kinds; statuses without jobs are left out."""
        active = self._in_progress()
        gone = self._session.select_in(("id",), "jobs", "id", [row.job_id for row in active], only=_REMOVED)
        removed_ids = {row[0] for row in gone}
        active = [row for row in active if row.job_id not in removed_ids]
        stopped = self._by_status("job_state s", _STOPPED_S)
        stopped.subtract(self._by_status(JOINED, f"j.{_REMOVED} AND {_STOPPED_S}"))
        stopped.subtract(Counter(status for row in active if (status := status_at_rest(row)) != "idle"))
        everything = self._count("SELECT count(*) FROM job_state")
        everything -= self._count(f"SELECT count(*) FROM jobs WHERE {_REMOVED}")
        asking = set(self._column(_ASKING)) if active else set()
        waiting = sum(row.job_id in asking for row in active)
        idle = everything - len(active) - stopped.total()
        found = {"idle": idle, "running": len(active) - waiting, "waiting": waiting}
        found |= {status: stopped[status] for status in ("paused", "done", "disabled")}
        for status in found if hidden else ():
            found[status] -= sum(self.count(JobFilter(kind=kind, status=status)) for kind in hidden)
        return {status: number for status, number in found.items() if number}

    def soonest(self, limit: int, hidden: Sequence[str] = ()) -> list[tuple[JobDef, JobState]]:
        """Among these are the `limit` jobs that start next: the first alarms, what waits for a place, and what runs.

        Jobs of hidden kinds are left out.
        """
        source = f"{JOINED} WHERE{shown('j.kind', hidden).removeprefix(' AND')} AND" if hidden else "job_state s WHERE"
        active = self._in_progress()
        ids = {row.job_id for row in active}
        # The alarm of a run is its deadline and no start: so many alarms more are looked at.
        alarms = limit + sum(row.due_at is not None for row in active)
        for level in self._column("SELECT level FROM priorities ORDER BY level"):
            alarm = f"FROM {source} s.priority = ? AND s.due_at IS NOT NULL"
            sql = f"SELECT s.job_id, s.due_at {alarm} AND s.due_at >= s.next_at ORDER BY s.due_at, s.job_id LIMIT ?"
            starts = self._session.rows(sql, (*hidden, level, alarms))
            # Others are looked at sooner, for a run that waits; their own time may still be among the first.
            latest = starts[-1][1] if len(starts) == alarms else LATEST
            sql = f"SELECT s.job_id {alarm} AND s.due_at < s.next_at AND s.due_at <= ? ORDER BY s.next_at LIMIT ?"
            ids.update((int(row[0]) for row in starts), self._column(sql, *hidden, level, latest, alarms))
        for key in self._parked_keys():
            sql = f"SELECT s.job_id FROM {source} s.parked = ? ORDER BY s.priority DESC, s.ready_at, s.job_id LIMIT ?"
            ids.update(self._column(sql, *hidden, key, limit))
        return [job for job in self._pairs(sorted(ids)) if job[0].removed_at is None and job[0].kind not in hidden]

    def declared(self) -> list[str]:
        """The names of enabled jobs that programs declare with their handler; costs as many as there are."""
        # The source is hidden from the planner: by its index, all jobs that programs ever added would be read.
        sql = (
            "SELECT id, name FROM jobs WHERE removed_at IS NULL AND kind = name AND source || '' = 'code' ORDER BY name"
        )
        names = {int(row[0]): str(row[1]) for row in self._session.rows(sql)}
        on = {
            row[0]
            for row in self._session.select_in(("job_id",), "job_state", "job_id", list(names), only="enabled = 1")
        }
        return [name for job_id, name in names.items() if job_id in on]

    def armed(self, most: int, hidden: Sequence[str] = ()) -> int:
        """How many jobs will start by an alarm or as soon as there is a place; none that runs or is hidden.

        No more than `most` are counted.
        """
        others = sum(row.due_at is not None for row in self._in_progress())
        if hidden:
            places = ", ".join("?" * len(hidden))
            others += self._count(
                f"SELECT count(*) FROM {JOINED} WHERE j.removed_at IS NULL AND j.kind IN ({places}) "
                "AND s.run_id IS NULL AND (s.due_at IS NOT NULL OR s.parked IS NOT NULL)",
                *hidden,
            )
        counted = 0
        for column, order in (("due_at", "priority, due_at"), ("parked", "parked")):  # as their indexes have it
            some = f"SELECT {column} FROM job_state WHERE {column} IS NOT NULL ORDER BY {order} LIMIT ?"
            counted += self._count(f"SELECT count(*) FROM ({some}) counted", most + others)
        return min(most, counted - others)

    def _parked_keys(self) -> Iterator[str]:
        """What jobs wait for, from one to the next: however many wait for it."""
        sql = "SELECT parked FROM job_state WHERE parked IS NOT NULL AND parked > ? ORDER BY parked LIMIT 1"
        key: str | None = ""
        while (key := self._text(sql, key)) is not None:
            yield key

    def _in_progress(self) -> list[_Active]:
        """The jobs that have a run in progress, removed ones too."""
        return self._active.among("job_id", self._column(_OPEN_RUNS), only="run_id IS NOT NULL")

    def _chosen(self, wanted: JobFilter, *, states: bool) -> tuple[str, str, list[Any]]:
        """The tables to read, with `states` also where no condition is about them; the conditions, and their values."""
        conditions = [*_by_columns(wanted), *self._by_name(wanted)]
        source = JOINED if states or wanted.status is not None or wanted.enabled is not None else "jobs j"
        rare = _RARE.get(wanted.status or "")
        if rare is not None and self._are_few(rare):
            conditions.append(("j.id = o.job_id", ()))
            source = f"({rare}) o CROSS JOIN {JOINED}"
        return source, *where(conditions)

    def _by_name(self, wanted: JobFilter) -> Iterator[tuple[str, Any]]:
        """The conditions on the names of jobs, and on kinds that are hidden."""
        if wanted.hidden and wanted.kind is None:
            kinds = shown("j.kind", wanted.hidden).removeprefix(" AND ")
            if wanted.contains is not None:  # kinds only of the names that have the text: the others come from an index
                kinds = (
                    "NOT EXISTS (SELECT 1 FROM jobs h WHERE h.removed_at IS NULL AND h.name = j.name "
                    f"AND h.kind IN ({', '.join('?' * len(wanted.hidden))}))"
                )
            yield kinds, wanted.hidden
        if wanted.contains is not None:
            yield self._session.contains("j.name"), f"%{_pattern(wanted.contains)}%"
        yield "j.name > ?", wanted.after

    def _are_few(self, select: str) -> bool:
        return self._count(f"SELECT count(*) FROM ({select} LIMIT {FEW + 1}) o") <= FEW

    def _pairs(self, ids: list[int]) -> list[tuple[JobDef, JobState]]:
        definitions = {row[0]: JobDef._make(row) for row in self._session.select_in(JOB_COLUMNS, "jobs", "id", ids)}
        states = self._session.select_in(STATE_COLUMNS, "job_state", "job_id", ids)
        return [(definitions[row[0]], JobState._make(row)) for row in states]

    def _by_status(self, source: str, where: str) -> Counter[str]:
        """How many stopped jobs there are, by status while they do not run."""
        found = self._session.rows(
            f"SELECT CASE WHEN s.paused = 1 THEN 'paused' WHEN {DONE_SQL} THEN 'done' ELSE 'disabled' END, count(*) "
            f"FROM {source} WHERE {where} GROUP BY 1"
        )
        return Counter({str(status): int(number) for status, number in found})


def _by_columns(wanted: JobFilter) -> Iterator[tuple[str, Any]]:
    """The conditions on single columns of a job and of its state, and their values."""
    yield "j.removed_at IS NULL", ()
    yield "j.kind = ?", wanted.kind
    yield "j.owner = ? AND j.owner IS NOT NULL", wanted.owner  # as the condition of its index says
    yield "j.source = ?", wanted.source
    if wanted.owned is not None:
        condition, values = wanted.owned.condition("j")
        yield condition, tuple(values)
    if wanted.requested:
        yield "j.id IN (SELECT job_id FROM proposals)", ()
    if wanted.status is not None:
        yield STATUS_SQL[wanted.status], ()
    if wanted.enabled is not None:
        yield f"s.enabled = {int(wanted.enabled)}", ()  # said in full, as the condition of an index


def pair_of(row: Iterable[object]) -> tuple[JobDef, JobState]:
    # As `_make` does, but for the count, which the columns of the question settle: every claim pays for it.
    values = tuple(row)
    return tuple.__new__(JobDef, values[:_WIDTH]), tuple.__new__(JobState, values[_WIDTH:])


def _pattern(text: str) -> str:
    """For LIKE: taken literally, and lower case only where both databases support it."""
    small = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    return small.replace("!", "!!").replace("%", "!%").replace("_", "!_")
