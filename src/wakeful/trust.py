"""Whether a file may be used that decides what runs here: no other user may have put it there or be able to change it.

A store says which commands run, a configuration which files are read and sent, a workflow is code: a user who can write
one acts with the rights of its user. So such a file must belong to the user or to root, and be writable by no other,
and so must the directories that lead to it. Sticky directories such as /tmp are no exception.

This holds for what is found, and for what a configuration refers to. What its user names on the command line is used as
it is, and so is the owner of that configuration trusted with what it refers to.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

ADVICE = "make it yours and writable by you alone (chown, chmod go-w)"


def distrust(found: Path, here: Path) -> str | None:
    """Why what was found may not be used, as the end of a sentence, or None; `here` is where the search began."""
    return _first_reason(found, _upward(found, here), frozenset())


def distrust_below(path: Path, top: Path | None = None, *, named_by: Path | None = None) -> str | None:
    """The same for a file in a known place: it and the directories that hold it, up to `top` where it lies below that.

    `named_by`: the configuration that refers to it, whose owner may also own it.
    """
    path = _plain(path)
    return _first_reason(path, _downward(path, None if top is None else _plain(top)), _owner(named_by))


def _plain(path: Path) -> Path:
    """From the root and without `..`; links stay what they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _upward(found: Path, here: Path) -> Iterator[Path]:
    """What was found, and the directories from the one that holds it down to the start."""
    yield found
    holder = found.parent
    yield holder
    yield from (folder for folder in (here, *here.parents) if holder in folder.parents)


def _downward(path: Path, top: Path | None) -> Iterator[Path]:
    """The file, where it leads if it is a link, and what holds either."""
    yield path
    if path.is_symlink():
        yield from (path.resolve(), path.resolve().parent)
    yield path.parent
    if top is not None:
        yield from (folder for folder in path.parent.parents if folder == top or top in folder.parents)


def _owner(named_by: Path | None) -> frozenset[int]:
    try:
        return frozenset() if named_by is None else frozenset({named_by.stat().st_uid})
    except OSError:
        return frozenset()


def _first_reason(found: Path, chain: Iterable[Path], others: frozenset[int]) -> str | None:
    for path in chain:
        try:
            reason = _distrusted(path, others)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = f"cannot be examined ({error.strerror})"
        if reason is not None:
            return f"{'it' if path == found else path} {reason}"
    return None


def _distrusted(path: Path, others: frozenset[int]) -> str | None:
    link = path.lstat()
    found = path.stat()
    for status in (link, found):
        if status.st_uid not in {os.geteuid(), 0, *others}:
            return f"belongs to {_user(status.st_uid)}"
    if not found.st_mode & (stat.S_IWOTH | stat.S_IWGRP) or stat.S_ISCHR(found.st_mode) or is_read_only(path):
        return None  # nobody can write it; what is written to a device is not what is read from it
    if found.st_mode & stat.S_IWOTH:
        return "is writable by everybody"
    if not _is_own_group(path, found.st_gid):
        return f"is writable by the group {_group(found.st_gid)}"
    return None


def is_read_only(path: Path) -> bool:
    """Whether nobody can write there, as where a cluster mounts a configuration. OSError if it does not exist."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


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
