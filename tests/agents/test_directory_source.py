"""The source `directory`: files that move by rename, in virtual time on both stores, cut off at every step."""

from __future__ import annotations

import asyncio
import os

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.sources.directory import DirectorySource
from wakeful.domains.agents.sources.source import InHand, ItemHeld, Lost, Missing
from wakeful.domains.agents.work import get_item, list_items, retry_item
from wakeful.kernel.rules.outcome import Defer
from wakeful.triggers import from_ms

NEXT = {"next": {"every": "10m", "work": True, "prompt": "Work on this item."}}


class Inbox:
    """A directory of work, as people see it."""

    def __init__(self, path):
        self.path = path

    def put(self, name, text="Mend it."):
        (self.path / "new").mkdir(parents=True, exist_ok=True)
        (self.path / "new" / name).write_text(text)

    @property
    def files(self):
        folders = ("new", "doing", "done", "failed")
        found = {folder: sorted(path.name for path in (self.path / folder).glob("*")) for folder in folders}
        return {folder: names for folder, names in found.items() if names}


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


def working(inbox, **settings):
    return agent(**{"work": {"source": "directory", "path": str(inbox.path)}, "schedules": NEXT, **settings})


async def items(scheduler):
    found = await scheduler.read(lambda tx: list_items(tx, None, None, None, 100))
    return {one["title"]: (one["status"], one["attempts"]) for one in found}


@pytest.mark.promise("D9", "D10")
@virtual
async def test_a_file_is_worked_on_and_moves_to_done(scene, agents, inbox):
    seen = []
    agents.act = lambda turn: seen.append(inbox.files) or "Done."
    inbox.put("roof.md", "It leaks.\nAbove the desk.")
    inbox.put(".hidden")
    inbox.put("half.tmp")
    (inbox.path / "new" / "link").symlink_to("/etc/hostname")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=25))
        runs = (await scheduler.get_run_log("a.next", 10))[::-1]
        assert [run.outcome for run in runs] == ["success", "noop"]
        assert "title: roof.md\nbody: It leaks.\n  Above the desk.\n" in agents.prompts[0]
        assert f"path: {inbox.path}/doing/roof.md" in agents.prompts[0]
        assert seen == [{"new": [".hidden", "half.tmp", "link"], "doing": ["roof.md"]}]
        assert inbox.files == {"new": [".hidden", "half.tmp", "link"], "done": ["roof.md"]}
        item = await scheduler.read(lambda tx: get_item(tx, runs[0].output["item"]))
        assert (item["status"], item["run"], item["external_id"]) == ("done", runs[0].id, "roof.md")
        assert item["source"] == f"directory:{inbox.path}"


@pytest.mark.promise("D10")
@virtual
async def test_a_file_of_a_failed_run_waits_again_and_is_set_aside_after_five_attempts(scene, agents, inbox):
    agents.act = lambda turn: RuntimeError("no ladder")
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert (inbox.files, await items(scheduler)) == ({"new": ["roof.md"]}, {"roof.md": ("ready", 1)})
        await scene.until(at(hours=12))
        assert (inbox.files, await items(scheduler)) == ({"failed": ["roof.md"]}, {"roof.md": ("failed", 5)})
        assert len(agents.turns) == 5
        agents.act = lambda turn: "Done."
        item = (await scheduler.read(lambda tx: list_items(tx, None, None, None, 1)))[0]
        await scheduler.transact(lambda tx, context: retry_item(tx, context, item["id"]))
        await scene.until(at(hours=24))
        assert (inbox.files, await items(scheduler)) == ({"done": ["roof.md"]}, {"roof.md": ("done", 1)})


@pytest.mark.promise("D10")
@virtual
async def test_a_run_that_is_put_off_gives_its_file_back_without_an_attempt(scene, agents, inbox):
    agents.act = lambda turn: Defer(from_ms(scene.clock.now() + 3_600_000), "later")
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert (inbox.files, await items(scheduler)) == ({"new": ["roof.md"]}, {"roof.md": ("ready", 0)})


