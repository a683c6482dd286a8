"""The jobs of a configuration file and of those it includes, each with its place in its file."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.agents.budgets.affording import never_affordable
from wakeful.config.agent_defaults import with_agent_defaults
from wakeful.config.agents_file import read_agent
from wakeful.config.reading import ConfigError, Fault, Raw, read_plain
from wakeful.config.salvage import not_caused
from wakeful.errors import InvalidSetting
from wakeful.fleet.entries import Entry, FleetFile, Place, Setting, forms, read_entry, references_of
from wakeful.references import looked_up
from wakeful.triggers import After, settled_zone, system_zone
from wakeful.trust import ADVICE, distrust_below

if TYPE_CHECKING:
    from wakeful.config.models import BaseConfig

WILD = frozenset("*?[")
References = tuple[tuple[Place, str], ...]


CheckedAgents = Callable[[Raw], tuple[Mapping[str, Any], list[Fault]]]


def read_fleet_file(
    raw: Raw,
    config: BaseConfig,
    agents_of: CheckedAgents,
    *,
    look_up: bool,
    connectors: frozenset[str] | None = None,
) -> tuple[FleetFile, list[Fault]]:
    """The jobs and everything that is wrong with them; `look_up`: also what they refer to and is not there.

    `agents_of`: a file's agents as their model has checked them. `connectors`: those of the file; None if they are
    not known.
    """
    files, faults = [raw], list[Fault]()
    for path in _included(raw, config.include, faults):
        try:
            file = with_agent_defaults(read_plain(path)._replace(known=raw.known), raw)
            files.append(_only_jobs(file, faults))
        except ConfigError as error:
            faults += error.faults
    zone = settled_zone(config.defaults.timezone, system_zone())
    found: dict[str, tuple[Entry, Raw]] = {}
    wrong: list[tuple[str, References, Raw]] = []
    for file in files:
        setting = Setting(file.path.resolve().parent, zone, forms())
        for name, entry in _entries(file, setting, faults, wrong):
            if name in found:
                other = found[name][1]
                line = other.lines.get(("jobs", name))
                faults.append(file.fault(("jobs", name), f"jobs.{name} is also in {other.path}, line {line}."))
            else:
                found[name] = (entry, file)
    faults += _circles(found)
    if look_up:
        right = [(name, entry.references, file) for name, (entry, file) in found.items()]
        faults += [fault for name, references, file in [*right, *wrong] for fault in _unset(name, references, file)]
    if connectors is not None:
        faults += [fault for file in files for fault in _undeliverable(file, connectors)]
    agents = _Agents(zone, connectors, config.limits.cost_per_day, look_up=look_up)
    for file in files:
        settings, wrong_settings = agents_of(file)
        faults += wrong_settings if file is not raw else []  # those of the first file are reported with its settings
        agents.read(file, settings, wrong_settings)
    faults += agents.faults
    entries = (*(entry for entry, _ in found.values()), *agents.entries)
    referred = {reference for entry in entries for _, reference in entry.references}
    names = sorted(referred | agents.references)
    references = tuple(f"${{{name}}}" for name in names)
    defaults = config.defaults.job_options()
    return FleetFile(
        raw.path,
        config.fleet,
        entries,
        defaults,
        _hash(files),
        references,
        tuple(config.include),
        _env_files(raw, config),
        zone,
    ), faults


class _Agents:
    """Reads the agents of several files."""

    def __init__(
        self, zone: str, connectors: frozenset[str] | None, cost_per_day: float | None, *, look_up: bool
    ) -> None:
        self._zone = zone
        self._cost_per_day = cost_per_day  # of all agents together
        self._connectors = connectors
        self._look_up = look_up
        self._files: dict[str, Raw] = {}
        self.entries: list[Entry] = []
        self.references: set[str] = set()
        self.faults: list[Fault] = []

    def read(self, file: Raw, agents: Mapping[str, Any], known: Sequence[Fault]) -> None:
        """Read a file's agents; `known`: what is wrong with them already."""
        for name, settings in agents.items():
            if name in self._files:
                other = self._files[name]
                line = other.lines.get(("agents", name))
                message = f"agents.{name} is also in {other.path}, line {line}."
                self.faults.append(file.fault(("agents", name), message))
                continue
            self._files[name] = file
            found = read_agent(name, settings, file.path.resolve().parent, self._zone)
            self.entries += found.entries
            self.references |= {reference for _, reference in found.references}
            problems = [file.fault(("agents", *where), message) for where, message in found.problems]
            self.faults += not_caused(problems, known)
            self.faults += _unknown_connectors(name, settings, file, self._connectors)
            if (wrong := never_affordable(settings, self._cost_per_day)) is not None:
                where = ("agents", name, *wrong[0])
                self.faults.append(file.fault(where, f"{'.'.join(where)} {wrong[1]}"))
            if self._look_up:
                self.faults += _missing("agents", found.references, file)


def _unknown_connectors(
    name: str, agent: Mapping[str, Any], file: Raw, connectors: frozenset[str] | None
) -> Iterator[Fault]:
    if connectors is None:
        return
    said: list[tuple[Place, Any]] = [((name, "deliver"), agent.get("deliver"))]
    schedules = agent.get("schedules") or {}
    said += [((name, "schedules", key, "deliver"), one.get("deliver")) for key, one in schedules.items()]
    said += [((name, "hooks"), _target(agent.get("hooks")))]
    said += [((name, "schedules", key, "hooks"), _target(one.get("hooks"))) for key, one in schedules.items()]
    said += [((name, "untrusted", "deliver"), (agent.get("untrusted") or {}).get("deliver"))]
    chats = {key: one["chat"] for key, one in schedules.items() if one.get("chat") is not None}
    said += [((name, "schedules", key, "chat", "connector"), one.get("connector")) for key, one in chats.items()]
    for where, to in said:
        if to is not None and to not in {"last", "none", *connectors}:
            yield file.fault(
                ("agents", *where), f"{'.'.join(('agents', *map(str, where)))}: {no_connector(to, connectors)}"
            )


