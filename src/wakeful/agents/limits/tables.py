"""The table of rate limits, one row for each account; each verb is part of the transaction it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.agents.limits.rules import RateLimit

if TYPE_CHECKING:
    from wakeful.store.session import Session

_COLUMNS = ", ".join(RateLimit._fields)


class RateLimits:
    """Verbs on rate limits."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, account: str) -> RateLimit | None:
        """The limit of an account, also one that has ended and that no run has got past yet."""
        sql = f"SELECT {_COLUMNS} FROM agent_limits WHERE account = ?"
        found = self._session.rows(sql, (account,))
        return RateLimit._make(found[0]) if found else None

    def all(self) -> list[RateLimit]:
        """All limits, by account."""
        return [RateLimit._make(row) for row in self._session.rows(f"SELECT {_COLUMNS} FROM agent_limits ORDER BY 1")]

    def put(self, limit: RateLimit) -> None:
        """Store the limit of an account; of two transactions that do at once, the later end counts."""
        conflict = (
            "ON CONFLICT (account) DO UPDATE SET until = excluded.until, why = excluded.why, since = excluded.since "
            "WHERE excluded.until >= agent_limits.until"
        )
        self._session.insert_many("agent_limits", RateLimit._fields, [limit], conflict)

    def drop(self, account: str) -> bool:
        return bool(self._session.execute("DELETE FROM agent_limits WHERE account = ?", (account,)))
