"""The budget that agents have where nothing is configured, and the morning after one was used up."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from tests.agents.test_counted_costs import balance, charge
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.budgets.rules import BudgetLimits, Caps, Spent
from wakeful.domains.agents.budgets.spending import FACT, limits_of, why_over
from wakeful.errors import InvalidSetting
from wakeful.triggers.moments import to_ms

BEAT = {"enabled": True}
TEN = [f"a{number}" for number in range(10)]


def by_agent(agents):
    """How often each agent was called."""
    return dict(sorted(Counter(turn.agent for turn in agents.turns).items()))


@pytest.mark.promise("X7", "A11")
@virtual
async def test_ten_agents_with_the_default_heartbeat_beat_on_after_a_hundred_runs_together(scene, agents):
    async with agents.scheduler_with({name: agent(heartbeat=BEAT) for name in TEN}) as scheduler:
        for name in TEN:
            await charge(scheduler, name, [1] * 11)
        await scheduler.start()
        await scene.until(at(minutes=31))
        assert by_agent(agents) == dict.fromkeys(TEN, 1)
        shown = await scheduler.agents.get("a0")
        assert (shown["budget"], shown["spent_today"]["runs"]) == ({"runs_per_day": 100}, 12)
        balance(scene.url)


@pytest.mark.promise("X7", "A11")
@virtual
async def test_after_a_day_over_budget_agents_start_with_their_own_beat_and_not_all_at_midnight(scene, agents):
    fleet = {name: agent(heartbeat=BEAT) for name in TEN}
    async with agents.scheduler_with(fleet, timezone="Etc/GMT+1") as scheduler:  # whose midnight is at one
        await charge(scheduler, "another", [20_000_000], day=20251231)
        await scheduler.start()
        await scene.until(at(minutes=59))
        assert agents.turns == []
        await scene.until(at(hours=1, minutes=29))
        assert by_agent(agents) == dict.fromkeys(TEN, 1)
        assert min((later - one).total_seconds() for one, later in pairwise(agents.times)) >= 170


@pytest.mark.promise("X7", "A11")
@virtual
async def test_agents_without_a_beat_early_in_the_day_wait_for_times_of_their_own_in_the_first_half_hour(scene, agents):
    fleet = {name: agent(budget={"runs_per_day": 0}) for name in TEN}
    fleet["a9"] = {**fleet["a9"], "heartbeat": {"enabled": True, "every": "7h"}}  # which beats at four the next day
    async with agents.scheduler_with(fleet) as scheduler:
        await scheduler.start()
        for name in TEN:
            await scheduler.agents.request_wake(name)
        await scene.sleep(60)
        await scheduler.agents.apply({name: agent() for name in TEN[:1]} | {n: fleet[n] for n in TEN[1:]})
        await scene.sleep(60)
        assert by_agent(agents) == {"a0": 1}  # a larger budget does not wait for a new day
        until = await scheduler.read(lambda tx: [tx.jobs.by_name(f"{name}.wake")[1].due_at for name in TEN[1:]])
        assert all(0 <= when - to_ms(at(days=1)) < 30 * 60_000 for when in until)
        assert len(set(until)) == 9


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("given", "limit", "applies"),
    [
        (None, None, {"runs_per_day": 100}),
        ({"cost_per_day": 5}, None, {"runs_per_day": 100, "cost_per_day": 5}),
        ({"runs_per_day": 120}, None, {"runs_per_day": 120}),
        ({"runs_per_day": None}, None, {}),
        (None, {"runs_per_day": 150}, {}),
        (None, {"runs_per_day": None}, {}),
        (None, {"cost_per_day": 50}, {"runs_per_day": 100}),
        ({"runs_per_day": 90}, {"runs_per_day": 150}, {"runs_per_day": 90}),
    ],
)
@virtual
async def test_a_hundred_runs_a_day_are_an_agents_own_unless_its_budget_or_that_of_all_says_how_many(
    scene, agents, given, limit, applies
):
    async with agents.scheduler_with({"a": agent() if given is None else agent(budget=given)}) as scheduler:
        if limit is not None:
            await scheduler.agents.limit(**limit)
        assert (await scheduler.agents.get("a"))["budget"] == applies
        payload = {"agent": "a", **({} if given is None else {"budget": given})}
        limits = await scheduler.read(limits_of)
        most = applies.get("runs_per_day", 10**6)
        assert why_over(payload, limits, Spent(most - 1), Spent()) is None
        if "runs_per_day" in applies:
            assert why_over(payload, limits, Spent(most), Spent())[0] == "agent:a"


@virtual
async def test_a_budget_that_an_earlier_version_stored_means_what_it_meant(scene, agents):
    old = '{"runs_per_day": 100, "cost_per_day": 20.0, "tokens_per_day": null, "timezone": "UTC"}'
    async with agents.scheduler() as scheduler:
        await scheduler.transact(lambda tx, _: tx.facts.put({FACT: old}))
        found = await scheduler.read(limits_of)
        assert found == BudgetLimits(Caps(100, 20_000_000), "UTC", None)


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    "limit",
    [
        {"cost_per_day": float("nan")},
        {"cost_per_day": float("inf")},
        {"cost_per_day": -1},
        {"cost_per_day": 10**400},
        {"runs_per_day": -1},
        {"runs_per_day": True},
        {"runs_per_day": 1.5},
        {"tokens_per_day": "many"},
    ],
    ids=str,
)
@virtual
async def test_a_budget_that_cannot_be_meant_is_refused_and_changes_nothing(scene, limit):
    async with scene.scheduler("job") as scheduler:
        with pytest.raises(InvalidSetting, match=f"{next(iter(limit))} is an? .* from 0"):
            await scheduler.agents.limit(**limit)
        assert await scheduler.read(lambda tx: tx.facts.get(FACT)) is None
