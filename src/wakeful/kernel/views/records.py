"""Alerts and tokens as users see them: ids as text, times as aware datetimes in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.kernel.engine.alerts import MEANINGS
from wakeful.triggers.moments import from_ms, iso, to_ms

if TYPE_CHECKING:
    from wakeful.store import records
    from wakeful.store.interface import Transaction


class Alert(NamedTuple):
    """One incident that a person should know about: open until `closed_at`."""

    id: str
    key: str
    """What it is about; there is one open alert per key."""
    kind: str
    job: str | None
    """The job's name, where it is about one that is still there."""
    job_id: str | None
    message: str
    opened_at: datetime
    last_at: datetime
    """When it last happened."""
    times: int
    """How often it has happened since it was opened."""
    closed_at: datetime | None
    acked_at: datetime | None
    """When a person said that they have seen it."""
    snoozed_until: datetime | None = None
    """No message about it is sent before."""

    def __repr__(self) -> str:
        return f"<Alert {self.id} {self.kind} {'open' if self.closed_at is None else 'closed'}: {self.message}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        return _plain({**self._asdict(), "meaning": self.meaning})

    @property
    def meaning(self) -> str | None:
        """What alerts of this kind mean."""
        return MEANINGS.get(self.kind)


class Token(NamedTuple):
    """A token for the server. The token itself is not kept, only its hash."""

    name: str
    role: str
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None

    def __repr__(self) -> str:
        return f"<Token {self.name} {self.role}{'' if self.revoked_at is None else ' revoked'}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        return _plain(self._asdict())


def alert_views(tx: Transaction, rows: Sequence[records.AlertRow]) -> list[Alert]:
    """Alerts as users see them."""
    jobs = tx.jobs.definitions(sorted({row.job_id for row in rows if row.job_id is not None}))
    names = {number: job.name for number, job in jobs.items() if job.removed_at is None}
    return [
        Alert(
            ids.encode("alr", row.id),
            row.key,
            row.kind,
            None if row.job_id is None else names.get(row.job_id),
            None if row.job_id is None else ids.job_text(row.job_id),
            row.message,
            from_ms(row.opened_at),
            from_ms(row.last_at),
            row.times,
            _moment(row.closed_at),
            _moment(row.acked_at),
            _moment(row.snoozed_until),
        )
        for row in rows
    ]


def token_view(row: records.TokenRow) -> Token:
    """A token as users see it."""
    return Token(row.name, row.role, from_ms(row.created_at), _moment(row.revoked_at), _moment(row.last_used_at))


def _moment(ms: int | None) -> datetime | None:
    return from_ms(ms) if ms is not None else None


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: iso(to_ms(value)) if isinstance(value, datetime) else value for name, value in fields.items()}
