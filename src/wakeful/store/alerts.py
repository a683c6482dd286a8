"""Incidents in the store: opened, counted again, acknowledged, put off, closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.store.records import AlertRow
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from wakeful.store.events import EventVerbs
    from wakeful.store.session import Session

_KINDS_OF_RUNS = ("failing", "down", "missed", "stuck", "no_handler", "no_node")
#: Whether an incident is one of a job's runs: not of a message about the job, nor of what it costs.
OF_RUNS = "(a.kind IN ({}) OR {})".format(
    ", ".join(f"'{kind}'" for kind in _KINDS_OF_RUNS),
    " OR ".join(f"a.key LIKE 'flapping:{kind}:%'" for kind in _KINDS_OF_RUNS),
)
_AWAITED = f"NOT ({OF_RUNS} AND EXISTS (SELECT 1 FROM job_state s WHERE s.job_id = a.job_id AND s.paused = 1))"


class Alerts(Verbs):
    """Verbs on incidents; each call is part of the transaction it was made in."""

    _alerts = Rows("alerts", AlertRow)

    def __init__(self, session: Session, events: EventVerbs) -> None:
        super().__init__(session)
        self._events = events

    # -- what becomes of one ------------------------------------------------------------------------------------------

    def open(self, alert: AlertRow) -> tuple[AlertRow, bool]:
        """Open the incident, or count it again if it is open; as it is now, and whether it is new."""
        known = self._count_again(alert)
        while known is None:
            if self._alerts.add(alert, on_conflict="ON CONFLICT (key) WHERE closed_at IS NULL DO NOTHING"):
                self._announce("opened", [alert])
                return alert, True
            known = self._count_again(alert)  # another node was quicker
        return known, False

    def _count_again(self, alert: AlertRow) -> AlertRow | None:
        found = self._change(
            "times = times + 1, last_at = ?, message = ?, data = coalesce(?, data) WHERE key = ? AND closed_at IS NULL",
            alert.last_at, alert.message, alert.data, alert.key,
        )  # fmt: skip
        return found[0] if found else None

    def close(self, key: str, now: int) -> AlertRow | None:
        """The incident is over; as it is now, or None when it was not open."""
        found = self._change("closed_at = ? WHERE key = ? AND closed_at IS NULL", now, key)
        self._announce("closed", found)
        return found[0] if found else None

    def reopen(self, alert_id: int) -> bool:
        """The incident is not over after all; False where it is open already, as this alert or as a newer one."""
        found = self._change(
            "closed_at = NULL WHERE id = ? AND closed_at IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM alerts o WHERE o.key = alerts.key AND o.closed_at IS NULL)",
            alert_id,
        )
        return self._announce("reopened", found)

    def ack(self, alert_id: int, now: int) -> bool:
        """A person has seen it; False when one already had."""
        return self._announce("acked", self._change("acked_at = ? WHERE id = ? AND acked_at IS NULL", now, alert_id))

    def unack(self, alert_id: int, acked_at: int) -> bool:
        """What was acknowledged then is not; False when it is over, or was acknowledged at another time."""
        changes = "acked_at = NULL WHERE id = ? AND acked_at = ? AND closed_at IS NULL"
        return self._announce("unacked", self._change(changes, alert_id, acked_at))

    def note_sent(self, alert_id: int, now: int) -> None:
        """A message about it is stored, and what was put off is no longer."""
        self._session.execute("UPDATE alerts SET notified_at = ?, snoozed_until = NULL WHERE id = ?", (now, alert_id))

    def _change(self, changes: str, *params: object) -> list[AlertRow]:
        return self._alerts.answered(f"UPDATE alerts SET {changes} RETURNING {self._alerts.columns}", *params)

    def _announce(self, what: str, alerts: Sequence[AlertRow]) -> bool:
        """An event about each alert, with the job it is about, if it is about one; whether there are any."""
        for alert in alerts:
            about: dict[str, object] = {}
            if alert.job_id is not None:
                name = self._value("SELECT name FROM jobs WHERE id = ?", alert.job_id)
                about = {"job_id": alert.job_id, **({"job": name} if name is not None else {})}
            event = {"type": what, "alert": alert.id, **about, "kind": alert.kind, "message": alert.message}
            self._events.emit("alert", event)
        return bool(alerts)

    # -- which there are ----------------------------------------------------------------------------------------------

    def get(self, alert_id: int) -> AlertRow | None:
        return self._alerts.one("WHERE id = ?", alert_id)

    def latest(
        self, limit: int = 50, *, before: int | None = None, job_id: int | None = None, open_only: bool = False
    ) -> list[AlertRow]:
        """The newest first: below that id, about that job."""
        clause, params = where(
            [("id < ?", before), ("job_id = ?", job_id), ("closed_at IS NULL", () if open_only else None)]
        )
        return self._alerts.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def all_open(self) -> list[AlertRow]:
        return self._alerts.all("WHERE closed_at IS NULL ORDER BY id")

    def open_of(self, kind: str) -> list[AlertRow]:
        """The open incidents of one kind; their keys begin with it."""
        return self._alerts.all("WHERE closed_at IS NULL AND key > ? AND key < ? ORDER BY id", f"{kind}:", f"{kind};")

    def open_about(self, job_ids: Sequence[int]) -> list[tuple[int, int]]:
        """The open alerts about these jobs, each with its job, the first first."""
        only = "closed_at IS NULL"
        rows = self._session.select_in(("id", "job_id"), "alerts", "job_id", job_ids, only=only) if job_ids else []
        return sorted((int(number), int(job_id)) for number, job_id in rows)

    def count_open(self) -> int:
        return self._count("SELECT count(*) FROM alerts WHERE closed_at IS NULL")

    def count_awaited(self, but: str) -> tuple[int, int]:
        """How many open alerts no person has acknowledged, and how many one has; of all kinds but that one.

        A job that a person has paused needs nobody: what is open about its runs is left out.
        """
        sql = f"SELECT count(*), count(acked_at) FROM alerts a WHERE closed_at IS NULL AND kind <> ? AND {_AWAITED}"
        both, acked = self._session.rows(sql, (but,))[0]
        return int(both) - int(acked), int(acked)

    def awaited(self, but: str, limit: int) -> list[AlertRow]:
        """The first of those that no person has acknowledged, the oldest first."""
        return self._alerts.all(
            f"a WHERE closed_at IS NULL AND acked_at IS NULL AND kind <> ? AND {_AWAITED} ORDER BY id LIMIT ?",
            but,
            limit,
        )

    def newest_awaited(self, but: str) -> AlertRow | None:
        """The newest of those that no person has acknowledged."""
        return self._alerts.one(
            f"a WHERE closed_at IS NULL AND acked_at IS NULL AND kind <> ? AND {_AWAITED} ORDER BY id + 0 DESC LIMIT 1",
            but,
        )

    # -- snoozes: incidents and jobs about which no message is sent before a time --------------------------------------

    def snooze(self, alert_id: int, until: int) -> bool:
        """No message about it before that time; False when it is not open."""
        changes = "snoozed_until = ? WHERE id = ? AND closed_at IS NULL"
        return self._announce("snoozed", self._change(changes, until, alert_id))

    def unsnooze(self, alert_id: int, until: int | None, before: int | None) -> bool:
        """What was snoozed until then is as before; False when it is over, or was changed since."""
        changes = "snoozed_until = ? WHERE id = ? AND snoozed_until = ? AND closed_at IS NULL"
        return self._announce("unsnoozed", self._change(changes, before, alert_id, until))

    def note_awake(self, alert_id: int) -> None:
        """Its snooze is over."""
        self._session.execute("UPDATE alerts SET snoozed_until = NULL WHERE id = ?", (alert_id,))

    def snoozes_over(self, now: int, limit: int) -> list[AlertRow]:
        """Open incidents whose snooze has ended, the first first."""
        return self._alerts.all(
            "WHERE snoozed_until IS NOT NULL AND snoozed_until <= ? AND closed_at IS NULL "
            "ORDER BY snoozed_until, id LIMIT ?",
            now,
            limit,
        )

    def snooze_job(self, job_id: int, until: int) -> None:
        """No message about this job before that time."""
        changed = "ON CONFLICT (job_id) DO UPDATE SET until = excluded.until"
        self._session.insert_many("alert_snoozes", ("job_id", "until"), [(job_id, until)], changed)

    def unsnooze_job(self, job_id: int, until: int, before: int | None) -> bool:
        """What was snoozed until then is as before; False when it was snoozed for another time since."""
        this = "WHERE job_id = ? AND until = ?"
        if before is None:
            return self._session.execute(f"DELETE FROM alert_snoozes {this}", (job_id, until)) > 0
        return self._session.execute(f"UPDATE alert_snoozes SET until = ? {this}", (before, job_id, until)) > 0

    def job_snoozed_until(self, job_id: int) -> int | None:
        return self._number("SELECT until FROM alert_snoozes WHERE job_id = ?", job_id)
