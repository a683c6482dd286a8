"""The table of rate limits, one row for each account; each verb is part of the transaction it is called in."""

from __future__ import annotations

from wakeful.domains.agents.limits.rules import RateLimit
from wakeful.store.rows import Rows, Verbs

_COLUMNS = ", ".join(RateLimit._fields)


class RateLimits(Verbs):
    """Verbs on rate limits."""

    _limits = Rows("agent_limits", RateLimit)

    def of(self, account: str) -> RateLimit | None:
        """The limit of an account, also one that has ended and that no run has got past yet."""
        return self._limits.one("WHERE account = ?", account)

    def all(self) -> list[RateLimit]:
        """All limits, by account."""
        return self._limits.all("ORDER BY account")

    def put(self, limit: RateLimit) -> None:
        """Store the limit of an account; of two transactions that do at once, the later end counts."""
        conflict = (
            "ON CONFLICT (account) DO UPDATE SET until = excluded.until, why = excluded.why, since = excluded.since "
            "WHERE excluded.until >= agent_limits.until"
        )
        self._limits.add(limit, on_conflict=conflict)

    def drop(self, account: str) -> bool:
        return bool(self._session.execute("DELETE FROM agent_limits WHERE account = ?", (account,)))
