"""The source `directory`: a file in `new` is an item; it moves to `doing`, then to `done` or `failed`.

Files move by rename alone, which either happens or does not. A claim goes through a hidden name that carries our nonce:
the process that renames a file out of `new` has it, and after a crash the name or the note in the store identifies us.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from wakeful.agents.sources.source import (
    Claimed,
    Found,
    Held,
    InHand,
    Listing,
    Lost,
    Missing,
    Note,
    Settled,
    SourceFailed,
)

FOLDERS = ("new", "doing", "done", "failed")
UNFINISHED = ("~", ".tmp", ".part", ".partial", ".crdownload", ".swp")
LONGEST_BODY = 100_000
LONGEST_NAME = 200  # bytes, so that a nonce fits before it

T = TypeVar("T")


class DirectorySource:
    """A directory with the four folders, which are made where they are missing."""

    def __init__(self, path: str, *, inline: bool = False) -> None:
        """`inline`: without threads, for virtual time."""
        self._path = Path(path)
        self._inline = inline

    @property
    def key(self) -> str:
        return f"directory:{self._path}"

    async def waiting(self, most: int) -> Listing:
        return await self._aside(lambda: self._list(most))

    def is_back(self, found: Found, mark: Mapping[str, Any]) -> bool:  # noqa: ARG002 - where a file is says it all
        return self._in("new", found.external_id).is_file()

    async def claim(self, item: InHand, note: Note) -> Claimed:
        name, hidden = item.external_id, self._hidden(item)
        if not hidden.exists():
            settled = await self._aside(lambda: self._look(item))
            if settled is not None:
                return settled
            if not await self._aside(lambda: self._take(item, hidden)):
                return Missing()
        await note({"there": True, "host": socket.gethostname()})
        if self._in("doing", name).exists():  # another file of that name is being worked on
            await note({"there": False})
            await self._aside(lambda: self._move(hidden, "new", name))
            return Lost()
        return await self._aside(lambda: self._begin(hidden, name))

    async def release(self, item: InHand, note: Note) -> None:
        hidden, doing = self._hidden(item), self._in("doing", item.external_id)
        if item.mark.get("there") and doing.exists() and not hidden.exists():
            await self._aside(lambda: self._rename(doing, hidden))
        await note({"there": False})  # while the hidden name still says that it is ours
        if hidden.exists():
            await self._aside(lambda: self._move(hidden, "new", item.external_id))

    async def report(self, item: InHand, status: str, text: str) -> Mapping[str, Any]:  # noqa: ARG002 - no place for it
        for path in (self._hidden(item), self._in("doing", item.external_id)):
            if path.exists() and (path.name.startswith(".") or item.mark.get("there")):
                await self._aside(lambda path=path: self._move(path, status, item.external_id))  # type: ignore[misc]
        return {}

    # -- files --------------------------------------------------------------------------------------------------------

    def _list(self, most: int) -> Listing:
        self._make_folders()
        try:
            with os.scandir(self._path / "new") as entries:
                ages = ((_age(entry), entry.name) for entry in entries if _is_item(entry))
                waiting = [(age, name) for age, name in ages if age is not None]
        except OSError as error:
            raise self._trouble(error) from None
        first = heapq.nsmallest(most, waiting)
        return Listing([Found(name, name) for _, name in first], len(waiting) <= most)

    def _look(self, item: InHand) -> Claimed | None:
        """What our note about the item means now; None where it must be taken from where it waits."""
        name = item.external_id
        if not item.mark.get("there"):
            return None
        if self._in("doing", name).exists():
            return self._read(name)
        if self._in("new", name).exists():
            return None
        for status in ("done", "failed"):
            if self._in(status, name).exists():
                return Settled(status)
        return None if item.mark.get("host") == socket.gethostname() else Lost()

    def _take(self, item: InHand, hidden: Path) -> bool:
        """Take the file; False if it is not there, or another process was faster."""
        self._make_folders()
        for folder in ("new", "failed", "done") if item.mark.get("again") else ("new",):
            path = self._in(folder, item.external_id)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    path.rename(hidden)
                    return True
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._trouble(error) from None
        return False

    def _begin(self, hidden: Path, name: str) -> Held:
        self._rename(hidden, self._in("doing", name))
        return self._read(name)

    def _read(self, name: str) -> Held:
        path = self._in("doing", name)
        try:
            # Never waits, and follows no link that was put there in the meantime.
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(number, "rb") as file:
                content = file.read(4 * LONGEST_BODY)
        except OSError as error:
            raise self._trouble(error) from None
        return Held(None, content.decode("utf-8", "replace")[:LONGEST_BODY], str(path))

    def _move(self, path: Path, folder: str, name: str) -> None:
        """Move a file into a folder under its name, or the next free one: nothing there is written over."""
        stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
        number, target = 1, self._in(folder, name)
        while os.path.lexists(target):
            number += 1
            target = self._in(folder, f"{stem}-{number}{suffix}")
        self._rename(path, target)

    def _rename(self, path: Path, target: Path) -> None:
        try:
            path.rename(target)
        except OSError as error:
            raise self._trouble(error) from None

    def _make_folders(self) -> None:
        try:
            for folder in FOLDERS:
                (self._path / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._trouble(error) from None

    def _in(self, folder: str, name: str) -> Path:
        return self._path / folder / name

    def _hidden(self, item: InHand) -> Path:
        return self._in("doing", f".{item.nonce}~{item.external_id}")

    def _trouble(self, error: OSError) -> SourceFailed:
        place = error.filename or self._path
        return SourceFailed(f"The work directory {self._path} cannot be used: {place}: {error.strerror}.")

    async def _aside(self, work: Callable[[], T]) -> T:
        """A directory may be large, or on a slow disk."""
        return work() if self._inline else await asyncio.to_thread(work)


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
