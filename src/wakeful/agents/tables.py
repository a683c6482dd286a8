"""Sessions that jobs keep from run to run, and where to ask about work that goes on elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session


class KeptSession(NamedTuple):
    """The session a job's runs continue."""

    job_id: int
    session: str
    model: str
    created_at: int
    used_at: int


class Watch(NamedTuple):
    """A run whose end can be asked for."""

    run_id: int
    url: str
    since: int


class Watched(NamedTuple):
    """A watch beside what became of its run: `status` is None when the run is gone."""

    watch: Watch
    status: str | None
    node: int | None


_KEPT = ", ".join(KeptSession._fields)


class Sessions:
    """Verbs on sessions and watches; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- sessions -----------------------------------------------------------------------------------------------------

    def of(self, job_id: int) -> KeptSession | None:
        """The session the job keeps, if it does."""
        found = self._session.rows(f"SELECT {_KEPT} FROM sessions WHERE job_id = ?", (job_id,))
        return KeptSession._make(found[0]) if found else None

    def of_all(self, job_ids: list[int]) -> dict[int, str]:
        """What the sessions of these jobs are called."""
        rows = self._session.select_in(("job_id", "session"), "sessions", "job_id", job_ids)
        return {int(job_id): str(session) for job_id, session in rows}

    def called(self, session: str) -> KeptSession | None:
        """The session of that name, if a job keeps it: the one used last where several do."""
        sql = f"SELECT {_KEPT} FROM sessions WHERE session = ? ORDER BY used_at DESC, job_id DESC LIMIT 1"
        found = self._session.rows(sql, (session,))
        return KeptSession._make(found[0]) if found else None

    def is_kept_by(self, owner: str, session: str) -> bool:
        """Whether a job of that owner keeps the session."""
        sql = (
            "SELECT 1 FROM sessions s JOIN jobs j ON j.id = s.job_id "
            "WHERE s.session = ? AND j.owner = ? AND j.removed_at IS NULL LIMIT 1"
        )
        return bool(self._session.rows(sql, (session, owner)))

    def rename(self, old: str, new: str) -> None:
        """Jobs that keep the old session keep the new one."""
        self._session.execute("UPDATE sessions SET session = ? WHERE session = ?", (new, old))

    def keep(self, kept: KeptSession) -> None:
        """Remember a job's session in place of the one it had."""
        conflict = (
            "ON CONFLICT (job_id) DO UPDATE SET session = excluded.session, model = excluded.model, "
            "created_at = excluded.created_at, used_at = excluded.used_at"
        )
        self._session.insert_many("sessions", KeptSession._fields, [kept], conflict)

    def touch(self, job_id: int, now: int) -> None:
        """The job's session is in use."""
        self._session.execute("UPDATE sessions SET used_at = ? WHERE job_id = ?", (now, job_id))

    def forget(self, job_id: int, session: str) -> bool:
        """Forget the job's session, unless it has another one by now; True when it was there."""
        return self._session.execute("DELETE FROM sessions WHERE job_id = ? AND session = ?", (job_id, session)) == 1

    def crowd_out(self, most: int) -> list[str]:
        """Forget the sessions of removed jobs, then of each owner those used longest ago beyond `most`; their names.

        Jobs without an owner count as one owner's. A session whose job has a run in progress stays: the work may be
        going on in it.
        """
        idle = "NOT EXISTS (SELECT 1 FROM job_state j WHERE j.job_id = sessions.job_id AND j.run_id IS NOT NULL)"
        gone = self._session.rows(
            f"DELETE FROM sessions WHERE {idle} AND job_id IN (SELECT id FROM jobs WHERE removed_at IS NOT NULL) "
            "RETURNING session"
        )
        old = self._session.rows(
            f"DELETE FROM sessions WHERE {idle} AND job_id IN (SELECT job_id FROM (SELECT s.job_id, row_number() "
            "OVER (PARTITION BY j.owner ORDER BY s.used_at DESC, s.job_id DESC) AS place "
            "FROM sessions s JOIN jobs j ON j.id = s.job_id) AS placed WHERE place > ?) RETURNING session",
            (most,),
        )
        return [str(row[0]) for row in [*gone, *old]]

    # -- watches ------------------------------------------------------------------------------------------------------

    def watch(self, watch: Watch) -> None:
        """Remember where the run's end can be asked for."""
        conflict = "ON CONFLICT (run_id) DO UPDATE SET url = excluded.url, since = excluded.since"
        self._session.insert_many("run_watches", Watch._fields, [watch], conflict)

    def watched(self) -> list[Watched]:
        """Every watch with what became of its run, oldest first."""
        rows = self._session.rows(
            "SELECT w.run_id, w.url, w.since, r.status, r.node FROM run_watches w "
            "LEFT JOIN runs r ON r.id = w.run_id ORDER BY w.run_id"
        )
        return [Watched(Watch(run_id, url, since), status, node) for run_id, url, since, status, node in rows]

    def unwatch(self, run_ids: list[int]) -> None:
        """These need not be asked about any more."""
        for run_id in run_ids:
            self._session.execute("DELETE FROM run_watches WHERE run_id = ?", (run_id,))
