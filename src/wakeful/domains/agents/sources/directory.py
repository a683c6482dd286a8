"""The source `directory`: a file in `new` is an item; it moves to `doing`, then to `done` or `failed`.

Files move by rename alone, which either happens or does not. A claim goes through a hidden name that carries our nonce:
the process that renames a file out of `new` has it, and after a crash the name or the note in the store identifies us.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from wakeful.domains.agents.sources.folders import FolderFile, Folders
from wakeful.domains.agents.sources.source import (
    Claimed,
    InHand,
    ItemHeld,
    ItemSettled,
    Lost,
    Missing,
    Note,
    SourceFailed,
    SourceItem,
    SourceListing,
)
from wakeful.threads import room
from wakeful.trust import distrust_below

UNFINISHED = ("~", ".tmp", ".part", ".partial", ".crdownload", ".swp")
LONGEST_BODY = 100_000
LONGEST_NAME = 200  # bytes, so that a nonce fits before it

THREADS = 4  # for one directory
T = TypeVar("T")


class DirectorySource:
    """A directory with the four folders, which are made where they are missing."""

    def __init__(self, path: str, *, inline: bool = False, is_trusted: bool = True) -> None:
        """`inline`: without threads, for virtual time. `is_trusted`: what only its user can write is a request."""
        self._path = Path(path)
        self._is_trusted = is_trusted
        self._inline = inline

    @property
    def key(self) -> str:
        return f"directory:{self._path}"

    async def waiting(self, most: int) -> SourceListing:
        return await self._do(lambda folders: self._list(folders, most))

    def is_back(self, found: SourceItem, mark: Mapping[str, Any]) -> bool:  # noqa: ARG002 - where a file is says it all
        try:
            return self._step(lambda folders: folders.is_file(FolderFile("new", found.external_id)))
        except SourceFailed:
            return False

    async def claim(self, item: InHand, note: Note) -> Claimed:
        name, hidden = item.external_id, _hidden(item)
        if not await self._do(lambda folders: folders.exists(hidden)):
            settled = await self._do(lambda folders: self._look(folders, item))
            if settled is not None:
                return settled
            if not await self._do(lambda folders: _take(folders, item)):
                return Missing()
        await note({"there": True, "host": socket.gethostname()})
        doing = FolderFile("doing", name)
        if await self._do(lambda folders: folders.exists(doing)):  # another file of that name is being worked on
            await note({"there": False})
            await self._do(lambda folders: _move(folders, hidden, "new", name))
            return Lost()
        return await self._do(lambda folders: self._begin(folders, hidden, doing))

    async def release(self, item: InHand, note: Note) -> None:
        hidden, doing = _hidden(item), FolderFile("doing", item.external_id)
        if item.mark.get("there"):
            await self._do(lambda folders: _hide(folders, doing, hidden))
        await note({"there": False})  # while the hidden name still says that it is ours
        if await self._do(lambda folders: folders.exists(hidden)):
            await self._do(lambda folders: _move(folders, hidden, "new", item.external_id))

    async def report(self, item: InHand, status: str, text: str) -> Mapping[str, Any]:  # noqa: ARG002 - no place for it
        await self._do(lambda folders: _settle(folders, item, status))
        return {}

    # -- files --------------------------------------------------------------------------------------------------------

    def _list(self, folders: Folders, most: int) -> SourceListing:
        folders.make()
        ages = ((_age(entry), entry.name) for entry in folders.entries("new") if _is_item(entry))
        waiting = [(age, name) for age, name in ages if age is not None]
        first = heapq.nsmallest(most, waiting)
        return SourceListing([SourceItem(name, name) for _, name in first], len(waiting) <= most)

    def _look(self, folders: Folders, item: InHand) -> Claimed | None:
        """What our note about the item means now; None where it must be taken from where it waits."""
        name = item.external_id
        if not item.mark.get("there"):
            return None
        if folders.exists(FolderFile("doing", name)):
            return self._read(folders, FolderFile("doing", name))
        if folders.exists(FolderFile("new", name)):
            return None
        for status in ("done", "failed"):
            if folders.exists(FolderFile(status, name)):
                return ItemSettled(status)
        return None if item.mark.get("host") == socket.gethostname() else Lost()

    def _begin(self, folders: Folders, hidden: FolderFile, doing: FolderFile) -> ItemHeld:
        folders.rename(hidden, doing)
        return self._read(folders, doing)

    def _read(self, folders: Folders, place: FolderFile) -> ItemHeld:
        content = folders.read(place, 4 * LONGEST_BODY)
        text = content.decode("utf-8", "replace")[:LONGEST_BODY]
        path = self._path / place.folder / place.name
        return ItemHeld(None, text, os.path.realpath(path), self._is_trusted and self._is_own(path))

    def _is_own(self, path: Path) -> bool:
        """Whether no other user could have put the file there: neither where it waited nor where it is."""
        places = (path, self._path / "new")
        return all(distrust_below(place, self._path) is None for place in places)

    async def _do(self, work: Callable[[Folders], T]) -> T:
        """A step. A directory may be large, or on a slow disk."""
        if self._inline:
            return self._step(work)
        return await room(f"work directory {self._path}", THREADS).call(self._step, work)

    def _step(self, work: Callable[[Folders], T]) -> T:
        try:
            with Folders(self._path) as folders:
                return work(folders)
        except OSError as error:
            place = error.filename or self._path
            said = f"The work directory {self._path} cannot be used: {place}: {error.strerror}."
            raise SourceFailed(said) from None


def _hidden(item: InHand) -> FolderFile:
    return FolderFile("doing", f".{item.nonce}~{item.external_id}")


def _take(folders: Folders, item: InHand) -> bool:
    """Take the file; False if it is not there, or another process was faster."""
    for folder in ("new", "failed", "done") if item.mark.get("again") else ("new",):
        place = FolderFile(folder, item.external_id)
        if folders.is_file(place):
            with contextlib.suppress(FileNotFoundError):
                folders.rename(place, _hidden(item))
                return True
    return False


def _hide(folders: Folders, doing: FolderFile, hidden: FolderFile) -> None:
    if folders.exists(doing) and not folders.exists(hidden):
        folders.rename(doing, hidden)


def _settle(folders: Folders, item: InHand, status: str) -> None:
    """Move what is ours to where its result belongs."""
    hidden, doing = _hidden(item), FolderFile("doing", item.external_id)
    if folders.exists(hidden):
        _move(folders, hidden, status, item.external_id)
    if item.mark.get("there") and folders.exists(doing):
        _move(folders, doing, status, item.external_id)


def _move(folders: Folders, place: FolderFile, folder: str, name: str) -> None:
    """Move a file into a folder under its name, or the next free one: nothing there is written over."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
    number, target = 1, FolderFile(folder, name)
    while folders.exists(target):
        number += 1
        target = FolderFile(folder, f"{stem}-{number}{suffix}")
    folders.rename(place, target)


def _is_item(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith(".") or name.endswith(UNFINISHED) or not name.isprintable():
        return False
    return len(os.fsencode(name)) <= LONGEST_NAME and entry.is_file(follow_symlinks=False)


def _age(entry: os.DirEntry[str]) -> int | None:
    """When it was last written; None if another process just took it."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return None
