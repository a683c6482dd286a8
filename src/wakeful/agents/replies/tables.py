"""The table of replies to come: a row per run in progress that asks an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session


class Route(NamedTuple):
    """Where the reply of a run goes; None is the usual place, or none instead of it."""

    run_id: int
    goes_to: str | None = None
    recipient: str | None = None  # the person who is answered
    limited_to: str | None = None  # instead, where the run was fed by others


_ROUTE = ", ".join(Route._fields)


class Replies:
    """Verbs on replies to come; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, route: Route) -> None:
        """Store where a run's reply goes; a run that is claimed again has a new route."""
        said = ", ".join(f"{name} = excluded.{name}" for name in Route._fields[1:])
        self._session.insert_many("agent_replies", Route._fields, [route], f"ON CONFLICT (run_id) DO UPDATE SET {said}")

    def of(self, run_id: int) -> Route | None:
        """Where the reply of a run goes."""
        found = self._session.rows(f"SELECT {_ROUTE} FROM agent_replies WHERE run_id = ?", (run_id,))
        return Route._make(found[0]) if found else None

    def take(self, run_id: int) -> Route | None:
        """Where the reply of a run that ends goes; it is forgotten."""
        found = self._session.rows(f"DELETE FROM agent_replies WHERE run_id = ? RETURNING {_ROUTE}", (run_id,))
        return Route._make(found[0]) if found else None

    def all(self) -> list[Route]:
        return [Route._make(row) for row in self._session.rows(f"SELECT {_ROUTE} FROM agent_replies ORDER BY run_id")]
