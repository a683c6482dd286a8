"""What is kept of an answer: the tokens that are this run's own, and which replies reach a person."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.delivery.targets import Target
from tests.kernel.scene import at, virtual
from tests.store.samples import job
from wakeful.domains.agents import Reply, kept_session
from wakeful.domains.agents.budgets import spending
from wakeful.domains.agents.budgets.rules import Charge
from wakeful.domains.agents.budgets.tables import Budgets, Reservation
from wakeful.domains.agents.sources import claims
from wakeful.domains.agents.sources.source import Lost
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.agents.work import NewItem, add_item, claim_item, list_items
from wakeful.store.records import RunRow


@pytest.mark.promise("X7")
@virtual
async def test_of_a_tool_that_counts_the_whole_session_only_what_is_new_counts(scene):
    payload = {"agent": "a", "runner": {"preset": "codex"}}
    kept = kept_session.StoredSession(1, "a/wake", None)
    async with scene.scheduler() as scheduler:
        active = RunRow.queued(1, job(1)[0], "manual", 0)._replace(status="active")
        await scheduler.transact(lambda tx, _: tx.runs.add([active]))

        async def keep(session, tokens_in, tokens_out):
            said = Reply("ok", session, None, tokens_in, tokens_out)
            own = await scheduler.transact(lambda tx, _: kept_session.keep(tx, payload, kept, said))
            return own.tokens_in, own.tokens_out

        assert await keep("one", 100, 10) == (100, 10)
        assert await keep("one", 150, 30) == (50, 20)
        assert await keep("two", 40, 4) == (40, 4)


@pytest.mark.promise("A6")
@virtual
async def test_an_acknowledgement_is_delivered_to_no_person_whatever_else_it_says(scene, agents):
    target = Target(scene)
    replies = iter(["HEARTBEAT_OK The house is quiet.", "Smoke! " + "x" * 300 + " HEARTBEAT_OK"])
    agents.act = lambda turn: next(replies)
    async with agents.scheduler() as scheduler:
        scheduler.connectors.register("phone", target)
        await scheduler.agents.apply({"a": agent(heartbeat={"every": "30m", "prompt": "Look around."})})
        await scheduler.start()
        for _ in range(2):
            await scheduler.agents.request_wake("a", "interval")
            await scene.sleep(2)
        log = [run.output["outcome"] for run in await scheduler.get_run_log("a.wake")]
        assert log == ["sent", "ok-ack"]  # the newest first
        assert target.texts == ["Smoke! " + "x" * 300]
        await scheduler.stop()


@pytest.mark.promise("D10")
@virtual
async def test_a_run_that_is_claimed_again_has_the_item_it_had(scene, agents):
    payload = {"agent": "a", "work": True}
    async with agents.scheduler_with({"a": agent(work={"source": "queue"})}) as scheduler:

        def claim_twice(tx, context):
            for title in ("Roof", "Door"):
                add_item(tx, context, "a", NewItem(title))
            run = RunRow.queued(context.new_id(), tx.jobs.by_name("a.wake")[0], "schedule", tx.now)
            return [claim_item(tx, payload, run)["title"] for _ in range(2)]

        assert await scheduler.transact(claim_twice) == ["Roof", "Roof"]
        found = await scheduler.read(lambda tx: list_items(tx, None, None, None, 10))
        assert {one["title"]: (one["status"], one["attempts"]) for one in found} == {
            "Roof": ("claimed", 1),
            "Door": ("ready", 0),
        }


@pytest.mark.promise("X7")
@virtual
async def test_a_run_that_was_given_back_has_the_budget_it_reserved(scene, agents):
    ask = {"ask": {"cron": "0 9 1 1 *", "prompt": "x"}}
    async with agents.scheduler_with({"a": agent(budget={"runs_per_day": 1}, schedules=ask)}) as scheduler:

        def refused(tx, context, reserved):
            job, state = tx.jobs.by_name("a.ask")
            run = RunRow.queued(context.new_id(), job, "schedule", tx.now)
            tx.runs.add([run])
            other = run._replace(id=context.new_id())
            spending.reserve(tx, job, run if reserved else other)
            spending.reserve(tx, job, run if reserved else other)  # once, however often it is claimed
            spent = tx.of(Budgets).spent(["agent:a"], 20260101)["agent:a"]
            assert spent.held_runs == 1
            found = spending.refuse_start(tx, context, job, state._replace(queued=1))
            raise _Found(None if found is None else found.reason)

        for reserved, reason in ((True, None), (False, "over_budget")):
            with pytest.raises(_Found) as found:
                await scheduler.transact(lambda tx, context, r=reserved: refused(tx, context, r))
            assert found.value.args == (reason,)


class _Found(Exception):
    """Ends a transaction that is not to be stored, with what was found."""


@pytest.mark.promise("D10")
@virtual
async def test_a_claim_that_the_source_gave_to_another_is_no_attempt(scene, agents):
    async with agents.scheduler_with({"a": agent(work={"source": "queue"})}) as scheduler:

        def lose(tx, context):
            owner = tx.jobs.by_name("a.wake")[0].id
            item = WorkItem(5, "a", "Roof", None, "x", 0, "claimed", 7, 3, tx.now, None, "directory:/x", "{}", 1)
            tx.of(AgentTables).add_item(item, owner)
            claims._not_ours(tx, item, Lost())
            left = tx.of(AgentTables).item(5)
            return left.status, left.attempts, left.held, left.mark

        assert await scheduler.transact(lose) == ("ready", 2, 0, None)


@pytest.mark.promise("X7")
@virtual
async def test_a_day_on_which_a_run_in_progress_counts_is_kept(scene):
    made = Reservation(7, "a", 20260101, 250_000)
    async with scene.scheduler() as scheduler:
        await scheduler.transact(lambda tx, _: tx.of(Budgets).reserve(made))
        assert await scheduler.transact(lambda tx, _: tx.of(Budgets).prune(20260601, 10)) == 0
        await scheduler.transact(lambda tx, _: tx.of(Budgets).settle(made, Charge(1, 100_000, 5)))
        first = await scheduler.transact(lambda tx, _: tx.of(Budgets).prune(20260601, 2))
        assert first == 2  # its own and the fleet's
        assert await scheduler.read(lambda tx: tx.of(Budgets).charged(7)) is not None  # the rest of a step
        assert await scheduler.transact(lambda tx, _: tx.of(Budgets).prune(20260601, 10)) == 1
        assert await scheduler.read(lambda tx: tx.of(Budgets).charged(7)) is None


@virtual
async def test_a_prompt_file_that_another_user_could_write_is_not_given_to_the_agent(scene, agents, tmp_path):
    file = tmp_path / "prompt.md"
    file.write_text("Say hello.")
    file.chmod(0o666)
    plan = {"a": agent(schedules={"s": {"every": "10m", "prompt_file": str(file)}})}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=11))
        (run,) = await scheduler.get_run_log("a.s", 10)
        assert (run.outcome, agents.turns) == ("error", [])
        assert f"The prompt file {file} is not used because it is writable by everybody" in run.error
        file.chmod(0o600)
        await scene.until(at(minutes=25))
        assert agents.prompts
