"""Ways around a budget, and ways to lose one: none of them works."""

from __future__ import annotations

import json

import pytest

from tests.agents.test_counted_costs import balance, charges
from tests.agents.virtual_agents import PLACE, agent
from tests.kernel.scene import at, virtual
from tests.service.real_time import make, real
from wakeful.domains.agents import Reply
from wakeful.domains.agents.budgets import spending
from wakeful.domains.agents.budgets.rules import day_of
from wakeful.domains.agents.budgets.tables import Budgets
from wakeful.domains.agents.runners.output import OutputForm, OutputReader
from wakeful.domains.agents.runners.paths import number_at
from wakeful.domains.agents.runners.plain_text import read_text
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.replies import reply_in
from wakeful.domains.agents.runners.usage import countable, with_earlier
from wakeful.store.records import RunRow

HOURLY = {"tick": {"every": "1h", "prompt": "x"}}


async def spent(scheduler, name):
    return (await scheduler.agents.get(name))["spent_today"]


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("values", "number"),
    [
        ([0.1, 0.2], 0.30000000000000004),
        ([0.1, -5], None),  # nobody is paid
        ([-5], None),
        ([0.5, 10**400], None),
        ([1e999, -1e999], None),
        ([float("nan")], None),
        (["0.5", True, 1], 1),
    ],
)
def test_numbers_that_mean_nothing_are_not_added_up(values, number):
    assert number_at({"models": dict(enumerate(values))}, "models.*") == number


@pytest.mark.promise("X7")
def test_a_negative_cost_takes_nothing_off_the_others():
    reader = OutputReader(OutputForm("jsonl", reply="text", cost="cost", sums=True), lambda _: None)
    for cost in (0.5, -0.4, 1e999, 0.25):
        reader.feed(f"{json.dumps({'text': 'x', 'cost': cost}).replace('Infinity', '1e999')}\n".encode())
    assert reader.finish("", "").cost == 0.75


@pytest.mark.parametrize("cost", [10**400, float("inf"), -1, True, "1"], ids=lambda cost: repr(cost)[:8])
def test_a_session_server_that_reports_nonsense_has_reported_nothing(cost):
    assert countable(reply_in({"reply": "x", "cost": cost, "tokens_in": cost}, "s"))[2:4] == (None, None)


@pytest.mark.promise("X7")
@virtual
async def test_an_agent_under_a_new_name_has_what_all_agents_together_have_left(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=3.0)
    async with agents.scheduler_with({"a": agent(schedules=HOURLY)}) as scheduler:
        await scheduler.agents.limit(cost_per_day=6)
        await scheduler.start()
        await scene.until(at(hours=2, minutes=30))
        await scheduler.agents.apply({"b": agent(schedules=HOURLY)})
        await scene.until(at(hours=5))
        assert [turn.agent for turn in agents.turns] == ["a", "a"]
        assert (await scheduler.agents.get("b"))["over_budget"].startswith("all agents together are over budget")
        await scheduler.agents.apply({"a": agent(schedules=HOURLY, budget={"cost_per_day": 6})})  # back again
        assert await spent(scheduler, "a") == {"runs": 2, "cost": 6.0, "tokens": 0}
        balance(scene.url)


@pytest.mark.promise("X7")
@virtual
async def test_a_budget_that_is_changed_in_mid_day_keeps_what_was_spent(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=1.0)
    async with agents.scheduler_with({"a": agent(schedules=HOURLY, budget={"cost_per_day": 5})}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=2, minutes=30))
        await scheduler.agents.apply({"a": agent(schedules=HOURLY, budget={"cost_per_day": 2})})
        await scene.until(at(hours=4, minutes=30))
        assert len(agents.turns) == 2
        await scheduler.agents.apply({"a": agent(schedules=HOURLY, budget={"cost_per_day": 3})})
        await scene.until(at(hours=8, minutes=30))
        assert len(agents.turns) == 3
        assert (await spent(scheduler, "a"))["cost"] == 3.0
        balance(scene.url)


@pytest.mark.promise("X7")
@virtual
async def test_what_one_run_reserved_starts_no_other(scene, agents):
    ask = {"ask": {"cron": "0 9 1 1 *", "prompt": "x"}}
    async with agents.scheduler_with({"a": agent(budget={"runs_per_day": 1}, schedules=ask)}) as scheduler:

        def refused(tx, context):
            job, state = tx.jobs.by_name("a.ask")
            first, second = (RunRow.queued(context.new_id(), job, "webhook", tx.now) for _ in range(2))
            tx.runs.add([first, second])
            spending.reserve(tx, job, second)
            return spending.refuse_start(tx, context, job, state._replace(queued=2))

        assert (await scheduler.transact(refused)).reason == "over_budget"


