"""Timers of systemd, each with the service that it starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.moving.calendar import NoCron, read_calendar
from wakeful.moving.found import Found, Reading, refused
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
    """The timers of a folder, or one timer; a service lies beside its timer."""
    if path.is_dir():
        timers = files_below(path, (TIMER,))
        if not timers:
            raise Unreadable(f"{path} has no timers (files that end in {TIMER}; links are not followed).")
    elif path.name.endswith(TIMER):
        timers = [path]
    else:
        raise Unreadable(f"{path} is no timer: name a file that ends in {TIMER}, or the folder that has them.")
    entries, names = list[Found](), Names()
    for timer in timers:
        unit = read_unit(read_text(timer, linked=timer == path))
        entries += read_timer(timer.name, unit, _service(timer, unit), names)
    return Reading(entries)


def _service(timer: Path, unit: Unit) -> Unit | None:
    named = unit.last("Timer", "Unit") or f"{timer.name.removesuffix(TIMER)}{SERVICE}"
    candidates = [named, f"{named.partition('@')[0]}@{SERVICE}"] if "@" in named else [named]
    for name in candidates:
        found = timer.parent / name
        if "/" not in name and found.is_file() and not found.is_symlink():
            return read_unit(read_text(found, linked=False))
    return None


def read_timer(source: str, timer: Unit, service: Unit | None, names: Names) -> Iterator[Found]:
    """The jobs that stand for a timer: one for each of its calendars."""
    name = names.free(slug(source.removesuffix(TIMER)))
    if source.startswith("@") or "@." in source:
        yield refused(source, name, "it is a template: name the timers that were made from it")
        return
    if service is None:
        yield refused(source, name, "the service that it starts is not beside it")
        return
    work = _work(service, source)
    if isinstance(work, str):
        yield refused(source, name, work)
        return
    job, notes = work
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
            yield Found(source, own, {**when, **job, **more}, differ)


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


def _work(service: Unit, source: str) -> tuple[dict[str, Any], list[str]] | str:
    """What a service runs, and how that differs; a text where it cannot be mapped."""
    lines = service.all("Service", "ExecStart")
    if not lines:
        return "its service has no ExecStart"
    if len(lines) > 1:
        return "its service has more than one ExecStart: put them into one script"
    command, notes = _command(lines[0], source)
    if command is None:
        return f"ExecStart={lines[0]}: {notes[0]}"
    job: dict[str, Any] = {"command": command, "cwd": "/"}
    folder = service.last("Service", "WorkingDirectory")
    if folder is not None:
        job["cwd"] = folder.removeprefix("-")
    env, wrong = _environment(service)
    if env:
        job["env"] = env
    notes += wrong
    limit = span_ms(service.last("Service", "TimeoutStartSec") or service.last("Service", "RuntimeMaxSec") or "")
    if limit:
        job["timeout"] = written(limit)
    return job, [*notes, *_differences(service)]


def _differences(service: Unit) -> Iterator[str]:
    user = service.last("Service", "User")
    if user is not None:
        yield f"ran as {user}, and runs here as the user of the server"
    for key in ("ExecStartPre", "ExecStartPost", "ExecCondition", "ExecStopPost"):
        if service.all("Service", key):
            yield f"{key} is not run: put it into the command"
    kept = [key for section, key in service.values if section == "Service" and key.startswith(_CONFINES)]
    if kept:
        yield f"what confines it does not apply here: {', '.join(sorted(kept)[:4])}"


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
)


def _environment(service: Unit) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    for line in service.all("Service", "Environment"):
        try:
            words = shlex.split(line)
        except ValueError:
            return found, [f"Environment={line} cannot be read"]
        found |= {name: value for name, equals, value in (word.partition("=") for word in words) if equals}
    files = service.all("Service", "EnvironmentFile")
    notes = [f"EnvironmentFile={file} is not read: name it as env_file" for file in files]
    return {name: value.replace("%%", "%") for name, value in found.items()}, notes


def _command(line: str, source: str) -> tuple[list[str] | None, list[str]]:
    """The words of ExecStart; None and the reason where they cannot be mapped."""
    prefix = line[: len(line) - len(line.lstrip(_PREFIXES))]
    if "@" in prefix:
        return None, ["a program that is called by another name has no match"]
    line = _ENDS.sub("", line)
    if _APART.search(line):
        return None, ["it has more than one command: put them into one script"]
    try:
        words = shlex.split(line.lstrip(_PREFIXES))
    except ValueError as error:
        return None, [f"it cannot be read ({error})"]
    filled = [_filled(word, source) for word in words]
    command = [word for word in filled if word is not None]
    if len(command) < len(words) or not command:
        return None, ["it has specifiers (%) that are known to systemd alone: write what they stand for"]
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


def _filled(word: str, source: str) -> str | None:
    """A word with the specifiers that mean the same everywhere."""
    name = source.removesuffix(TIMER)
    known = {
        "%%": "%",
        "%n": f"{name}{SERVICE}",
        "%N": name,
        "%p": name.partition("@")[0],
        "%i": name.partition("@")[2],
    }
    found, rest = "", word
    while (at := rest.find("%")) >= 0:
        value = known.get(rest[at : at + 2])
        if value is None:
            return str(Path.home()) + rest[at + 2 :] if rest[at : at + 2] == "%h" and not (found or at) else None
        found, rest = found + rest[:at] + value, rest[at + 2 :]
    return found + rest