@pytest.mark.promise("D10")
@virtual
async def test_a_file_whose_run_was_cut_off_is_worked_on_again_and_by_one_run_at_a_time(scene, agents, inbox):
    started = asyncio.Event()

    async def hang(turn):
        started.set()
        await scene.sleep(3600)

    agents.act = hang
    inbox.put("roof.md")
    two = {name: {"every": "10m", "work": True, "prompt": "x"} for name in ("one", "two")}
    async with agents.scheduler_with({"a": working(inbox, schedules=two, max_concurrent=2)}) as scheduler:
        await scheduler.start()
        await started.wait()
        await scene.sleep(1)
        assert (len(agents.turns), inbox.files) == (1, {"doing": ["roof.md"]})
        await scene.crash(scheduler)
    agents.act = lambda turn: "Done."
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        assert (len(agents.turns), inbox.files) == (2, {"done": ["roof.md"]})
        assert await items(scheduler) == {"roof.md": ("done", 1)}


@pytest.mark.promise("D10")
@virtual
async def test_a_name_that_comes_again_is_worked_on_again_and_nothing_is_written_over(scene, agents, inbox):
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        for number in range(3):
            inbox.put("roof.md", f"the {number}th")
            await scene.until(at(minutes=15 + 10 * number))
        assert inbox.files == {"done": ["roof-2.md", "roof-3.md", "roof.md"]}
        assert [(inbox.path / "done" / name).read_text() for name in inbox.files["done"]] == [
            "the 1th", "the 2th", "the 0th",
        ]  # fmt: skip
        assert len(agents.turns) == 3


@pytest.mark.promise("D10")
@virtual
async def test_a_file_that_was_taken_away_is_forgotten(scene, agents, inbox):
    for number, name in enumerate(("roof.md", "wall.md", "door.md")):
        inbox.put(name)
        os.utime(inbox.path / "new" / name, (number, number))  # the oldest is worked on first
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert (inbox.files["done"], len(await items(scheduler))) == (["roof.md"], 3)
        (inbox.path / "new" / "door.md").unlink()
        await scene.until(at(minutes=25))
        assert await items(scheduler) == {"roof.md": ("done", 1), "wall.md": ("done", 1)}


@pytest.mark.promise("D9", "D10")
@virtual
async def test_what_cannot_be_reported_is_done_all_the_same_and_reported_by_a_later_run(scene, agents, inbox):
    done = inbox.path / "done"

    def spoil(turn):
        done.rmdir()
        done.write_text("no folder")
        return "Done."

    agents.act = spoil
    inbox.put("roof.md")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        assert (await scheduler.get_run_log("a.next", 1))[0].outcome == "success"
        assert (inbox.files["doing"], await items(scheduler)) == (["roof.md"], {"roof.md": ("done", 1)})
        done.unlink()
        done.mkdir()
        await scene.until(at(minutes=35))
        assert (inbox.files, len(agents.turns)) == ({"done": ["roof.md"]}, 1)


@pytest.mark.promise("D9", "D10", "A4")
@virtual
async def test_a_schedule_of_the_main_conversation_wakes_it_with_an_item_that_is_its_own(scene, agents, inbox):
    inbox.put("roof.md", "It leaks.")
    schedules = {"next": {**NEXT["next"], "target": "main"}}
    outcomes = iter([RuntimeError("no ladder"), "Done."])
    agents.act = lambda turn: next(outcomes)
    async with agents.scheduler_with({"a": working(inbox, schedules=schedules)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=25))
        assert [turn.schedule for turn in agents.turns] == ["wake", "wake"]  # the second after the first failed
        prompt = agents.prompts[1]
        assert "System events:\n- [cron] Work on this item." in prompt
        assert "title: roof.md\nbody: It leaks." in prompt
        runs = (await scheduler.get_run_log("a.wake", 10))[::-1]
        assert [run.outcome for run in runs] == ["error", "success"]
        assert (inbox.files, await items(scheduler)) == ({"done": ["roof.md"]}, {"roof.md": ("done", 2)})
        assert runs[1].output["item"].startswith("wrk_")
        last = (await scheduler.get_run_log("a.next", 10))[0]
        assert last.outcome == "noop"  # nothing waits: the agent is not woken


