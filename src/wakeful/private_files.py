"""Files and folders that are their owner's alone: never through a link, and closed to others under any umask.

Locks, tokens and logs are next to a store under names that anyone can guess. Where another user could put a symbolic
link under such a name, following it would write to, or show, a file of their choice.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def make_private_folder(folder: Path) -> None:
    """Create the folder and missing parents, each with mode 0700; existing ones stay as they are."""
    missing = []
    for place in (folder, *folder.parents):
        if place.exists():
            break
        missing.append(place)
    for place in reversed(missing):
        try:
            place.mkdir(FOLDER_MODE)
        except FileExistsError:
            continue  # another process made it meanwhile
        place.chmod(FOLDER_MODE)  # the umask may have taken rights away from its owner, too
    folder.mkdir(FOLDER_MODE, exist_ok=True)  # a file in the way is an error


def open_private(path: Path | str, flags: int) -> int:
    """Open a file for writing that is not a link, 0600 if it is ours; ELOOP where it is one."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        if flags & os.O_CREAT and os.fstat(fd).st_uid == os.geteuid():
            os.fchmod(fd, FILE_MODE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_unlinked(path: Path | str) -> IO[bytes]:
    """Open a file for reading that is not a link; ELOOP where it is one."""
    # Not to wait for a writer, should it be a pipe.
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK))
