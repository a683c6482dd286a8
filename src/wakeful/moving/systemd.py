"""Timers of systemd, each with the service that it starts."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.moving.calendar import NoCron, read_calendar
from wakeful.moving.found import ImportEntry, Reading, refused
from wakeful.moving.naming import Names, slug
from wakeful.moving.sources import Unreadable, files_below, read_text
from wakeful.moving.units import Unit, read_unit, span_ms, written

TIMER, SERVICE = ".timer", ".service"
_SINCE_BOOT = {
    "OnBootSec": "the machine started",
    "OnStartupSec": "systemd started",
    "OnActiveSec": "the timer was started",
}
_PREFIXES = "-@:+!|"
_ALONE, _INSIDE = re.compile(r"\$[A-Za-z_]\w*"), re.compile(r"\$\{\w+\}")
"""Variables that systemd fills in: `$NAME` as a word of its own, and `${NAME}` anywhere."""
_APART, _ENDS = re.compile(r"\s;\s"), re.compile(r"\s;\s*$")


def read(path: Path) -> Reading:
    """The timers of a folder, or one timer; a service lies next to its timer."""
    if path.is_dir():
        timers = files_below(path, (TIMER,))
        if not timers:
            raise Unreadable(f"{path} has no timers (files that end in {TIMER}; links are not followed).")
    elif path.name.endswith(TIMER):
        timers = [path]
    else:
        raise Unreadable(f"{path} is no timer: name a file that ends in {TIMER}, or the folder that has them.")
    entries, names = list[ImportEntry](), Names()
    for timer in timers:
        try:
            unit = _unit(timer, linked=timer == path)
            service = _service(timer, unit)
        except Unreadable as error:
            if timer == path:
                raise
            entries.append(refused(timer.name, names.free(slug(timer.name.removesuffix(TIMER))), str(error)))
            continue
        entries += read_timer(timer.name, unit, service, names)
    return Reading(entries)


def _unit(file: Path, *, linked: bool) -> Unit:
    """A unit with its drop-ins, such as `NAME.timer.d/override.conf` of `systemctl edit`."""
    texts = [read_text(file, linked=linked)]
    folder = file.with_name(f"{file.name}.d")
    if folder.is_dir() and not folder.is_symlink():
        texts += [read_text(one, linked=False) for one in files_below(folder, (".conf",))]
    return read_unit("\n".join(texts))


def _service(timer: Path, unit: Unit) -> Unit | None:
    named = unit.last("Timer", "Unit") or f"{timer.name.removesuffix(TIMER)}{SERVICE}"
    candidates = [named, f"{named.partition('@')[0]}@{SERVICE}"] if "@" in named else [named]
    for name in candidates:
        found = timer.parent / name
        if "/" not in name and found.is_file() and not found.is_symlink():
            return _unit(found, linked=False)
    return None


def read_timer(source: str, timer: Unit, service: Unit | None, names: Names) -> Iterator[ImportEntry]:
    """The jobs that stand for a timer: one for each of its calendars."""
    name = names.free(slug(source.removesuffix(TIMER)))
    if source.startswith("@") or "@." in source:
        yield refused(source, name, "it is a template: name the timers that were made from it")
        return
    if service is None:
        yield refused(source, name, "the service that it starts is not in the same folder")
        return
    try:
        job, notes = _work(service, source)
    except NoMatch as no:
        yield refused(source, name, str(no))
        return
    more, said = _beside(timer)
    whens = list(_whens(timer))
    if not whens:
        yield refused(source, name, "it has no OnCalendar, OnUnitActiveSec or OnUnitInactiveSec")
    for place, (when, note) in enumerate(whens):
        own = name if place == 0 else names.free(name)
        if isinstance(when, str):
            yield refused(source, own, when)
        else:
            differ = (*((note,) if note else ()), *said, *notes)
            yield ImportEntry(source, own, {**when, **job, **more}, differ)


def _whens(timer: Unit) -> Iterator[tuple[dict[str, Any] | str, str | None]]:
    """When the timer fires, each with how that differs; a text where it cannot be mapped."""
    for text in timer.all("Timer", "OnCalendar"):
        try:
            found = read_calendar(text)
        except NoCron as no:
            yield f"OnCalendar={text}: {no}", None
            continue
        when: dict[str, Any] = {"cron": found.cron} if found.cron is not None else {"at": found.at}
        persistent = timer.flag("Timer", "Persistent")
        missed = {} if persistent or found.cron is None else {"catch_up": "skip"}
        yield {**when, **({"timezone": found.zone} if found.zone else {}), **missed}, None
    active, idle = timer.last("Timer", "OnUnitActiveSec"), timer.last("Timer", "OnUnitInactiveSec")
    since_boot = next((key for key in _SINCE_BOOT if timer.last("Timer", key) is not None), None)
    first = (
        f"its first run came {timer.last('Timer', since_boot)} after {_SINCE_BOOT[since_boot]}" if since_boot else None
    )
    for key, word, span in (("OnUnitActiveSec", "every", active), ("OnUnitInactiveSec", "interval", idle)):
        if span is not None:
            ms = span_ms(span)
            yield {word: written(ms)} if ms else f"{key}={span} cannot be read", first
    if active is None and idle is None and since_boot is not None:
        reason = f"{since_boot} is not a time: Wakeful starts nothing with the machine. Keep this timer in systemd"
        yield reason, None


def _beside(timer: Unit) -> tuple[dict[str, Any], list[str]]:
    """What else a timer says, and how that differs."""
    delay = timer.last("Timer", "RandomizedDelaySec")
    ms = span_ms(delay) if delay is not None else None
    if not ms:
        return {}, []
    fixed = timer.flag("Timer", "FixedRandomDelay")
    said = f"its random delay of up to {delay} is the same each time: stagger spreads jobs over it"
    return {"stagger": written(ms)}, [] if fixed else [said]


# -- what is started ---------------------------------------------------------------------------------------------------


class NoMatch(Exception):
    """A service that no job stands for; the reason."""


def _work(service: Unit, source: str) -> tuple[dict[str, Any], list[str]]:
    """What a service runs, and how that differs; NoMatch where it cannot be mapped."""
    lines = service.all("Service", "ExecStart")
    if not lines:
        raise NoMatch("its service has no ExecStart")
    if len(lines) > 1:
        raise NoMatch("its service has more than one ExecStart: put them into one script")
    command, notes = _command(lines[0], source)
    job: dict[str, Any] = {"command": command, "cwd": "/"}
    folder = service.last("Service", "WorkingDirectory")
    if folder is not None:
        job["cwd"] = _filled(folder.removeprefix("-"), source, f"WorkingDirectory={folder}")
    env, unread = _environment(service, source)
    if env:
        job["env"] = env
    limit = span_ms(_limit(service) or "")
    if limit:
        job["timeout"] = written(limit)
    codes, signals = _successes(service)
    if codes:
        job["success_codes"] = [0, *codes]
    if signals:
        notes.append(f"an end by {' or '.join(signals)} was a success, and is a failure here")
    return job, [*notes, *unread, *_differences(service)]


def _limit(service: Unit) -> str | None:
    """How long the service may run: one that is `oneshot` is starting all the time, and another one is not."""
    if service.last("Service", "Type") == "oneshot":
        return service.last("Service", "TimeoutStartSec") or service.last("Service", "TimeoutSec")
    return service.last("Service", "RuntimeMaxSec")


def _successes(service: Unit) -> tuple[list[int], list[str]]:
    """The exit codes besides 0 that mean success, and the signals that do."""
    words = " ".join(service.all("Service", "SuccessExitStatus")).split()
    codes = [int(word) if word.isdecimal() else getattr(os, f"EX_{word}", None) for word in words]
    signals = [word for word, code in zip(words, codes, strict=True) if code is None]
    return sorted({code for code in codes if code is not None and 0 < code < 256}), signals


def _differences(service: Unit) -> Iterator[str]:
    user = service.last("Service", "User")
    if user is not None:
        yield f"ran as {user}, and runs here as the user of the server"
    for key in ("ExecStartPre", "ExecStartPost", "ExecCondition", "ExecStopPost"):
        if service.all("Service", key):
            yield f"{key} is not run: put it into the command"
    for key in ("OnFailure", "OnSuccess"):
        if service.all("Unit", key):
            yield f"{key}={service.last('Unit', key)} is not started: deliver and after do what follows a run"
    set_keys = sorted(
        key for (section, key), values in service.values.items() if section in ("Unit", "Service") and values
    )
    asked = [key for key in set_keys if key.startswith(("Condition", "Assert"))]
    if asked:
        yield f"not asked before it starts: {_some(asked)}"
    kept = [key for key in set_keys if key.startswith(_CONFINES)]
    if kept:
        yield f"what confines it does not apply here: {_some(kept)}"
    unset = [key for key in set_keys if key.startswith(_SETS)]
    if unset:
        yield f"not set here: {_some(unset)}"


def _some(keys: list[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return f"{', '.join(keys[:MOST_NAMED])}{more}"


MOST_NAMED = 4
_CONFINES = (
    "Protect",
    "Private",
    "Restrict",
    "Memory",
    "CPU",
    "NoNewPrivileges",
    "ReadOnly",
    "SystemCall",
    "Capability",
    "DynamicUser",
    "Limit",
    "Tasks",
)
_SETS = (
    "Nice",
    "IOScheduling",
    "OOMScore",
    "UMask",
    "Group",
    "SupplementaryGroups",
    "Standard",
    "Root",
    "Slice",
    "PAMName",
)


def _environment(service: Unit, source: str) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    for line in service.all("Service", "Environment"):
        try:
            words = shlex.split(line)
        except ValueError:
            return found, [f"Environment={line} cannot be read"]
        found |= {name: value for name, equals, value in (word.partition("=") for word in words) if equals}
    files = service.all("Service", "EnvironmentFile")
    notes = [f"EnvironmentFile={file} is not read: name it as env_file" for file in files]
    return {name: _filled(value, source, f"Environment={name}") for name, value in found.items()}, notes


def _command(line: str, source: str) -> tuple[list[str], list[str]]:
    """The words of ExecStart, and how they differ; NoMatch where they cannot be mapped."""
    where = f"ExecStart={line}"
    prefix = line[: len(line) - len(line.lstrip(_PREFIXES))]
    if "@" in prefix:
        raise NoMatch(f"{where}: a program that is called by another name has no match")
    line = _ENDS.sub("", line)
    if _APART.search(line):
        raise NoMatch(f"{where}: it has more than one command: put them into one script")
    try:
        words = shlex.split(line.lstrip(_PREFIXES))
    except ValueError as error:
        raise NoMatch(f"{where}: it cannot be read ({error})") from None
    if not words:
        raise NoMatch(f"{where}: it names no program")
    command = [_filled(word, source, where) for word in words]
    notes = ["a failure of its command was ignored, and counts here"] if "-" in prefix else []
    if any(_ALONE.fullmatch(word) or _INSIDE.search(word.replace("$$", "")) for word in command):
        shell = " ".join(_shell_word(word) for word in command)
        return ["/bin/sh", "-c", f"exec {shell}"], [*notes, "its variables are filled in by a shell"]
    return [word.replace("$$", "$") for word in command], notes


def _shell_word(word: str) -> str:
    """A word for a shell that fills in the variables that systemd would, and finds nothing else to do."""
    if _ALONE.fullmatch(word):
        return word  # unquoted: it becomes as many words as its value has
    parts = re.split(r"(\$\$|\$\{\w+\})", word)
    plain = [re.sub(r'([\\"`$])', r"\\\1", part) for part in parts[::2]]
    kept = [r"\$" if part == "$$" else part for part in parts[1::2]]
    return f'"{"".join(one + two for one, two in zip(plain, [*kept, ""], strict=True))}"'


def _filled(word: str, source: str, where: str) -> str:
    """A word with the specifiers that mean the same everywhere; NoMatch where it has others."""
    name = source.removesuffix(TIMER)
    known = {
        "%%": "%",
        "%n": f"{name}{SERVICE}",
        "%N": name,
        "%p": name.partition("@")[0],
        "%i": name.partition("@")[2],
        "%h": str(Path.home()),
    }
    found, rest = "", word
    while (at := rest.find("%")) >= 0:
        value = known.get(rest[at : at + 2])
        if value is None:
            raise NoMatch(f"{where}: it has specifiers (%) that are known to systemd alone: write what they stand for")
        found, rest = found + rest[:at] + value, rest[at + 2 :]
    return found + rest
