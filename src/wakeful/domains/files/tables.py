"""The tables of fleets: verbs on them, each part of the transaction it is called in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from wakeful.store.rows import Rows, Verbs


class OwnedRow(NamedTuple):
    """What a fleet last said about one of its jobs."""

    job_id: int
    fleet: str
    enabled: int
    notes: str | None


class AppliedRow(NamedTuple):
    """A file as it was applied: the node and its path, its hash, and when."""

    place: str
    hash: str
    at: int


class Fleets(Verbs):
    """Verbs on fleets, the files they came from and the jobs they own."""

    _files = Rows("fleet_files", AppliedRow, ("place", "hash", "applied_at"))
    _owned = Rows("fleet_jobs", OwnedRow)

    def lock(self) -> None:
        """Be the only one who applies a file until the transaction ends."""
        self._session.serialize("fleets")

    def applied_from(self, fleet: str, place: str) -> str | None:
        """The hash of what that place last applied."""
        sql = "SELECT hash FROM fleet_files WHERE fleet = ? AND place = ?"
        return self._text(sql, fleet, place)

    def record(self, fleet: str, place: str, file_hash: str, references: Sequence[str], now: int) -> None:
        """This file is what the fleet is from now on."""
        latest = "DO UPDATE SET hash = excluded.hash, applied_at = excluded.applied_at"
        row = (fleet, file_hash, json.dumps(list(references)), now)
        conflict = f"ON CONFLICT (name) {latest}, refs = excluded.refs"
        self._session.insert_many("fleets", ("name", "hash", "refs", "applied_at"), [row], conflict)
        columns = ("fleet", "place", "hash", "applied_at")
        conflict = f"ON CONFLICT (fleet, place) {latest}"
        self._session.insert_many("fleet_files", columns, [(fleet, place, file_hash, now)], conflict)

    def applied(self, fleet: str) -> tuple[str, list[str]] | None:
        """The hash and the references of the file that was applied last."""
        found = self._session.rows("SELECT hash, refs FROM fleets WHERE name = ?", (fleet,))
        return (str(found[0][0]), list(json.loads(found[0][1]))) if found else None

    def latest(self, fleet: str) -> AppliedRow | None:
        """The file that was applied last."""
        sql = (
            f"SELECT {self._files.of('f')} FROM fleet_files f JOIN fleets l ON l.name = f.fleet "
            "AND l.hash = f.hash AND l.applied_at = f.applied_at WHERE f.fleet = ? ORDER BY f.place LIMIT 1"
        )
        return next(iter(self._files.answered(sql, fleet)), None)

    def files(self, fleet: str | None = None) -> list[AppliedRow]:
        """The files that were applied, the newest first; of one fleet, or of all."""
        given = () if fleet is None else (fleet,)
        return self._files.all(f"{'WHERE fleet = ? ' if given else ''}ORDER BY applied_at DESC, place", *given)

    def owned(self, fleet: str) -> list[OwnedRow]:
        return self._owned.all("WHERE fleet = ?", fleet)

    def owners(self, job_ids: Sequence[int]) -> dict[int, str]:
        """Which of these jobs belong to a fleet, and to which."""
        rows = self._session.select_in(("job_id", "fleet"), "fleet_jobs", "job_id", job_ids)
        return {int(job_id): str(fleet) for job_id, fleet in rows}

    def own(self, rows: Sequence[OwnedRow]) -> None:
        if rows:
            self._owned.put(*rows, key=("job_id",))
