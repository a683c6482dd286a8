"""Which schema this code knows, and which code a schema still suits: what lets two versions work side by side.

Schemas change in two steps. First one that only adds (expand): code that does not know the addition works on, because
it names every column it reads and writes. Later one that takes away (contract), when no code that needs it runs any
more. Each script says in a line `-- oldest: N` which schema's code still works after it; the store keeps the highest
of these. Code below that number is refused, code above it may use a store that is newer than itself, and the number is
not raised over the head of a node that is alive.

Wakeful's scripts and those of each domain outside it are counted by themselves: a script is due when its number is
above those that the store has seen of the same folder. Code without a domain is not concerned by its scripts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from wakeful.errors import StoreLocked, StoreUnusable
from wakeful.store.schema_shape import Column, seen_scripts

WAKEFUL = "wakeful"
#: Where numbered scripts lie; a domain that is not part of Wakeful adds a folder of its own.
FOLDERS = {WAKEFUL: Path(__file__).parent / "schema"}
#: Under which name the store's own facts keep the oldest schema whose code it suits.
OLDEST_KEY = "oldest_schema"
#: And the number of the latest script it has seen, for readers of facts, not of the database's own records.
NUMBER_KEY = "schema"
#: And the same of each domain outside Wakeful, as JSON.
DOMAINS_KEY = "domain_schemas"

#: Code that knows this schema counts domains by themselves.
COUNTED_APART = 29
#: Added to the numbers of a store with scripts of such domains: code that does not know how they are counted would run
#: them again, takes this for a newer schema than any it knows, and is refused.
APART = 1_000_000_000
#: Before, all scripts shared one sequence, in which domains outside Wakeful began here.
SHARED_FROM = 9_001
#: The first schema whose code had such domains.
FIRST_WITH_DOMAINS = 12

_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)


class MigrationStep(NamedTuple):
    """One numbered script, as it is written; a dialect puts it into its own words."""

    number: int
    oldest: int
    script: str
    folder: str


def steps() -> list[MigrationStep]:
    """All scripts this code knows: Wakeful's, then those of each domain, each in the order of their numbers."""
    return [step for folder in FOLDERS for step in _steps_of(folder)]


def _steps_of(folder: str) -> list[MigrationStep]:
    scripts = {number: path.read_text(encoding="utf-8") for number, path in _numbered(folder)}
    return [MigrationStep(number, _oldest(script, number), script, folder) for number, script in scripts.items()]


def _numbered(folder: str) -> list[tuple[int, Path]]:
    """The scripts by the number their file's name begins with; numbers may be left out, but none is used twice."""
    found = sorted((int(path.name.partition("_")[0]), path) for path in FOLDERS[folder].glob("*.sql"))
    for (number, path), (following, other) in pairwise(found):
        if number == following:
            message = f"{path.name} and {other.name} have the same number."
            raise ValueError(message)
    return found


def _oldest(script: str, number: int) -> int:
    """The declaration of the script; without one it suits only its own code, which is the safe default."""
    found = _OLDEST.search(script)
    return int(found[1]) if found is not None else number


def schema_number() -> int:
    """The schema of Wakeful's own tables that this code was written for."""
    return _last_number(WAKEFUL)


def _last_number(folder: str) -> int:
    """The number of the last script, by the names of the files: every command asks for it, and none is read for it."""
    names = os.listdir(FOLDERS[folder])  # noqa: PTH208 - a path for each would cost more than the rest
    return max((int(name.partition("_")[0]) for name in names if name.endswith(".sql")), default=0)


def domain_numbers() -> dict[str, int]:
    """The same of each domain outside Wakeful that this code has."""
    return {folder: number for folder in FOLDERS if folder != WAKEFUL and (number := _last_number(folder))}


def _known_numbers() -> dict[str, int]:
    return {WAKEFUL: schema_number(), **domain_numbers()}


def known_schemas() -> dict[str, object]:
    """What a node shows to the others in its details about the schemas it knows."""
    domains = domain_numbers()
    return {NUMBER_KEY: schema_number(), **({DOMAINS_KEY: domains} if domains else {})}


