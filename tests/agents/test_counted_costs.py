"""What calls cost is counted, however they end; what is not known is estimated, so that a budget binds."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from decimal import Decimal

import pytest

from tests.agents.virtual_agents import PLACE
from tests.kernel.scene import at, virtual
from tests.service.real_time import TO_BEGIN_S, make, real
from tests.simulation.eye import Eye
from tests.simulation.money import check_money
from wakeful.domains.agents import Reply
from wakeful.domains.agents.budgets.rules import Charge
from wakeful.domains.agents.budgets.tables import Budgets, Reservation
from wakeful.kernel.actions.lookup import require_run

OUTPUT = {"format": "json", "reply": "reply", "session": "session", "cost": "cost", "error": "error"}
HOURLY = {"tick": {"every": "1h", "prompt": "x"}}


def program(printed, ending="", **runner):
    """An agent that prints this; `ending` is the rest of its script."""
    script = f"cat >/dev/null; printf '%s' '{json.dumps(printed)}'; {ending}"
    signs = {"rate_limit": {"pattern": "limit"}, "overload": {"pattern": "busy"}, "session_gone": {"pattern": "gone"}}
    found = {"start": ["sh", "-c", script], "output": OUTPUT, "max_cost": 0.5, **signs, **runner}
    return {"runner": found, "schedules": {"tick": {"every": "1d", "prompt": "x"}}}


def balance(url):
    """The books are right."""
    with contextlib.ExitStack() as stack:
        if url.startswith("sqlite"):
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))))
            connection.row_factory = sqlite3.Row
        else:
            connection = stack.enter_context(contextlib.closing(Eye(url)))
        check_money(connection)


async def charges(scheduler, job):
    """What each run of a job counts as, the first one first: cost in millionths, and where it is from."""
    runs = [require_run(run.id) for run in await scheduler.get_run_log(job, 100)]
    found = await scheduler.read(lambda tx: [tx.of(Budgets).charged(run) for run in sorted(runs)])
    return [None if one is None else (one.cost, one.basis) for one in found]


@pytest.mark.promise("X7")
@real
async def test_a_cost_that_was_reported_counts_however_the_call_ended(tmp_path):
    agents = {
        "overload": program({"error": "busy", "cost": 0.083}, "exit 1"),
        "limit": program({"error": "limit reached", "cost": 0.02}, "exit 1"),
        "broken": program({"error": "no", "cost": 0.03}, "exit 1"),
        "slow": program({"reply": "x", "cost": 0.04}, "exec sleep 600", timeout=TO_BEGIN_S),
        "silent": program({"error": "limit reached"}, "exit 1"),
    }
    counted = {
        "overload": ("error", 83_000, "reported"),
        "limit": ("deferred", 20_000, "reported"),
        "broken": ("error", 30_000, "reported"),
        "slow": ("timeout", 40_000, "reported"),
        "silent": ("deferred", 500_000, "max_cost"),
    }
    async with make(tmp_path) as scheduler:
        await scheduler.agents.apply(agents)
        await scheduler.start()
        runs = {name: await scheduler.run_job(f"{name}.tick") for name in agents}
        ended = {name: await scheduler.wait_for_run(run) for name, run in runs.items()}
        for name, (outcome, cost, basis) in counted.items():
            assert ended[name].outcome == outcome
            number = require_run(ended[name].id)
            charge = await scheduler.read(lambda tx, number=number: tx.of(Budgets).charged(number))
            assert (name, charge.cost, charge.basis) == (name, cost, basis)
            shown = (await scheduler.agents.get(name))["spent_today"]
            assert (shown["runs"], shown["cost"]) == (1, cost / 1_000_000)
        explained = str(await scheduler.explain(ended["silent"].id))
        assert "It counts as a run with a cost of 0.50: it reported none, and that is its max_cost." in explained


@pytest.mark.promise("X7")
@real
async def test_a_session_that_was_gone_and_its_replacement_count_together(tmp_path):
    agent = program({"reply": "x", "session": "s1", "cost": 0.1, "tokens": 5})
    gone = f"cat >/dev/null; printf '%s' '{json.dumps({'error': 'gone', 'cost': 0.02})}'; exit 1"
    agent["runner"] |= {"resume": ["sh", "-c", gone, "{session}"]}
    async with make(tmp_path) as scheduler:
        await scheduler.agents.apply({"a": agent})
        await scheduler.start()
        for _ in range(2):
            run = await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        assert (run.outcome, run.output["cost"], run.usage["cost"]) == ("success", 0.12, 0.12)
        assert await charges(scheduler, "a.tick") == [(100_000, "reported"), (120_000, "reported")]


async def charge(scheduler, agent, costs, day=20260101):
    """Runs of an agent that reported these costs, as if they had ended just now."""

    def work(tx, context):
        for cost in costs:
            made = Reservation(context.new_id(), agent, day, cost)
            tx.of(Budgets).reserve(made)
            tx.of(Budgets).settle(made, Charge(1, cost, 0, "reported"))

    await scheduler.transact(work)


@pytest.mark.promise("X7")
@virtual
async def test_an_unknown_cost_is_the_mean_of_the_last_twenty_and_so_a_budget_binds(scene, agents):
    agents.act = lambda turn: scene.sleep(100)  # longer than it may
    settings = {"runner": {"python": PLACE, "timeout": "10s"}, "schedules": HOURLY}
    async with agents.scheduler_with({"a": {**settings, "budget": {"cost_per_day": 20.0}}}) as scheduler:
        await charge(scheduler, "a", [9_000_000, *[100_000, 300_000] * 10])
        await scheduler.start()
        await scene.until(at(hours=2, minutes=30))
        # Twenty reported 4.00 together; the first one, of 9.00, is no longer among the last twenty.
        assert await charges(scheduler, "a.tick") == [(200_000, "mean")] * 2
        assert (await scheduler.agents.get("a"))["spent_today"]["cost"] == 13.4
        explained = str(await scheduler.explain((await scheduler.get_run_log("a.tick"))[0].id))
        assert "a cost of 0.20: it reported none, and that is the mean of the last 20 that a reported." in explained
        balance(scene.url)
        await scheduler.agents.apply({"a": {**settings, "budget": {"cost_per_day": 13.9}}})
        await scene.until(at(hours=9))
        assert len(agents.turns) == 5  # the third of 0.20 began below 13.90
        balance(scene.url)


@pytest.mark.promise("X7")
@virtual
async def test_the_mean_is_reserved_while_a_run_goes_on(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.4)
    many = {f"s{number}": {"every": "1h", "prompt": "x"} for number in range(6)}
    settings = {"runner": {"python": PLACE}, "budget": {"cost_per_day": 4.0}, "max_concurrent": 10, "schedules": many}
    async with agents.scheduler_with({"a": settings}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=30))
        assert (await scheduler.agents.get("a"))["spent_today"]["cost"] == 2.4
        agents.act, agents.most_busy = (lambda turn: scene.sleep(600)), 0
        await scene.until(at(hours=2, minutes=5))
        assert agents.most_busy == 4  # 2.4 and four times 0.4 are 4.0
        assert (await scheduler.agents.get("a"))["reserved"] == {"runs": 4, "cost": 1.6}
        balance(scene.url)


@pytest.mark.promise("X7")
@virtual
async def test_a_run_that_began_before_any_cost_was_known_counts_what_became_known(scene, agents):
    async def act(turn):
        if turn.schedule == "quick":
            return Reply("ok", cost=0.4)
        return await scene.sleep(600)

    agents.act = act
    both = {"slow": {"every": "1h", "prompt": "x"}, "quick": {"every": "1h", "prompt": "x"}}
    settings = {"runner": {"python": PLACE}, "max_concurrent": 2, "schedules": both}
    async with agents.scheduler_with({"a": settings}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=30))
        assert await charges(scheduler, "a.slow") == [(400_000, "mean")]
        balance(scene.url)


NONSENSE = (float("nan"), float("inf"), -1, -0.5, 10**400, 1e300, True, "0.5", b"x")


@pytest.mark.promise("X7")
@virtual
async def test_a_cost_that_means_nothing_counts_as_none_and_fails_no_run(scene, agents):
    costs = {f"s{number}": cost for number, cost in enumerate(NONSENSE)}
    agents.act = lambda turn: Reply("ok", cost=costs[turn.schedule], tokens_in=costs[turn.schedule], tokens_out=7)
    schedules = dict.fromkeys(costs, HOURLY["tick"])
    settings = {"runner": {"python": PLACE, "max_cost": 0.25}, "schedules": schedules}
    async with agents.scheduler_with({"a": settings}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=5))
        for name in costs:
            (run,) = await scheduler.get_run_log(f"a.{name}")
            assert (name, run.outcome, run.usage) == (
                name,
                "success",
                {"cost": None, "tokens_in": None, "tokens_out": 7},
            )
        found = (await scheduler.agents.get("a"))["spent_today"]
        assert found == {"runs": 9, "cost": 9 * 0.25, "tokens": 9 * 7}
        balance(scene.url)


@virtual
async def test_a_cost_may_be_a_decimal(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=Decimal("0.1"))
    async with agents.scheduler_with({"a": {"runner": {"python": PLACE}, "schedules": HOURLY}}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=5))
        assert await charges(scheduler, "a.tick") == [(100_000, "reported")]
