"""What the store notes about items of a source: each rule by itself, in virtual time."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from tests.agents.test_directory_source import Inbox, items, working
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.agents.sources import marking
from wakeful.domains.agents.sources.directory import DirectorySource
from wakeful.domains.agents.sources.source import SourceItem, SourceListing
from wakeful.domains.agents.sources.tables import SourceTables
from wakeful.domains.agents.tables import AgentTables, KeptSession, Sessions, WorkItem
from wakeful.domains.agents.work import item_text, next_for, retry_item
from wakeful.kernel.rules.outcome import Defer
from wakeful.store.records import RunRow
from wakeful.triggers import from_ms


class Post(NamedTuple):
    """A run of the agent `a` that looks for work."""

    source: DirectorySource
    agent: str = "a"
    run_id: int = 7


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def post(inbox):
    inbox.put("roof.md")
    return Post(DirectorySource(str(inbox.path), inline=True))


def item(tx, context, **changes):
    """An item of the agent `a`, stored."""
    made = WorkItem(context.new_id(), "a", "Roof", None, "roof.md", 0, "ready", None, 0, tx.now, None)
    made = made._replace(**changes)
    tx.of(AgentTables).add_item(made, marking.owner_of(tx, "a"))
    return made


async def within(agents, work):
    """What a transaction gives in a store with the agent `a`, whose run 6 is over and whose run 7 is in progress."""

    def with_runs(tx, context):
        job = tx.jobs.by_name("a.wake")[0]
        over = {"status": "done", "outcome": "crashed", "finished_at": tx.now}
        states = {6: over, 7: {"status": "active", "started_at": tx.now}}
        tx.runs.add([RunRow.queued(number, job, "manual", tx.now)._replace(**how) for number, how in states.items()])
        return work(tx, context)

    async with agents.scheduler_with({"a": agent()}) as scheduler:
        return await scheduler.transact(with_runs)


@pytest.mark.promise("D10")
@virtual
async def test_an_item_that_is_tried_again_is_not_done_before_it_is_worked_on(scene, agents):
    def work(tx, context):
        made = item(tx, context, status="done", source="directory:/x", mark='{"nonce": "n", "verdict": "done"}')
        retry_item(tx, context, item_text(made.id))
        return json.loads(tx.of(AgentTables).item(made.id).mark)

    assert await within(agents, work) == {"nonce": "n", "again": True}


@pytest.mark.promise("D10")
@virtual
async def test_an_agent_is_given_items_of_its_queue_and_of_its_source_alone(scene, agents):
    def work(tx, context):
        item(tx, context, source="directory:/other")
        before = next_for(tx, "a", "directory:/x"), tx.of(AgentTables).has_ready("a", "directory:/x")
        item(tx, context, title="Queue", external_id=None)
        return before, next_for(tx, "a", "directory:/x").title, next_for(tx, "a", "directory:/other").title

    assert await within(agents, work) == ((None, False), "Queue", "Roof")


@pytest.mark.promise("D10")
@virtual
async def test_what_was_decided_is_noted_before_the_source_hears_of_it(scene, agents):
    def work(tx, context):
        item(tx, context, status="claimed", run_id=7, source="directory:/x", mark='{"nonce": "n"}', held=1)
        marking.decide(tx, 7, "done")
        return json.loads(tx.of(AgentTables).item_of(7).mark)

    assert await within(agents, work) == {"nonce": "n", "verdict": "done"}


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("held", "status"), [(0, "ready"), (1, "done")])
@virtual
async def test_an_item_comes_back_once_its_source_has_heard_of_it(scene, agents, post, held, status):
    def work(tx, context):
        made = item(tx, context, status="done", source=post.source.key, mark='{"nonce": "n"}', held=held)
        marking.bring_in(tx, context, post, SourceListing([SourceItem("roof.md", "roof.md")], is_whole=True), 9)
        return tx.of(AgentTables).item(made.id).status

    assert await within(agents, work) == status


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("is_whole", "left"), [(True, False), (False, True)])
@virtual
async def test_only_a_whole_listing_says_what_waits_no_more(scene, agents, post, is_whole, left):
    def work(tx, context):
        made = item(tx, context, source=post.source.key)
        marking.bring_in(tx, context, post, SourceListing([], is_whole=is_whole), 9)
        return tx.of(AgentTables).item(made.id) is not None

    assert await within(agents, work) is left


@pytest.mark.promise("D10")
@virtual
async def test_a_run_that_claims_again_has_the_nonce_its_source_knows(scene, agents, post):
    def work(tx, context):
        item(tx, context, source=post.source.key)
        claims = [marking.claim(tx, post, [], nonce) for nonce in ("first", "second")]
        return [(marking.read(one)["nonce"], one.attempts, one.held) for one in claims]

    assert await within(agents, work) == [("first", 1, 1), ("first", 1, 1)]


@pytest.mark.promise("D10")
@virtual
async def test_a_source_does_not_change_an_item_of_the_queue_with_the_same_name(scene, agents, post):
    def work(tx, context):
        made = item(tx, context, title="Mine", status="done")
        listing = SourceListing([SourceItem("roof.md", "Theirs", "Other.")], is_whole=True)
        marking.bring_in(tx, context, post, listing, 9)
        found = tx.of(AgentTables).item(made.id)
        return found.title, found.body, found.status

    assert await within(agents, work) == ("Mine", None, "done")


@pytest.mark.promise("D10")
@virtual
async def test_what_its_source_has_heard_of_is_not_reported_again(scene, agents):
    def work(tx, context):
        more = {"status": "done", "source": "directory:/x", "mark": '{"nonce": "n"}'}
        item(tx, context, held=0, **more)
        claimed = item(tx, context, held=1, external_id="wall.md", **more)
        found = tx.of(SourceTables).unreported(claimed.agent, "directory:/x", 9)
        return [one.external_id for one in found]

    assert await within(agents, work) == ["wall.md"]


@pytest.mark.promise("D10")
@virtual
async def test_a_run_that_is_put_off_after_four_failures_does_not_set_its_item_aside(scene, agents, inbox):
    later = Defer(from_ms(scene.clock.now() + 30 * 86_400_000), "later")
    agents.act = lambda turn: RuntimeError("no ladder") if len(agents.turns) < 5 else later
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=6))
        assert len(agents.turns) >= 5
        assert (inbox.files, await items(scheduler)) == ({"new": ["roof.md"]}, {"roof.md": ("ready", 4)})


@pytest.mark.promise("D10")
@virtual
async def test_a_limit_of_a_source_puts_runs_off_until_it_ends(scene, agents, inbox):
    inbox.put("roof.md")
    until = int(at(minutes=30).timestamp() * 1000)
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        limit = (f"directory:{inbox.path}", until, "busy")
        await scheduler.transact(lambda tx, _: meet_limit(tx, *limit))
        await scheduler.start()
        await scene.until(at(minutes=29))
        assert (agents.turns, inbox.files) == ([], {"new": ["roof.md"]})
        await scene.until(at(minutes=45))
        assert (len(agents.turns), inbox.files) == (1, {"done": ["roof.md"]})


@pytest.mark.promise("D10")
@virtual
async def test_a_run_that_does_not_get_an_item_takes_the_next(scene, agents, inbox):
    inbox.put("roof.md")
    (inbox.path / "doing").mkdir()
    (inbox.path / "doing" / "roof.md").write_text("Somebody else works on this one.")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        inbox.put("wall.md")
        await scene.until(at(minutes=25))
        assert ["wall.md" in prompt for prompt in agents.prompts] == [True]
        assert inbox.files == {"new": ["roof.md"], "doing": ["roof.md"], "done": ["wall.md"]}


@pytest.mark.promise("C4")
@virtual
async def test_each_owner_keeps_so_many_sessions(scene, agents):
    async with agents.scheduler() as scheduler:
        plan = {name: {"every": "1h", "prompt": "x"} for name in ("one", "two")}
        await scheduler.agents.apply({name: agent(schedules=plan) for name in ("a", "b")})

        def work(tx, _):
            sessions = tx.of(Sessions)
            for number, name in enumerate(("a.one", "a.two", "b.one", "b.two")):
                sessions.keep(KeptSession(tx.jobs.by_name(name)[0].id, name, "m", number, number))
            return sorted(sessions.crowd_out(1))

        assert await scheduler.transact(work) == ["a.one", "b.one"]
