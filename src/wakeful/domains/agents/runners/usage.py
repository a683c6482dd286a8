"""What calls of an agent used: only numbers that can be meant, and the sum of two calls in one run. Pure."""

from __future__ import annotations

from typing import Any

from wakeful.domains.agents.budgets.rules import MOST_COST, MOST_TOKENS, amount
from wakeful.domains.agents.runners.turn import Reply

COUNTS = ("cost", "tokens_in", "tokens_out")


def countable(reply: Reply) -> Reply:
    """The reply without numbers that mean nothing, such as a negative cost or one of 1e999: they were not reported."""
    tokens = [amount(count, MOST_TOKENS) for count in (reply.tokens_in, reply.tokens_out)]
    tokens_in, tokens_out = [None if count is None else int(count) for count in tokens]
    return reply._replace(cost=amount(reply.cost, MOST_COST), tokens_in=tokens_in, tokens_out=tokens_out)


def with_earlier(reply: Reply, earlier: Reply | None) -> Reply:
    """The reply with what an earlier call of the same run used, as far as that was reported."""
    if earlier is None:
        return reply
    return reply._replace(
        cost=None if reply.cost is None else round(reply.cost + (earlier.cost or 0), 9),  # a part is not the whole
        tokens_in=_sum(earlier.tokens_in, reply.tokens_in),
        tokens_out=_sum(earlier.tokens_out, reply.tokens_out),
    )


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def usage_of(reply: Reply) -> dict[str, Any] | None:
    """What was reported, as a run keeps it; None where nothing was."""
    found = {name: getattr(reply, name) for name in COUNTS}
    return found if any(value is not None for value in found.values()) else None
