"""The jobs of a configuration file and of those it includes, each with its place in its file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wakeful.config.entries import FleetFile, JobEntry, Place, Setting, forms, read_entry, references_of
from wakeful.config.reading import ConfigError, Fault, Raw, read_plain
from wakeful.domains import domains
from wakeful.errors import InvalidSetting
from wakeful.kernel.domain import Domain, load
from wakeful.references import looked_up
from wakeful.spelling import did_you_mean
from wakeful.triggers import settled_zone, system_zone
from wakeful.trust import ADVICE, distrust_below

if TYPE_CHECKING:
    from wakeful.config.models import BaseConfig

WILD = frozenset("*?[")
References = tuple[tuple[Place, str], ...]


Checked = Callable[[Domain, Raw], tuple[Any, list[Fault]]]
"""A domain's section of a file as its model has checked it, and what is wrong with it."""


class FileTerms(NamedTuple):
    """What the jobs of a file are read with."""

    config: BaseConfig
    zone: str
    connectors: frozenset[str] | None  # those of the file; None if they are not known
    look_up: bool  # whether what they refer to must be there


class SectionReader(Protocol):
    """Reads the jobs in a domain's section, of several files."""

    entries: list[JobEntry]
    references: set[str]
    faults: list[Fault]

    def read(self, file: Raw, settings: Any, known: Sequence[Fault]) -> None:
        """Read a file's section, which its model has checked; `known`: what is wrong with it already."""


def filled(raw: Raw, main: Raw | None = None) -> Raw:
    """The file with what domains add to their sections before these are checked; `main` includes it."""
    for domain in domains():
        if domain.fill is not None:
            raw = load(domain.fill)(raw, main)
    return raw


def read_fleet_file(
    raw: Raw,
    config: BaseConfig,
    checked: Checked,
    *,
    look_up: bool,
    connectors: frozenset[str] | None = None,
) -> tuple[FleetFile, list[Fault]]:
    """The jobs and everything that is wrong with them; `look_up`: also what they refer to and is not there.

    `connectors`: those of the file; None if they are not known.
    """
    files, faults = [raw], list[Fault]()
    for path in _included(raw, config.include, faults):
        try:
            file = filled(read_plain(path)._replace(known=raw.known), raw)
            files.append(_only_jobs(file, faults))
        except ConfigError as error:
            faults += error.faults
    zone = settled_zone(config.defaults.timezone, system_zone())
    found: dict[str, tuple[JobEntry, Raw]] = {}
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
    faults += _circles(files)
    if look_up:
        right = [(name, entry.references, file) for name, (entry, file) in found.items()]
        faults += [fault for name, references, file in [*right, *wrong] for fault in _unset(name, references, file)]
    if connectors is not None:
        faults += [fault for file in files for fault in _undeliverable(file, connectors)]
    entries, referred = [entry for entry, _ in found.values()], set[str]()
    referred |= {reference for entry in entries for _, reference in entry.references}
    for reader in _read_sections(files, FileTerms(config, zone, connectors, look_up), checked, faults):
        entries += reader.entries
        referred |= reader.references
    references = tuple(f"${{{name}}}" for name in sorted(referred))
    defaults = config.defaults.job_options()
    return FleetFile(
        raw.path,
        config.fleet,
        tuple(entries),
        defaults,
        _hash(files),
        references,
        tuple(config.include),
        _env_files(raw, config),
        zone,
    ), faults


def _read_sections(
    files: Sequence[Raw], terms: FileTerms, checked: Checked, faults: list[Fault]
) -> Iterator[SectionReader]:
    """The jobs in sections of domains; what is wrong with them is added to `faults`."""
    for domain in _with_jobs():
        reader: SectionReader = load(domain.reads_jobs or "")(terms)
        for file in files:
            settings, wrong = checked(domain, file)
            faults += wrong if file is not files[0] else []  # those of the first file are reported with its settings
            reader.read(file, settings, wrong)
        faults += reader.faults
        yield reader


