"""The pure rules of budgets, as tables; and that no order of runs gets past one."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.domains.agents.budgets.rules import (
    Assumed,
    Caps,
    Charge,
    Spent,
    assumed,
    caps_of,
    charge,
    day_of,
    in_millionths,
    money,
    next_day,
    over,
    spent_words,
    written,
)

CENT = 10_000


def ms(text):
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("caps", "spent", "max_cost", "why"),
    [
        (Caps(), Spent(10**6, 10**12, 10**12), 50 * CENT, None),
        (Caps(runs=2), Spent(1), None, None),
        (Caps(runs=2), Spent(1, held_runs=1), None, "2 of 2 runs are used today"),
        (Caps(runs=0), Spent(), None, "0 of 0 runs are used today"),
        (Caps(cost=100 * CENT), Spent(cost=50 * CENT), 50 * CENT, None),
        (
            Caps(cost=100 * CENT),
            Spent(cost=50 * CENT, held_cost=1 * CENT),
            50 * CENT,
            "a cost of 0.51 of 1.00 is used today, and a run may cost 0.50",
        ),
        (Caps(cost=100 * CENT), Spent(cost=99 * CENT), None, None),
        (Caps(cost=100 * CENT), Spent(cost=100 * CENT), None, "a cost of 1.00 of 1.00 is used today"),
        (Caps(cost=0), Spent(), None, "a cost of 0.00 of 0.00 is used today"),
        (Caps(tokens=1000), Spent(tokens=999), None, None),
        (Caps(tokens=1000), Spent(tokens=1200), None, "1,200 of 1,000 tokens are used today"),
    ],
)
def test_one_run_more_is_too_much_where_any_part_of_a_budget_would_be_exceeded(caps, spent, max_cost, why):
    assert over(caps, spent, max_cost) == why


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("outcome", "usage", "counts"),
    [
        ("noop", None, Charge()),
        ("skipped", None, Charge()),
        ("deferred", None, Charge()),
        ("noop", {"cost": 1.0}, Charge(1, 100 * CENT, 0, "reported")),
        ("deferred", {"cost": 0.02}, Charge(1, 2 * CENT, 0, "reported")),  # a limit that was met after some work
        ("deferred", {}, Charge(1, 50 * CENT, 0, "max_cost")),  # it was called
        ("success", {"cost": 0.1, "tokens_in": 100, "tokens_out": 20}, Charge(1, 10 * CENT, 120, "reported")),
        ("success", {"cost": 0, "tokens_in": None, "tokens_out": 20}, Charge(1, 0, 20, "reported")),
        ("success", {"cost": 0.9}, Charge(1, 90 * CENT, 0, "reported")),  # beyond its limit: what it cost counts
        ("success", {"tokens_in": 100}, Charge(1, 50 * CENT, 100, "max_cost")),
        ("error", {"cost": 0.02}, Charge(1, 2 * CENT, 0, "reported")),
        ("timeout", {"cost": 0.02}, Charge(1, 2 * CENT, 0, "reported")),
        *[
            (outcome, None, Charge(1, 50 * CENT, 0, "max_cost"))
            for outcome in ("success", "error", "timeout", "crashed", "cancelled", "unknown")
        ],
        *[
            ("success", {"cost": cost, "tokens_in": cost}, Charge(1, 50 * CENT, 0, "max_cost"))
            for cost in (-5, math.inf, -math.inf, math.nan, True, "many", 1e300, 10**400, [1])
        ],
        ("success", {"cost": 1_000_000.01}, Charge(1, 50 * CENT, 0, "max_cost")),
        ("success", {"cost": 1e-9}, Charge(1, 1, 0, "reported")),
    ],
)
def test_a_run_counts_what_was_reported_or_its_limit(outcome, usage, counts):
    assert charge(outcome, usage, Assumed(50 * CENT, "max_cost")) == counts


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("max_cost", "reported", "costs"),
    [
        (50, [10, 20], Assumed(50, "max_cost")),
        (0, [10, 20], Assumed(0, "max_cost")),
        (None, [10, 20], Assumed(15, "mean")),
        (None, [1, 1, 2], Assumed(2, "mean")),  # rounded up
        (None, [7] * 20 + [10**9], Assumed(7, "mean")),
        (None, [], Assumed(0, "unknown")),
    ],
)
def test_a_cost_that_is_not_reported_is_the_limit_or_the_mean_of_the_last_twenty(max_cost, reported, costs):
    assert assumed(max_cost, reported) == costs


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("zone", "now", "day", "ends"),
    [
        ("UTC", "2026-01-01T00:00:00+00:00", 20260101, "2026-01-02T00:00:00+00:00"),
        ("UTC", "2026-01-01T23:59:59.999+00:00", 20260101, "2026-01-02T00:00:00+00:00"),
        ("Europe/Berlin", "2026-01-01T23:30:00+00:00", 20260102, "2026-01-03T00:00:00+01:00"),
        ("Europe/Berlin", "2026-03-29T00:30:00+01:00", 20260329, "2026-03-30T00:00:00+02:00"),  # a day of 23 hours
        ("America/New_York", "2026-12-31T12:00:00-05:00", 20261231, "2027-01-01T00:00:00-05:00"),
        ("America/Sao_Paulo", "2018-11-03T12:00:00-03:00", 20181103, "2018-11-04T01:00:00-02:00"),  # no midnight
        ("America/Havana", "2026-11-01T00:30:00-04:00", 20261101, "2026-11-02T00:00:00-05:00"),  # midnight twice
    ],
)
def test_days_are_those_of_the_zone(zone, now, day, ends):
    assert day_of(ms(now), zone) == day
    assert next_day(ms(now), zone) == ms(ends)
    assert day_of(ms(ends), zone) > day


def test_a_budget_is_read_and_written_alike():
    said = {"runs_per_day": 50, "cost_per_day": 5.0, "tokens_per_day": 2_000_000}
    assert written(caps_of(said)) == said
    assert caps_of({}) == Caps()
    assert in_millionths(0.1 + 0.2) == 300_000


@pytest.mark.parametrize(
    ("cost", "text"), [(0, "0.00"), (10_000, "0.01"), (1_234_500_000, "1,234.50"), (40, "0.00004")]
)
def test_money_is_shown_with_two_places_or_as_many_as_it_takes(cost, text):
    assert money(cost) == text


def test_what_was_used_is_said_beside_what_may_be():
    assert (
        spent_words(Caps(50, 500 * CENT), Spent(2, 12 * CENT, 900, 1, 0))
        == "3 of 50 runs, cost 0.12 of 5.00, 900 tokens"
    )
    assert spent_words(Caps(), Spent()) == "0 runs"


@pytest.mark.promise("X7")
@given(
    caps=st.builds(Caps, st.integers(0, 20), st.integers(0, 300), st.integers(0, 500)),
    max_cost=st.integers(0, 50),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 50), st.integers(0, 100)), max_size=80),
)
def test_no_order_of_starts_and_ends_gets_past_a_budget(caps, max_cost, steps):
    """What is settled and reserved stays within runs and cost; tokens are exceeded by what was in progress at most."""
    spent, running = Spent(), 0
    for starts, cost, tokens in steps:
        if starts and over(caps, spent, max_cost) is None:
            spent = spent._replace(held_runs=spent.held_runs + 1, held_cost=spent.held_cost + max_cost)
            running += 1
        elif running:
            counted = charge(
                "success", {"cost": min(cost, max_cost) / 1_000_000, "tokens_in": tokens}, Assumed(max_cost)
            )
            spent = Spent(
                spent.runs + counted.runs,
                spent.cost + counted.cost,
                spent.tokens + counted.tokens,
                spent.held_runs - 1,
                spent.held_cost - max_cost,
            )
            running -= 1
        assert spent.runs + spent.held_runs <= caps.runs
        assert spent.cost + spent.held_cost <= caps.cost
        assert spent.held_runs == running


@pytest.mark.parametrize(
    ("caps", "spent", "words"),
    [
        (Caps(None, None, None), Spent(1, 0, 1), "1 run, 1 token"),
        (Caps(1, None, 1), Spent(0, 0, 0), "0 of 1 run, 0 of 1 token"),
        (Caps(50, None, None), Spent(1, 0, 0), "1 of 50 runs"),
        (Caps(None, None, 2_000_000), Spent(0, 0, 1_500), "0 runs, 1,500 of 2,000,000 tokens"),
    ],
)
def test_what_was_used_reads_well_for_one_and_for_many(caps, spent, words):
    assert spent_words(caps, spent) == words


def test_a_budget_of_one_run_that_is_used_up_is_told_in_words():
    assert over(Caps(1, None, None), Spent(1, 0, 0), None) == "1 of 1 run is used today"
    assert over(Caps(None, None, 1), Spent(1, 0, 5), None) == "5 of 1 token is used today"
