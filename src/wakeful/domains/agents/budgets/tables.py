"""The tables of budgets: a row per scope and day, one per run in progress, and one per run that was counted.

What a day has spent is the sum of its charges: both are written by the transaction that ends a run.

Who reads a day to decide about it holds the fleet's row of that day until the transaction ends: so two nodes never
decide at once. A claim does not wait for that row, because it has lanes that the other may want; it comes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.agents.budgets.rules import AT_MOST, RECENT, REPORTED, Charge, Spent
from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from wakeful.store.session import Session

FLEET = "fleet"


class Reservation(NamedTuple):
    """What a run in progress may cost and why so much, and the day on which it counts."""

    run_id: int
    agent: str
    day: int
    cost: int
    basis: str = AT_MOST


class Charged(NamedTuple):
    """What a run that has ended counts as."""

    run_id: int
    agent: str
    day: int
    cost: int
    tokens: int
    basis: str


def scope_of(agent: str) -> str:
    return f"agent:{agent}"


class Budgets(Verbs):
    """Verbs on budgets; each is part of the transaction it was made in."""

    _reservations = Rows("budget_reservations", Reservation)
    _charges = Rows("budget_charges", Charged)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._mine: set[int] = set()  # the days this transaction holds

    def hold(self, day: int, *, wait: bool) -> bool:
        """Be the only one who decides about a day, until this transaction ends; False: another one does just now."""
        if day not in self._mine:
            sql = "SELECT 1 FROM budget_days WHERE scope = ? AND day = ?"
            clause = self._session.lock_clause if wait else self._session.skip_clause
            if not self._session.rows(sql + clause, (FLEET, day)):
                row = (FLEET, day, *Spent())
                columns = ("scope", "day", *Spent._fields)
                if not self._session.insert_many("budget_days", columns, [row], "ON CONFLICT DO NOTHING"):
                    return self.hold(day, wait=True) if wait else False
            self._mine.add(day)
        return True

    def spent(self, scopes: Sequence[str], day: int) -> dict[str, Spent]:
        """What was used and is reserved on that day, for each of the scopes."""
        columns = ("scope", *Spent._fields)
        rows = self._session.select_in(columns, "budget_days", "scope", scopes, only=f"day = {int(day)}")
        return dict.fromkeys(scopes, Spent()) | {str(row[0]): Spent._make(map(int, row[1:])) for row in rows}

    def reserve(self, made: Reservation) -> None:
        self._reservations.add(made)
        self._add(made, Spent(held_runs=1, held_cost=made.cost))

    def reservations(self, run_ids: Sequence[int]) -> list[Reservation]:
        """What these runs reserved."""
        return self._reservations.among("run_id", run_ids)

    def settle(self, made: Reservation, counts: Charge) -> None:
        """Count the run with that usage, and release its reservation."""
        self._session.execute("DELETE FROM budget_reservations WHERE run_id = ?", (made.run_id,))
        if counts.runs:
            row = Charged(made.run_id, made.agent, made.day, counts.cost, counts.tokens, counts.basis)
            self._charges.add(row)
        used = Spent(counts.runs, counts.cost, counts.tokens, held_runs=-1, held_cost=-made.cost)
        self._add(made, used)

    def charged(self, run_id: int) -> Charged | None:
        """What that run counts as; None if it counts as nothing, or is not over."""
        return self._charges.one("WHERE run_id = ?", run_id)

    def reported(self, agent: str) -> list[int]:
        """The costs that the agent's last runs reported, the newest first."""
        sql = f"SELECT cost FROM budget_charges WHERE agent = ? AND basis = '{REPORTED}' ORDER BY run_id DESC LIMIT ?"
        return self._column(sql, agent, RECENT)

    def _add(self, made: Reservation, more: Spent) -> None:
        rows = [(scope, made.day, *more) for scope in (FLEET, scope_of(made.agent))]
        sums = ", ".join(f"{name} = budget_days.{name} + excluded.{name}" for name in Spent._fields)
        conflict = f"ON CONFLICT (scope, day) DO UPDATE SET {sums}"
        self._session.insert_many("budget_days", ("scope", "day", *Spent._fields), rows, conflict)

    def prune(self, before: int, limit: int) -> int:
        """Delete days before that one, as long as no run in progress counts on them; how many rows there were."""
        sql = (
            "DELETE FROM budget_days WHERE (scope, day) IN (SELECT scope, day FROM budget_days "
            "WHERE day < ? AND held_runs = 0 ORDER BY day, scope LIMIT ?)"
        )
        pruned = self._session.execute(sql, (before, limit))
        charges = (
            "DELETE FROM budget_charges WHERE run_id IN (SELECT run_id FROM budget_charges WHERE day < ? "
            "AND day NOT IN (SELECT day FROM budget_days WHERE day < ?) ORDER BY day LIMIT ?)"
        )
        return pruned + (self._session.execute(charges, (before, before, limit - pruned)) if pruned < limit else 0)

    def wait_again(self, now: int) -> int:
        """Let jobs of agents that wait for a later time look again now; how many there are."""
        sql = (
            "UPDATE job_state SET due_at = ? WHERE ready_at IS NOT NULL AND parked IS NULL AND run_id IS NULL "
            "AND due_at > ? AND job_id IN (SELECT id FROM jobs WHERE kind = 'agent' AND removed_at IS NULL)"
        )
        changed = self._session.execute(sql, (now, now))
        if changed and self._session.watermark is not None:
            self._session.watermark.armed(now)
        self._session.announce()
        return changed
