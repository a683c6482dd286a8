"""The books of agents' budgets: what was spent is the sum of what runs reported or were charged, at every moment."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from decimal import ROUND_CEILING, Decimal
from typing import Any

from tests.simulation.invariants import Broken, Connection, Row

COLUMNS = ("runs", "cost", "tokens", "held_runs", "held_cost")
MOST_COST, MOST_TOKENS = 10**6, 10**12


def check_money(connection: Connection) -> None:
    """X7: days are the sums of charges and reservations, and each run that called an agent has exactly one of them."""
    charges = connection.execute("SELECT * FROM budget_charges ORDER BY run_id").fetchall()
    held = connection.execute("SELECT * FROM budget_reservations ORDER BY run_id").fetchall()
    _check_days(connection, charges, held)
    runs = connection.execute(
        "SELECT r.id, r.status, r.outcome, r.started_at, d.usage, d.error_type, j.payload FROM runs r "
        "JOIN jobs j ON j.id = r.job_id LEFT JOIN run_details d ON d.run_id = r.id WHERE r.kind = 'agent' ORDER BY r.id"
    ).fetchall()
    charged, reserved = ({row["run_id"]: row for row in rows} for rows in (charges, held))
    for run in runs:
        if json.loads(run["payload"])["does"] in ("ask", "wake"):
            _check_run(run, charged.get(run["id"]), reserved.get(run["id"]))


def _check_days(connection: Connection, charges: list[Row], held: list[Row]) -> None:
    sums: defaultdict[tuple[str, int], list[int]] = defaultdict(lambda: [0] * len(COLUMNS))
    counted = [(row, (1, row["cost"], row["tokens"], 0, 0)) for row in charges]
    counted += [(row, (0, 0, 0, 1, row["cost"])) for row in held]
    for row, more in counted:
        for scope in ("fleet", f"agent:{row['agent']}"):
            total = sums[scope, row["day"]]
            total[:] = [before + one for before, one in zip(total, more, strict=True)]
    days = connection.execute("SELECT * FROM budget_days ORDER BY day, scope").fetchall()
    kept = {row["day"] for row in days}
    for row in days:
        found, right = [row[name] for name in COLUMNS], sums.pop((row["scope"], row["day"]), [0] * len(COLUMNS))
        if found != right:
            raise Broken(f"X7: {row['scope']} has {found} on {row['day']}, and its runs come to {right}")
    for (scope, day), right in sorted(sums.items()):
        if day in kept:  # else the day was pruned, and its charges are next
            raise Broken(f"X7: {scope} has no day {day}, and its runs come to {right}")


def _check_run(run: Row, charge: Row | None, held: Row | None) -> None:
    """Reserved while it is open, charged when it is over: what it reported, or what was assumed."""
    name, is_over = f"run {run['id']}", run["status"] == "done"
    if is_over and held is not None:
        raise Broken(f"X7: {name} is over, and has a reservation")
    if run["status"] in ("active", "waiting") and held is None:
        raise Broken(f"X7: {name} is {run['status']} without a reservation")
    if charge is not None and not is_over:
        raise Broken(f"X7: {name} is {run['status']}, and was charged")
    if not is_over:
        return
    usage = json.loads(run["usage"]) if run["usage"] is not None else None
    is_free = run["started_at"] is None or run["error_type"] in ("InvalidJob", "AgentNotStarted")
    is_free = is_free or (run["outcome"] in ("noop", "skipped", "deferred") and usage is None)
    if is_free != (charge is None):
        was = "was not charged" if charge is None else "was charged"
        raise Broken(f"X7: {name} ended as {run['outcome']} with {usage}, and {was}")
    if charge is None:
        return
    cost = _number((usage or {}).get("cost"), MOST_COST)
    tokens = sum(int(_number((usage or {}).get(key), MOST_TOKENS) or 0) for key in ("tokens_in", "tokens_out"))
    if (cost is not None) != (charge["basis"] == "reported") or charge["tokens"] != tokens or charge["cost"] < 0:
        raise Broken(f"X7: {name} reported {usage}, and was charged {dict(charge)}")
    if cost is not None and charge["cost"] != _millionths(cost):
        raise Broken(f"X7: {name} reported a cost of {cost}, and was charged {charge['cost']} millionths")


def _number(value: Any, most: int) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and not math.isnan(value) and 0 <= value <= most else None


def _millionths(cost: float) -> int:
    exact = Decimal(str(cost)) * 1_000_000
    return int(exact.quantize(Decimal("0.001")).to_integral_value(ROUND_CEILING))
