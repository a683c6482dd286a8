"""Snoozes in the store: incidents and jobs of which no message is sent before a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.store.records import Alert

if TYPE_CHECKING:
    from wakeful.store.session import Session

_ALERT = ", ".join(Alert._fields)


class Snoozes:
    """Verbs on snoozes, as part of the journal."""

    _session: Session

    def _announce(self, what: str, alert: Sequence[Any]) -> None:
        """An event about an alert."""
        raise NotImplementedError

    def note_alert_awake(self, alert_id: int) -> None:
        """Its snooze is over."""
        self._session.execute("UPDATE alerts SET snoozed_until = NULL WHERE id = ?", (alert_id,))

    def snooze_alert(self, alert_id: int, until: int) -> bool:
        """No message about it before that time; False when it is not open."""
        snoozed = self._session.rows(
            "UPDATE alerts SET snoozed_until = ? WHERE id = ? AND closed_at IS NULL "
            "RETURNING id, kind, message, job_id",
            (until, alert_id),
        )
        for alert in snoozed:
            self._announce("snoozed", alert)
        return bool(snoozed)

    def unsnooze_alert(self, alert_id: int, until: int | None, before: int | None) -> bool:
        """What was snoozed until then is as before; False when it is over, or was changed since."""
        sql = (
            "UPDATE alerts SET snoozed_until = ? WHERE id = ? AND snoozed_until = ? AND closed_at IS NULL "
            "RETURNING id, kind, message, job_id"
        )
        found = self._session.rows(sql, (before, alert_id, until))
        for alert in found:
            self._announce("unsnoozed", alert)
        return bool(found)

    def unsnooze_job(self, job_id: int, until: int, before: int | None) -> bool:
        """The same of a job; False when it was snoozed for another time since."""
        where = "WHERE job_id = ? AND until = ?"
        if before is None:
            return self._session.execute(f"DELETE FROM alert_snoozes {where}", (job_id, until)) > 0
        return self._session.execute(f"UPDATE alert_snoozes SET until = ? {where}", (before, job_id, until)) > 0

    def snooze_job(self, job_id: int, until: int) -> None:
        """No message about this job before that time."""
        self._session.insert_many(
            "alert_snoozes",
            ("job_id", "until"),
            [(job_id, until)],
            "ON CONFLICT (job_id) DO UPDATE SET until = excluded.until",
        )

    def job_snoozed_until(self, job_id: int) -> int | None:
        found = self._session.rows("SELECT until FROM alert_snoozes WHERE job_id = ?", (job_id,))
        return int(found[0][0]) if found else None

    def snoozes_over(self, now: int, limit: int) -> list[Alert]:
        """Open incidents whose snooze has ended, the first first."""
        sql = (
            f"SELECT {_ALERT} FROM alerts WHERE snoozed_until IS NOT NULL AND snoozed_until <= ? "
            "AND closed_at IS NULL ORDER BY snoozed_until, id LIMIT ?"
        )
        return [Alert._make(row) for row in self._session.rows(sql, (now, limit))]