def _with_jobs() -> list[Domain]:
    return [domain for domain in domains() if domain.reads_jobs is not None]


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
    known = ["jobs", *(str(domain.section) for domain in _with_jobs())]
    message = f"There is no key {{!r}} in an included file: it takes only {' and '.join(known)}."
    faults += [raw.fault((key,), message.format(key)) for key in raw.data if key not in known]
    faults += [*raw.repeated, *raw.faults]
    return raw


JOBS_FORM = (
    "jobs must have the name of each job as a key, such as backup: {{every: 6h, command: [./backup.sh]}}, not {}."
)


def _entries(
    raw: Raw, setting: Setting, faults: list[Fault], wrong: list[tuple[str, References, Raw]]
) -> Iterator[tuple[str, JobEntry]]:
    """The jobs of a file; of those with a mistake, `wrong` gets what they refer to."""
    jobs = raw.data.get("jobs")
    if jobs is not None and not isinstance(jobs, dict):
        faults.append(raw.fault(("jobs",), JOBS_FORM.format(f"{jobs!r:.60}")))
    if not isinstance(jobs, Mapping):
        return
    for name, data in jobs.items():
        entry, problems = read_entry(name, data, setting)
        faults += [raw.fault(("jobs", name, *problem.where), problem.message) for problem in problems]
        if entry is not None:
            yield name, entry
        else:
            wrong.append((name, references_of(name, data, setting), raw))


def _circles(files: Sequence[Raw]) -> Iterator[Fault]:
    """Jobs that start after each other, also those with another mistake: none would ever start, or all forever."""
    found = {name: (job, file) for file in reversed(files) for name, job in _jobs(file).items()}
    after = {name: job["after"] for name, (job, _) in found.items() if isinstance(job.get("after"), str)}
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


def _jobs(raw: Raw) -> dict[str, Mapping[str, Any]]:
    """The jobs of a file that are sections."""
    jobs = raw.data.get("jobs")
    return {name: job for name, job in (jobs if isinstance(jobs, dict) else {}).items() if isinstance(job, Mapping)}


def _unset(name: str, references: References, raw: Raw) -> Iterator[Fault]:
    return missing("jobs", [((name, *where), reference) for where, reference in references], raw)


def missing(section: str, references: Iterable[tuple[Place, str]], raw: Raw) -> Iterator[Fault]:
    """What a section refers to and is not there."""
    for where, reference in references:
        place = (section, *where)
        try:
            looked_up(reference, raw.path.resolve().parent, raw.known, raw.path)
        except InvalidSetting as error:
            yield raw.fault(place, f"{'.'.join(map(str, place))} {error}")


def _undeliverable(raw: Raw, connectors: frozenset[str]) -> Iterator[Fault]:
    """Jobs of a file that deliver to a connector that is not there."""
    for name, job in _jobs(raw).items():
        place, to = connector_in(("jobs", name, "deliver"), job.get("deliver"))
        if isinstance(to, str) and to not in {"last", "none", *connectors}:
            yield raw.fault(place, f"{'.'.join(map(str, place))}: {no_connector(to, connectors)}")


def connector_in(place: Place, deliver: Any) -> tuple[Place, Any]:
    """Where results go that are sent, and the place that says so."""
    return ((*place, "to"), deliver.get("to")) if isinstance(deliver, Mapping) else (place, deliver)


def no_connector(to: object, connectors: frozenset[str]) -> str:
    """What to say about a connector that is not there."""
    known = ", ".join([*sorted(connectors), "last"])
    hint = did_you_mean(str(to), connectors, f"Add it to connectors, or use {known} or none.")
    return f"there is no connector named {to!r:.60}.{hint}"


def _hash(files: Sequence[Raw]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.path.name}\0{len(file.text)}\0{file.text}".encode())
    return digest.hexdigest()