class Level(NamedTuple):
    """How far a store has come with the scripts of one folder, and the oldest of its code that still works."""

    version: int
    oldest: int

    def after(self, known: Iterable[MigrationStep]) -> Level:
        """The same once all steps are done."""
        coming = [step for step in known if step.number > self.version]
        if not coming:
            return self
        return Level(coming[-1].number, max([self.oldest if self.version else 0, *(step.oldest for step in coming)]))


NONE = Level(0, 0)


class Stored(NamedTuple):
    """What a store says about its schema; version 0 is a store that is not made yet."""

    version: int
    oldest: int
    domains: Mapping[str, Level] = {}
    shared: int = 0
    """The last number of the time when all scripts shared one sequence, for a store with a domain's scripts from then.

    Which ones it has of a domain that is not on record is seen from its tables.
    """
    unrecorded: Mapping[str, Level] = {}
    """Of such domains."""

    @classmethod
    def of(
        cls, number: int, facts: Mapping[str, str], columns: Callable[[], AbstractSet[Column]], where: str
    ) -> Stored:
        """What the database's own number, the store's facts and, where these do not say, its columns mean.

        A store that does not say whom it suits suits only code of its own version.
        """
        own, shared = Level(_plain(number), _plain(int(facts.get(OLDEST_KEY, number)))), _shared(facts)
        if DOMAINS_KEY not in facts and _is_shared(number):
            own, shared = _own_from(columns(), where), number
        domains, unrecorded = _on_record(facts), dict[str, Level]()
        for name in domain_numbers():
            if shared and name not in domains and (level := _domain_from(columns(), name, shared, where)).version:
                unrecorded[name] = level
        return cls(own.version, own.oldest, domains, shared, unrecorded)

    def levels(self) -> dict[str, Level]:
        """How far it has come with each folder."""
        return {WAKEFUL: Level(self.version, self.oldest), **self.unrecorded, **self.domains}

    @property
    def number(self) -> int:
        """The database's own number."""
        return self.version + self._apart

    @property
    def _apart(self) -> int:
        return APART if self.domains and self.version >= COUNTED_APART else 0

    def facts(self) -> list[tuple[str, str]]:
        """What the store keeps besides it."""
        counted: dict[str, object] = {"scripts": self.domains} if self.domains else {}
        if self.shared:
            counted["shared"] = self.shared
        own = [(OLDEST_KEY, str(self.oldest + self._apart)), (NUMBER_KEY, str(self.version))]
        return [*own, *([(DOMAINS_KEY, json.dumps(counted))] if self.version >= COUNTED_APART else [])]

    def after(self, known: Iterable[MigrationStep]) -> Stored:
        """The same store when all steps are done."""
        coming = list(known)
        levels = self.levels()
        for folder in dict.fromkeys(step.folder for step in coming):
            levels[folder] = levels.get(folder, NONE).after(step for step in coming if step.folder == folder)
        own = levels.pop(WAKEFUL)
        oldest = max(own.oldest, COUNTED_APART) if levels and own.version >= COUNTED_APART else own.oldest
        return Stored(own.version, oldest, levels, self.shared)

    def is_current(self) -> bool:
        """Whether there is nothing to bring up to date; found without reading a script."""
        levels, known = self.levels(), _known_numbers()
        return self.after(()) == self and all(levels.get(name, NONE).version >= known[name] for name in known)

    def lacks(self, step: MigrationStep) -> bool:
        """Whether the store has not seen this script."""
        return step.number > self.levels().get(step.folder, NONE).version

    def contracts(self, before: Stored) -> bool:
        """Whether it suits less code than it did before."""
        earlier = before.levels()
        return any(level.oldest > earlier.get(folder, NONE).oldest for folder, level in self.levels().items())


def _plain(number: int) -> int:
    return number - APART if number >= APART else number


def _on_record(facts: Mapping[str, str]) -> dict[str, Level]:
    said = json.loads(facts.get(DOMAINS_KEY, "{}"))
    return {name: Level(*level) for name, level in said.get("scripts", {}).items()}


def _shared(facts: Mapping[str, str]) -> int:
    return int(json.loads(facts.get(DOMAINS_KEY, "{}")).get("shared", 0))


def _is_shared(number: int) -> bool:
    """Whether a number of the time when all scripts shared one sequence is that of a domain's script."""
    others = {found for folder in FOLDERS if folder != WAKEFUL for found, _ in _numbered(folder)}
    return number >= SHARED_FROM or (number in others and number not in dict(_numbered(WAKEFUL)))


