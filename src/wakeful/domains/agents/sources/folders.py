"""The folders of a work directory, held open: files in them are reached by descriptor, and no link is followed.

Whoever can write into the directory may put a link there at any moment. A folder that is one leads to files that are no
work items, such as keys, and would put them into a prompt; so it is refused, and so is a name that leads out of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

NAMES = ("new", "doing", "done", "failed")
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderFile(NamedTuple):
    """A file in one of the folders."""

    folder: str
    name: str


class Folders:
    """A work directory for the duration of one step; each folder is opened, and made if it is missing, when used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[str, int] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def make(self) -> None:
        """Make the folders that are missing."""
        for name in NAMES:
            self._folder(name)

    def exists(self, place: FolderFile) -> bool:
        """Whether anything has that name, also a link that leads nowhere."""
        return self._status(place) is not None

    def is_file(self, place: FolderFile) -> bool:
        """Whether it is a file, and not a link to one."""
        found = self._status(place)
        return found is not None and stat.S_ISREG(found.st_mode)

    def rename(self, place: FolderFile, target: FolderFile) -> None:
        """Move a file; FileNotFoundError where it is gone."""
        _refuse_path(place, target)
        source, goal = self._folder(place.folder), self._folder(target.folder)
        os.rename(place.name, target.name, src_dir_fd=source, dst_dir_fd=goal)

    def read(self, place: FolderFile, most: int) -> bytes:
        """The beginning of a file. Never waits, as a pipe would."""
        _refuse_path(place)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place.name, flags, dir_fd=self._folder(place.folder)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", place.name)
            if status.st_nlink != 1:  # who put the name there may not be able to read the file
                raise OSError(errno.EMLINK, "it has another name elsewhere: put a copy there", place.name)
            return file.read(most)

    def entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """What lies in a folder."""
        with os.scandir(self._folder(folder)) as found:
            yield from found

    def _status(self, place: FolderFile) -> os.stat_result | None:
        _refuse_path(place)
        try:
            return os.stat(place.name, dir_fd=self._folder(place.folder), follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _folder(self, name: str) -> int:
        if "" not in self._open:
            self._path.mkdir(parents=True, exist_ok=True)
            self._keep("", self._opened(self._path, None))
        if name not in self._open:
            top = self._open[""]
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=top)
            self._keep(name, self._opened(Path(name), top))
        return self._open[name]

    def _opened(self, path: Path, top: int | None) -> int:
        try:
            return os.open(path, _OPENED, dir_fd=top)
        except OSError as error:
            link = stat.S_ISLNK(os.stat(path, dir_fd=top, follow_symlinks=False).st_mode)
            why = "it is a link, and links are not followed here" if link else error.strerror
            raise OSError(error.errno, why, str(self._path / path)) from None

    def _keep(self, name: str, number: int) -> None:
        self._stack.callback(os.close, number)
        self._open[name] = number


def _refuse_path(*places: FolderFile) -> None:
    """OSError for a name that is a path: it would lead out of its folder."""
    for place in places:
        if "/" in place.name or "\0" in place.name or place.name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "it is no name of a file", place.name)
