"""Whether a store or a configuration that was found, not named, may be used.

A store says which commands run, and a configuration which files are read and sent: a user who can write one acts with
the rights of its user. So a file that is found must belong to the user or to root, and be writable by no other, and so
must every directory from it to where the search began. Sticky directories such as /tmp are no exception.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path


def distrust(found: Path, here: Path) -> str | None:
    """Why what was found may not be used, as the end of a sentence, or None; `here` is where the search began."""
    for path in _chain(found, here):
        try:
            reason = _distrusted(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = f"cannot be examined ({error.strerror})"
        if reason is not None:
            return f"{'it' if path == found else path} {reason}"
    return None


def _chain(found: Path, here: Path) -> Iterator[Path]:
    """What was found, and the directories from the one that holds it down to the start."""
    yield found
    holder = found.parent
    yield holder
    yield from (folder for folder in (here, *here.parents) if holder in folder.parents)


def _distrusted(path: Path) -> str | None:
    link = path.lstat()
    found = path.stat()
    for status in (link, found):
        if status.st_uid not in (os.geteuid(), 0):
            return f"belongs to {_user(status.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return "is writable by everybody"
    if found.st_mode & stat.S_IWGRP and not _is_own_group(path, found.st_gid):
        return f"is writable by the group {_group(found.st_gid)}"
    return None


def _is_own_group(path: Path, gid: int) -> bool:
    """Whether a group is a user's private one, as many systems make for each user, and no ACL names another.

    Root has no such group: its umask never leaves files writable by a group.
    """
    uid = os.geteuid()
    if uid == 0:
        return False
    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    private = user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return private and not _has_acl(path)


def _has_acl(path: Path) -> bool:
    listed = getattr(os, "listxattr", None)  # Linux alone
    try:
        return listed is not None and "system.posix_acl_access" in listed(path)
    except OSError:
        return False  # a file system without such attributes


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user with the number {uid}"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
