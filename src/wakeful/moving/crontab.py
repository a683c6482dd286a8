"""Crontabs: those of users (`crontab -l`), and those of the system, whose lines name a user before the command."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.moving.found import ImportEntry, Reading, refused
from wakeful.moving.naming import Names, name_of_command
from wakeful.moving.sources import STDIN, Unreadable, files_below, read_text
from wakeful.triggers.cron.fields import SHORTHANDS

_SETTING = re.compile(r"""([A-Za-z_]\w*)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*$""")
_FIELD = re.compile(r"[0-9A-Za-z*,/~?#L-]+")
_READ_BY_CRON = re.compile(r"[A-Za-z0-9_-]+")
_RANDOM = re.compile(r"\d*~\d*")
_FLAGS = re.compile(r"(?:-[nqs]+\s+)+")
_GIVEN_TO_A_SHELL = re.compile(r"""-c\s+(["'])(.*?)\1""")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""")
_AMPERSAND = re.compile(r"(?<![&<>|])&(?![&>])")
_WAITS = re.compile(r"\bwait\b")
_SECRET = re.compile(r"(?i)pass|secret|token|api_?key|credential")
BACKGROUND = "what it starts with & is ended with the run unless it waits for it: leave out the &"
SHELL, ZONE, MAIL, DELAY = "SHELL", "CRON_TZ", "MAILTO", "RANDOM_DELAY"
REBOOT = (
    "@reboot is not a time: Wakeful starts nothing with the machine. Start it from a system service, or let one run "
    "wakeful run NAME for a job that is added with --manual"
)
USUAL_USERS = frozenset({"root", "www-data", "nobody", "daemon", "mail", "postgres", "mysql", "nginx", "apache"})


class CrontabLine(NamedTuple):
    """A line that starts something."""

    number: int
    schedule: str
    rest: str


def read(path: Path) -> Reading:
    """The entries of a crontab, or of a folder with crontabs of the system."""
    if path.is_dir():
        return _folder(path)
    text = read_text(path)
    where = "crontab" if str(path) == STDIN else path.name
    return read_crontab(text, where, Names(), system=is_system(path, text))


def _folder(path: Path) -> Reading:
    """The crontabs of a folder such as `/etc/cron.d`; cron passes over other names too, such as `x.dpkg-old`."""
    entries, names = list[ImportEntry](), Names()
    for file in files_below(path, ("",)):
        if _READ_BY_CRON.fullmatch(file.name):
            entries += read_crontab(read_text(file, linked=False), file.name, names, system=True).entries
    if not entries:
        raise Unreadable(f"{path} has no crontabs.")
    return Reading(entries)


def is_system(path: Path, text: str) -> bool:
    """Whether lines name a user: by where the file lies, else if all of them could."""
    if path.parent.name == "cron.d" or str(path) == "/etc/crontab":
        return True
    users = {user.pw_name for user in pwd.getpwall()} | USUAL_USERS
    lines = [line for _, line in _lines(text) if isinstance(line, CrontabLine)]
    words = [line.rest.split(None, 1) for line in lines]
    return bool(words) and all(len(two) == 2 and two[0] in users for two in words)


def looks_right(text: str) -> bool:
    """Whether every line is a comment, a setting or an entry, and one is an entry."""
    found = list(_lines(text))
    return any(isinstance(line, CrontabLine) for _, line in found) and all(line is not None for _, line in found)


def read_crontab(text: str, where: str, names: Names, *, system: bool) -> Reading:
    """The entries of a crontab's text; Unreadable where no line could be one of a crontab."""
    settings: dict[str, str] = {}
    entries = list[ImportEntry]()
    for number, line in _lines(text):
        if isinstance(line, tuple) and not isinstance(line, CrontabLine):
            settings[line[0]] = line[1]
            continue
        source = f"{where}:{number}"
        if line is None:
            entries.append(refused(source, f"line-{number}", "the line cannot be read as an entry of a crontab"))
        else:
            entries.append(_entry(source, line, settings, names, system=system))
    if entries and not settings and not any(isinstance(line, CrontabLine) for _, line in _lines(text)):
        raise Unreadable(f"{where} is not a crontab.")
    return Reading(entries)


def _lines(text: str) -> Iterator[tuple[int, CrontabLine | tuple[str, str] | None]]:
    """Settings and entries with the numbers of their lines; None for what is neither."""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        setting = _SETTING.fullmatch(line)
        if setting is not None:
            yield number, (setting[1], next(value for value in setting.groups()[1:] if value is not None))
        else:
            yield number, _split(number, line)


def _split(number: int, line: str) -> CrontabLine | None:
    """An entry: a shorthand or five fields, and what follows."""
    if line.startswith("@"):
        word, *rest = line.split(None, 1)
        return CrontabLine(number, word, rest[0]) if rest else None
    parts = line.removeprefix("-").split(None, 5)  # a dash keeps the start out of the log of some crons
    if len(parts) < 6 or not all(_FIELD.fullmatch(part) for part in parts[:5]):
        return None
    return CrontabLine(number, " ".join(parts[:5]), parts[5])


def _entry(source: str, line: CrontabLine, settings: Mapping[str, str], names: Names, *, system: bool) -> ImportEntry:
    user, command = line.rest.split(None, 1) if system and len(line.rest.split(None, 1)) == 2 else (None, line.rest)
    command = _FLAGS.sub("", command, count=1) if command.startswith("-") else command  # BSD: less mail, less log
    name = names.free(name_of_command(command))
    if line.schedule.lower() == "@reboot":
        return refused(source, name, f"{REBOOT} ({command:.80})")
    if _RANDOM.search(line.schedule):
        return refused(source, name, f"the random minute of {line.schedule!r} has no match: choose one")
    expression = SHORTHANDS.get(line.schedule.lower(), line.schedule)
    shell, given = _input(command)
    env = {key: value for key, value in settings.items() if key not in (SHELL, ZONE, MAIL, DELAY)}
    job: dict[str, Any] = {
        "cron": expression,
        "timezone": settings.get(ZONE) or None,
        "command": [settings.get(SHELL) or "/bin/sh", "-c", shell],
        "cwd": settings.get("HOME") or "~",
        "stdin": given,
        "env": env or None,
        "catch_up": "skip",  # cron starts nothing later that it missed
        "stagger": f"{delay}m" if (delay := settings.get(DELAY, "")).isdecimal() and int(delay) else None,
    }
    return ImportEntry(
        source,
        name,
        {key: value for key, value in job.items() if value is not None},
        tuple(_differences(user, settings, shell)),
    )


def _input(command: str) -> tuple[str, str | None]:
    r"""The command and what it gets on standard input: an unescaped % ends the one and is a line break in the other."""
    plain, *lines = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    if not lines:
        return plain, None
    given = "\n".join(lines)
    return plain.rstrip(), given if not given or given.endswith("\n") else f"{given}\n"


def _differences(user: str | None, settings: Mapping[str, str], shell: str) -> Iterator[str]:
    if leaves_work_behind(shell):
        yield BACKGROUND
    if secret := [key for key in settings if _SECRET.search(key)]:
        yield f"{' and '.join(secret)} would be stored as it is written: move it to a file that env_file names"
    if user is not None and user != _own_name():
        yield f"ran as {user}, and runs here as the user of the server, in that user's home"
    if settings.get(MAIL):
        yield f"its output was mailed to {settings[MAIL]}: name a connector with deliver to have results sent"
    if "TZ" in settings:
        yield "TZ is given to the command and does not move its times, as in Debian and cronie; timezone would"


def leaves_work_behind(shell: str) -> bool:
    """Whether a shell's command ends while something it started with `&` still works."""
    plain = _QUOTED.sub("", _GIVEN_TO_A_SHELL.sub(lambda found: found[2], shell))
    *_, rest = _AMPERSAND.split(plain)
    return _AMPERSAND.search(plain) is not None and _WAITS.search(rest) is None


def _own_name() -> str | None:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None