def _env_files(raw: Raw, config: BaseConfig) -> tuple[Path, ...]:
    return () if config.env_file is None else (raw.path.parent / Path(config.env_file).expanduser(),)


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files a pattern of `include` names, in the order of their names."""
    whole = folder / Path(pattern).expanduser()
    if not WILD & set(str(whole)):
        return [whole]
    return sorted(path for path in Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))) if path.is_file())


def _included(raw: Raw, patterns: Sequence[str], faults: list[Fault]) -> Iterator[Path]:
    seen = {raw.path.resolve()}
    for index, pattern in enumerate(patterns):
        try:
            found = matching(raw.path.resolve().parent, pattern)
        except (ValueError, RuntimeError, OSError) as error:
            faults.append(raw.fault(("include", index), f"include.{index} cannot be used ({error})."))
            continue
        for path in found:
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            reason = distrust_below(path, _fixed(raw.path.resolve().parent, pattern), named_by=raw.path)
            if reason is None:
                yield path
            else:  # to leave it out would remove the jobs of a file that its owner opened by mistake
                message = f"include.{index}: {path} is not used because {reason}: {ADVICE}."
                faults.append(raw.fault(("include", index), message))


def _fixed(folder: Path, pattern: str) -> Path:
    """The directory that a pattern begins with, before its first wildcard: files are looked for in it."""
    whole = folder / Path(pattern).expanduser()
    return next(place for place in whole.parents if not WILD & set(str(place)))


def _only_jobs(raw: Raw, faults: list[Fault]) -> Raw:
    message = "There is no key {!r} in an included file: it takes only jobs and agents."
    faults += [raw.fault((key,), message.format(key)) for key in raw.data if key not in ("jobs", "agents")]
    faults += [*raw.repeated, *raw.faults]
    return raw


def _entries(
    raw: Raw, setting: Setting, faults: list[Fault], wrong: list[tuple[str, References, Raw]]
) -> Iterator[tuple[str, Entry]]:
    """The jobs of a file; of those with a mistake, `wrong` gets what they refer to."""
    jobs = raw.data.get("jobs")
    if jobs is not None and not isinstance(jobs, dict):
        faults.append(raw.fault(("jobs",), f"jobs must be a section with keys of its own, not {jobs!r:.60}."))
    if not isinstance(jobs, Mapping):
        return
    for name, data in jobs.items():
        entry, problems = read_entry(name, data, setting)
        faults += [raw.fault(("jobs", name, *problem.where), problem.message) for problem in problems]
        if entry is not None:
            yield name, entry
        else:
            wrong.append((name, references_of(name, data, setting), raw))


def _circles(found: Mapping[str, tuple[Entry, Raw]]) -> Iterator[Fault]:
    """Jobs that start after each other: none of them would ever start, or all of them forever."""
    after = {name: entry.new.trigger.job for name, (entry, _) in found.items() if isinstance(entry.new.trigger, After)}
    looked_at: set[str] = set()
    for first in after:
        path: dict[str, None] = {}
        ahead: str | None = first
        while ahead is not None and ahead not in looked_at and ahead not in path:
            path[ahead] = None
            ahead = after.get(ahead)
        looked_at.update(path)
        if ahead is not None and ahead in path:
            message = f"jobs.{ahead}.after: {ahead} cannot start after {after[ahead]}, which itself waits for {ahead}."
            yield found[ahead][1].fault(("jobs", ahead, "after"), message)


def _unset(name: str, references: References, raw: Raw) -> Iterator[Fault]:
    return _missing("jobs", [((name, *where), reference) for where, reference in references], raw)


def _missing(section: str, references: Iterable[tuple[Place, str]], raw: Raw) -> Iterator[Fault]:
    """What a section refers to and is not there."""
    for where, reference in references:
        place = (section, *where)
        try:
            looked_up(reference, raw.path.resolve().parent, raw.known)
        except InvalidSetting as error:
            yield raw.fault(place, f"{'.'.join(map(str, place))} {error}")


def _undeliverable(raw: Raw, connectors: frozenset[str]) -> Iterator[Fault]:
    """Jobs of a file that deliver to a connector that is not there."""
    jobs = raw.data.get("jobs")
    for name, job in jobs.items() if isinstance(jobs, Mapping) else ():
        deliver = job.get("deliver") if isinstance(job, Mapping) else None
        to = deliver.get("to") if isinstance(deliver, Mapping) else deliver
        if isinstance(to, str) and to not in {"last", "none", *connectors}:
            place = ("jobs", name, "deliver")
            yield raw.fault(place, f"{'.'.join(place)}: {no_connector(to, connectors)}")


def _target(deliver: Any) -> Any:
    return deliver.get("to") if isinstance(deliver, Mapping) else deliver


def no_connector(to: object, connectors: frozenset[str]) -> str:
    """What to say about a connector that is not there."""
    near = difflib.get_close_matches(str(to), connectors, n=1)
    known = ", ".join([*sorted(connectors), "last"])
    hint = f"Did you mean {near[0]!r}?" if near else f"Add it to connectors, or use {known} or none."
    return f"there is no connector named {to!r:.60}. {hint}"


def _hash(files: Sequence[Raw]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.path.name}\0{len(file.text)}\0{file.text}".encode())
    return digest.hexdigest()
