"""The table of replies to come: a row per run in progress that asks an agent."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.store.rows import Rows, Verbs


class ReplyRoute(NamedTuple):
    """Where the reply of a run goes; None is the usual place, or none instead of it."""

    run_id: int
    goes_to: str | None = None
    recipient: str | None = None  # the person who is answered
    limited_to: str | None = None  # instead, where the run was fed by others


class Replies(Verbs):
    """Verbs on replies to come; each call is part of the transaction it was made in."""

    _routes = Rows("agent_replies", ReplyRoute)

    def keep(self, route: ReplyRoute) -> None:
        """Store where a run's reply goes; a run that is claimed again has a new route."""
        self._routes.put(route, key=("run_id",))

    def of(self, run_id: int) -> ReplyRoute | None:
        """Where the reply of a run goes."""
        return self._routes.one("WHERE run_id = ?", run_id)

    def take(self, run_id: int) -> ReplyRoute | None:
        """Where the reply of a run that ends goes; it is forgotten."""
        gone = f"DELETE FROM agent_replies WHERE run_id = ? RETURNING {self._routes.columns}"
        return next(iter(self._routes.answered(gone, run_id)), None)

    def all(self) -> list[ReplyRoute]:
        return self._routes.all("ORDER BY run_id")
