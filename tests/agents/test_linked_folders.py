"""Links in a work directory: none is followed, whatever they lead to and whenever they are put there."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.agents.test_directory_source import Inbox, Noted, working
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.sources.directory import DirectorySource
from wakeful.domains.agents.sources.source import InHand, ItemHeld, SourceFailed

KEY = "-----BEGIN PRIVATE KEY-----"


@pytest.fixture
def inbox(tmp_path):
    return Inbox(tmp_path / "inbox")


@pytest.fixture
def private(tmp_path):
    """A folder with a key in it, outside the work directory."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    (folder / "id_rsa").write_text(KEY)
    return folder


def in_hand(noted):
    return InHand("id_rsa", noted.mark, "a", 1000)


def kept(private):
    return {path.name: path.read_text() for path in private.iterdir()}


@pytest.mark.parametrize("linked", ["new", "doing", "done", "failed", "."])
@virtual
async def test_a_linked_folder_puts_no_file_into_a_prompt_and_moves_none(scene, agents, inbox, private, linked):
    if linked == ".":
        (private / "new").mkdir()
        (private / "new" / "id_rsa").write_text(KEY)
        inbox.path.symlink_to(private)
    else:
        if linked != "new":
            inbox.put("roof.md")
        inbox.path.mkdir(exist_ok=True)
        (inbox.path / linked).symlink_to(private)
    before = sorted(private.rglob("*"))
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        (run,) = await scheduler.get_run_log("a.next", 10)
        assert (run.outcome, agents.turns) == ("error", [])
        assert "it is a link, and links are not followed here" in run.error
    assert sorted(private.rglob("*")) == before


@pytest.mark.parametrize("step", ["claim", "begin", "release", "report"])
def test_a_folder_that_becomes_a_link_between_two_steps_is_not_followed(inbox, private, step):
    source = DirectorySource(str(inbox.path), inline=True)
    inbox.put("id_rsa", "mine")
    ours = Noted("ours")
    asyncio.run(source.waiting(5))

    def swap(folder):
        (inbox.path / folder).rename(inbox.path / f"old-{folder}")
        (inbox.path / folder).symlink_to(private)

    async def noted(said):
        await ours(said)
        if step == "begin":
            swap("doing")

    async def main():
        if step == "claim":
            swap("new")
        held = await source.claim(in_hand(ours), noted)
        assert isinstance(held, ItemHeld)
        swap("doing")
        if step == "release":
            await source.release(in_hand(ours), ours)
        await source.report(in_hand(ours), "done", "")

    with pytest.raises(SourceFailed, match="it is a link"):
        asyncio.run(main())
    assert kept(private) == {"id_rsa": KEY}


@pytest.mark.parametrize("name", ["../ssh/id_rsa", "a/b", "..", "", "a\0b"])
def test_a_name_that_is_a_path_reaches_nothing(inbox, private, name):
    source = DirectorySource(str(inbox.path), inline=True)
    asyncio.run(source.waiting(5))

    async def noted(said): ...

    with pytest.raises(SourceFailed, match="no name of a file"):
        asyncio.run(source.claim(InHand(name, {"nonce": "n", "there": True}, "a", 1000), noted))
    assert kept(private) == {"id_rsa": KEY}


def test_a_file_that_becomes_a_link_or_a_pipe_is_not_read(inbox, private):
    source = DirectorySource(str(inbox.path), inline=True)
    asyncio.run(source.waiting(5))
    doing = inbox.path / "doing" / "roof.md"
    ours = Noted("ours")
    ours.mark["there"] = True
    for plant in (lambda: doing.symlink_to(private / "id_rsa"), lambda: os.mkfifo(doing)):
        plant()
        with pytest.raises(SourceFailed):
            asyncio.run(source.claim(ours.item, ours))
        doing.unlink()


def test_no_descriptor_stays_open(inbox):
    source = DirectorySource(str(inbox.path), inline=True)
    inbox.put("roof.md")
    before = len(list(Path("/dev/fd").iterdir()))
    ours = Noted("ours")
    asyncio.run(source.waiting(5))
    assert isinstance(asyncio.run(source.claim(ours.item, ours)), ItemHeld)
    asyncio.run(source.report(ours.item, "done", ""))
    assert len(list(Path("/dev/fd").iterdir())) == before


@virtual
async def test_a_file_that_has_another_name_elsewhere_is_in_no_prompt(scene, agents, inbox, private):
    (inbox.path / "new").mkdir(parents=True)
    (inbox.path / "new" / "id_rsa").hardlink_to(private / "id_rsa")
    async with agents.scheduler_with({"a": working(inbox)}) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=15))
        (run,) = await scheduler.get_run_log("a.next", 10)
        assert (run.outcome, agents.turns) == ("error", [])
        assert "it has another name elsewhere" in run.error
    assert kept(private) == {"id_rsa": KEY}