@pytest.mark.promise("D10", "A4")
@virtual
async def test_an_agent_that_is_woken_for_more_than_work_is_asked_without_an_item(scene, agents, inbox):
    inbox.put("roof.md")
    schedules = {"next": {**NEXT["next"], "target": "main"}}
    async with agents.scheduler_with(
        {"a": working(inbox, schedules=schedules, heartbeat={"prompt": "Look."})}
    ) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=10, seconds=0.1))
        (inbox.path / "new" / "roof.md").unlink()  # between the schedule and the run that it wakes
        assert (await scheduler.agents.request_wake("a", "manual"))["coalesced"]
        await scene.sleep(5)
        assert agents.prompts == ["Look."]
        inbox.put("wall.md")
        await scene.until(at(minutes=20, seconds=0.1))
        (inbox.path / "new" / "wall.md").unlink()
        await scene.sleep(5)
        assert [run.outcome for run in await scheduler.get_run_log("a.wake", 10)] == ["noop", "success"]


# -- the steps of a claim ---------------------------------------------------------------------------------------------


class Cut(BaseException):
    """The process ends here."""


class Noted:
    """What a store has noted about one item; `cut`: at which note the process dies, before or after it is stored."""

    def __init__(self, nonce, cut=None):
        self.mark = {"nonce": nonce}
        self.cut = cut
        self.notes = 0

    async def __call__(self, said):
        self.notes += 1
        if self.cut == (self.notes, "before"):
            raise Cut
        self.mark |= said
        if self.cut == (self.notes, "after"):
            raise Cut

    @property
    def item(self):
        return InHand("roof.md", self.mark, "a", 1000)


def attempt(work):
    try:
        return asyncio.run(work)
    except Cut:
        return "cut"


@pytest.mark.promise("D10")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["claim", "release"])
def test_a_claim_or_a_release_that_is_cut_off_leaves_the_file_to_its_owner_alone(inbox, step, when):
    source = DirectorySource(str(inbox.path), inline=True)
    inbox.put("roof.md")
    ours, theirs = Noted("ours"), Noted("theirs")
    if step == "release":
        assert isinstance(attempt(source.claim(ours.item, ours)), ItemHeld)
        ours.notes = 0
    ours.cut = (1, when)
    assert attempt(getattr(source, step)(ours.item, ours)) == "cut"
    assert isinstance(attempt(source.claim(theirs.item, theirs)), Missing)  # another store does not get it
    ours.cut = None
    assert isinstance(attempt(source.claim(ours.item, ours)), ItemHeld)
    assert inbox.files == {"doing": ["roof.md"]}
    attempt(source.report(ours.item, "done", ""))
    assert inbox.files == {"done": ["roof.md"]}


@pytest.mark.promise("D10")
def test_of_two_stores_that_share_a_directory_one_gets_the_file(inbox):
    source = DirectorySource(str(inbox.path), inline=True)
    for number in range(20):
        inbox.put(f"{number}.md")

    async def race():
        claims = []
        for number in range(20):
            pair = [InHand(f"{number}.md", {"nonce": nonce}, "a", 1000) for nonce in ("one", "two")]

            async def nothing(said):
                await asyncio.sleep(0)

            claims.append(await asyncio.gather(*(source.claim(item, nothing) for item in pair)))
        return claims

    for pair in asyncio.run(race()):
        assert sum(isinstance(one, ItemHeld) for one in pair) == 1


@pytest.mark.promise("D10")
def test_a_second_file_of_the_name_waits_while_the_first_is_worked_on(inbox):
    source = DirectorySource(str(inbox.path), inline=True)
    inbox.put("roof.md", "first")
    ours, theirs = Noted("ours"), Noted("theirs")
    assert isinstance(attempt(source.claim(ours.item, ours)), ItemHeld)
    inbox.put("roof.md", "second")
    assert isinstance(attempt(source.claim(theirs.item, theirs)), Lost)
    assert inbox.files == {"new": ["roof.md"], "doing": ["roof.md"]}
    assert (inbox.path / "doing" / "roof.md").read_text() == "first"
    attempt(source.release(ours.item, ours))
    assert inbox.files == {"new": ["roof-2.md", "roof.md"]}