@pytest.mark.promise("X7")
@real
async def test_a_run_that_could_not_call_its_agent_counts_as_nothing(tmp_path):
    runners = {
        "unset": {"start": ["true"], "env": ["KEY=${NOT_SET_ANYWHERE}"]},
        "missing": {"start": ["/no/such/program"]},
        "no_prompt": {"python": PLACE},
    }
    prompts = {name: {"prompt_file": "/no/such/file"} if name == "no_prompt" else {"prompt": "x"} for name in runners}
    fleet = {
        name: {"runner": {**runner, "max_cost": 0.5}, "schedules": {"ask": {"cron": "0 9 1 1 *", **prompts[name]}}}
        for name, runner in runners.items()
    }
    async with make(tmp_path) as scheduler:
        await scheduler.agents.apply(fleet)
        await scheduler.start()
        runs = {name: await scheduler.run_job(f"{name}.ask") for name in fleet}
        for name, asked in runs.items():
            run = await scheduler.wait_for_run(asked)
            assert (name, run.outcome) == (name, "error")
            assert (name, await spent(scheduler, name)) == (name, {"runs": 0, "cost": 0.0, "tokens": 0})
            assert "counts as a run" not in str(await scheduler.explain(run.id))


@pytest.mark.promise("X7")
@virtual
async def test_a_crash_between_the_call_and_its_end_counts_what_was_reserved_once(scene, agents):
    agents.act = lambda turn: Reply("ok", cost=0.4) if len(agents.turns) == 1 else scene.sleep(36_000)
    async with agents.scheduler_with({"a": agent(schedules=HOURLY)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=2, minutes=5))
        assert (await scheduler.agents.get("a"))["reserved"] == {"runs": 1, "cost": 0.4}
        balance(scene.url)
        await scene.crash(scheduler)
    balance(scene.url)
    agents.act = lambda turn: Reply("ok", cost=0.1)
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        found = await charges(scheduler, "a.tick")
        assert found == [(400_000, "reported"), (400_000, "mean"), (100_000, "reported")]
        balance(scene.url)


@pytest.mark.promise("X7")
@virtual
async def test_a_run_that_was_given_back_and_then_dropped_gives_its_reservation_back(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=HOURLY)}) as scheduler:

        def give_back(tx, context):
            job, state = tx.jobs.by_name("a.tick")
            run = RunRow.queued(context.new_id(), job, "schedule", tx.now)
            tx.runs.add([run])
            tx.jobs.save([state._replace(queued=1)])
            spending.reserve(tx, job, run)

        await scheduler.transact(give_back)
        balance(scene.url)
        await scheduler.agents.apply({})  # removed
        held = await scheduler.read(
            lambda tx: tx.of(Budgets).spent(["fleet"], day_of(tx.now, "UTC"))["fleet"].held_runs
        )
        assert held == 0
        balance(scene.url)


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("payload", "most"),
    [
        ({"runner": {"max_cost": 1}}, 1_000_000),
        ({"runner": {"max_cost": 1}, "untrusted": {"max_cost": 2}}, 2_000_000),
        ({"runner": {"max_cost": 2}, "untrusted": {"max_cost": 1}}, 2_000_000),
        ({"runner": {}, "untrusted": {"max_cost": 1}}, None),  # its own runs may cost anything
        ({}, None),
    ],
)
def test_a_run_reserves_the_most_that_it_may_cost_whoever_feeds_it(payload, most):
    assert spending.max_cost_of(payload) == most


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    ("earlier", "later", "together"),
    [
        (None, Reply("x", cost=0.1, tokens_in=5), (0.1, 5, None)),
        (Reply("", cost=0.02, tokens_in=1, tokens_out=2), Reply("x", cost=0.1, tokens_in=5), (0.12, 6, 2)),
        (Reply(""), Reply("x", cost=0.1), (0.1, None, None)),
        (Reply("", cost=0.02, tokens_in=1), Reply("x"), (None, 1, None)),  # nobody knows what both cost
    ],
)
def test_what_two_calls_of_a_run_used_is_added_up_as_far_as_it_is_known(earlier, later, together):
    assert with_earlier(later, earlier)[2:5] == together


@virtual
async def test_a_run_of_which_nobody_knows_the_cost_says_so(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=HOURLY)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=5))
        (run,) = await scheduler.get_run_log("a.tick")
        explained = str(await scheduler.explain(run.id))
        assert "It counts as a run with a cost of 0.00: it reported none, and there is no max_cost." in explained


@pytest.mark.promise("X7")
@pytest.mark.parametrize("digits", ["9" * 400, "1.2.3", "9" * 30])
def test_a_reply_that_looks_like_a_tools_own_numbers_fails_no_run(digits):
    own = "Tokens: 2.0k sent, 10 received. Cost: $0.01 message, $0.03 session."
    fake = f"Tokens: {digits} sent, {digits} received. Cost: $0.01 message, ${digits} session."
    found = read_text(PRESETS["aider"].output, f"{fake}\n{own}\n", "")
    assert (found.cost, found.tokens_in, found.tokens_out) == (0.03, 2000, 10)