def _own_from(columns: AbstractSet[Column], where: str) -> Level:
    """Which of Wakeful's scripts a store has whose number is that of a domain's."""
    known = _steps_of(WAKEFUL)
    seen = seen_scripts([step.script for step in known], columns)
    if not seen:
        message = (
            f"{where} has other tables than any version that this one knows: open it with the version that wrote it, "
            "or restore a backup."
        )
        raise StoreUnusable(message)
    # The fewest: what came after the domain's script was never run.
    return NONE.after(known[: seen[0]])


def _domain_from(columns: AbstractSet[Column], name: str, shared: int, where: str) -> Level:
    """Which scripts of a domain a store has that does not say."""
    known = [step for step in _steps_of(name) if step.number <= shared]
    before = [step.script for step in _steps_of(WAKEFUL)]
    seen = seen_scripts([step.script for step in known], columns, before)
    if not seen:
        message = (
            f"{where} has other tables of {name} than any version of it that this program knows: open it with the "
            "version that wrote it, or restore a backup."
        )
        raise StoreUnusable(message)
    # The most, as it was counted then; but none of a domain that left no trace.
    return NONE.after(known[: seen[-1]]) if 0 not in seen else NONE


def left_behind(facts: Mapping[str, str]) -> list[str]:
    """The domains of a store with tables that this code does not know."""
    mine, stored = domain_numbers(), _on_record(facts)
    unknown = sorted(name for name, level in stored.items() if level.version > mine.get(name, 0))
    if max((level.version for level in stored.values()), default=0) < _shared(facts):
        unknown.append("another domain")  # of the time of one sequence, and not opened with its code since
    return unknown


def refuse_newer(stored: Stored, where: str, otherwise: Callable[[int], str]) -> None:
    """Raise StoreUnusable when this code is too old for that store; `otherwise` says what to do, by what it knows."""
    levels = stored.levels()
    for folder, mine in _known_numbers().items():
        version, oldest = levels.get(folder, NONE)
        if version > mine and oldest > mine:
            newer = "Wakeful" if folder == WAKEFUL else f"version of {folder}"
            message = (
                f"{where} was written by a newer {newer} (schema {version}, for versions that know schema {oldest} or "
                f"later; this one knows {mine}): {otherwise(mine)}."
            )
            raise StoreUnusable(message)


def refuse_outgrown(facts: Mapping[str, str]) -> None:
    """Raise StoreUnusable when the store was changed, since this code opened it, into what only newer code can use."""
    oldest = {name: level.oldest for name, level in _on_record(facts).items()}
    oldest[WAKEFUL] = _plain(int(facts.get(OLDEST_KEY, 0)))
    for folder, mine in _known_numbers().items():
        if oldest.get(folder, 0) > mine:
            message = (
                f"The store has been changed for versions that know schema {oldest[folder]}{_of(folder)} or later; "
                f"this one knows {mine}: upgrade it."
            )
            raise StoreUnusable(message)


class Living(NamedTuple):
    """A node that is alive during a schema change, and the version it knows of each folder."""

    name: str
    known: Mapping[str, int]

    @classmethod
    def of(cls, name: str, details: Mapping[str, object]) -> Living:
        """One that does not say what it knows is older than all that do."""
        said, domains = details.get(NUMBER_KEY), details.get(DOMAINS_KEY)
        number = said if isinstance(said, int) else 0
        if number >= SHARED_FROM:  # a domain's, of the time of one sequence: Wakeful's is not said
            number = FIRST_WITH_DOMAINS
        return cls(name, {**(domains if isinstance(domains, dict) else {}), WAKEFUL: number})


def refuse_contracting(stored: Stored, living: Iterable[Living], where: str) -> None:
    """Raise StoreLocked when `stored`, the store as it is to be, would be unusable to a node that is alive."""
    nodes = list(living)
    for folder, (version, oldest) in stored.levels().items():
        behind = sorted(node.name for node in nodes if node.known.get(folder, oldest) < oldest)
        if behind:
            message = (
                f"{where} cannot be brought to schema {version}{_of(folder)} while nodes run that know only older ones "
                f"than {oldest}: upgrade or stop {', '.join(behind)} first."
            )
            raise StoreLocked(message)


def _of(folder: str) -> str:
    return "" if folder == WAKEFUL else f" of {folder}"
