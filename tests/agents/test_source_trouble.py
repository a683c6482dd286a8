"""Sources that fail at a bad moment, and runs that go on after they were taken over: no item is lost or uses a try."""

from __future__ import annotations

import json

import pytest

from tests.agents.test_directory_source import Inbox, items, working
from tests.agents.test_source_marks import Post, item, within
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.sources import marking
from wakeful.domains.agents.sources.claims import _not_ours
from wakeful.domains.agents.sources.directory import DirectorySource
from wakeful.domains.agents.sources.source import ItemHeld, ItemSettled, Lost, SourceAway, SourceFailed
from wakeful.domains.agents.tables import AgentTables


class Remote(DirectorySource):
    """A directory on a server that cannot be reached for a while, and that takes reports with a text."""

    def __init__(self, inbox):
        super().__init__(str(inbox.path), inline=True)
        self.away = set()
        self.said = []

    def _reach(self, what):
        if what in self.away:
            raise SourceAway("no route to it")

    async def claim(self, held, note):
        self._reach("claim")
        return await super().claim(held, note)

    async def report(self, held, status, text):
        self._reach("report")
        self.said.append((status, text))
        return await super().report(held, status, text)


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


def with_remote(scheduler, inbox):
    """Let the scheduler's agents find their work there."""
    remote = Remote(inbox)
    spec = {"source": "directory", "path": str(inbox.path)}
    scheduler.agents._kind._claims._sources[json.dumps(spec, sort_keys=True)] = remote
    return remote


@pytest.mark.promise("D10")
@virtual
async def test_an_item_whose_source_cannot_be_reached_is_not_tried(scene, agents, inbox):
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        remote = with_remote(scheduler, inbox)
        remote.away = {"claim"}
        await scheduler.start()
        await scene.until(at(hours=6))
        runs = await scheduler.get_run_log("a.next", 50)
        assert len([run for run in runs if run.outcome == "error"]) > 5
        assert (agents.turns, await items(scheduler)) == ([], {"roof.md": ("ready", 0)})
        remote.away = set()
        await scene.until(at(hours=9))
        assert (inbox.files, await items(scheduler)) == ({"done": ["roof.md"]}, {"roof.md": ("done", 1)})


@pytest.mark.promise("D9")
@virtual
async def test_a_reply_that_could_not_be_reported_is_reported_by_a_later_run(scene, agents, inbox):
    agents.act = lambda turn: "The roof is mended."
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        remote = with_remote(scheduler, inbox)
        remote.away = {"report"}
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert (remote.said, await items(scheduler)) == ([], {"roof.md": ("done", 1)})
        remote.away = set()
        await scene.until(at(minutes=25))
        assert (remote.said, len(agents.turns)) == ([("done", "The roof is mended.")], 1)


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("run_id", "status"), [(7, "claimed"), (6, "ready")])
@virtual
async def test_a_run_that_is_over_claims_nothing(scene, agents, inbox, run_id, status):
    post = Post(DirectorySource(str(inbox.path), inline=True), run_id=run_id)

    def work(tx, context):
        made = item(tx, context, source=post.source.key)
        marking.claim(tx, post, [], "nonce")
        return tx.of(AgentTables).item(made.id).status

    assert await within(agents, work) == status


@pytest.mark.promise("D10")
@virtual
async def test_what_a_run_that_was_taken_over_still_does_changes_nothing_of_its_item(scene, agents):
    def work(tx, context):
        found = {"source": "directory:/x", "mark": '{"nonce": "n"}', "held": 1}
        made = item(tx, context, status="claimed", run_id=7, attempts=1, **found)
        old = made._replace(run_id=6)
        for act in (
            lambda: marking.note(tx, old, {"there": True}),
            lambda: marking.refresh(tx, old, ItemHeld("Another title")),
        ):
            with pytest.raises(SourceFailed, match="is no longer this run's"):
                act()
        marking.let_go(tx, old, {})
        marking.put_back(tx, old)
        _not_ours(tx, old, Lost())
        _not_ours(tx, old, ItemSettled("done"))
        return tx.of(AgentTables).item(made.id) == made

    assert await within(agents, work) is True


@pytest.mark.promise("D10")
@virtual
async def test_a_run_whose_item_waits_again_has_it_no_more(scene, agents):
    def work(tx, context):
        made = item(tx, context, status="ready", run_id=7, source="directory:/x", mark='{"nonce": "n"}', held=1)
        return marking.still(tx, made), marking.still(tx, made._replace(id=made.id + 1))

    assert await within(agents, work) == (None, None)
