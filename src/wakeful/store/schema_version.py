"""Which schema this code knows, and which code a schema still suits: what lets two versions work side by side.

Schemas change in two steps. First one that only adds (expand): code that does not know the addition works on, because
it names every column it reads and writes. Later one that takes away (contract), when no code that needs it runs any
more. Each script says in a line `-- oldest: N` which schema's code still works after it; the store keeps the highest
of these. Code below that number is refused, code above it may use a store that is newer than itself, and the number is
not raised over the head of a node that is alive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from wakeful.errors import StoreLocked, StoreUnusable

#: Where numbered scripts lie; a domain that is not part of Wakeful adds a folder of its own.
FOLDERS = {"wakeful": Path(__file__).parent / "schema"}
#: Under which name the store's own facts keep the oldest schema whose code it suits.
OLDEST_KEY = "oldest_schema"
#: And the number of the latest script it has seen, for readers of facts, not of the database's own records.
NUMBER_KEY = "schema"

_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)


class Step(NamedTuple):
    """One numbered script, as it is written; a dialect puts it into its own words."""

    number: int
    oldest: int
    script: str


def steps() -> list[Step]:
    """All scripts this code knows, in the order of their numbers."""
    scripts = {number: path.read_text(encoding="utf-8") for number, path in _numbered()}
    return [Step(number, _oldest(script, number), script) for number, script in scripts.items()]


def _numbered() -> list[tuple[int, Path]]:
    """The scripts by the number their file's name begins with; numbers may be left out, but none is used twice."""
    found = sorted(
        (int(path.name.partition("_")[0]), path) for folder in FOLDERS.values() for path in folder.glob("*.sql")
    )
    for (number, path), (following, other) in pairwise(found):
        if number == following:
            message = f"{path.name} and {other.name} have the same number."
            raise ValueError(message)
    return found


def _oldest(script: str, number: int) -> int:
    """What the script says; one that says nothing suits only its own code, which is the safe default."""
    found = _OLDEST.search(script)
    return int(found[1]) if found is not None else number


def schema_number() -> int:
    """The schema this code was written for; a node shows it to the others in its details as `schema`."""
    return _numbered()[-1][0]


class Stored(NamedTuple):
    """What a store says about its schema; version 0 is a store that is not made yet."""

    version: int
    oldest: int

    @classmethod
    def of(cls, version: int, said: str | None) -> Stored:
        """A store that does not say whom it suits suits only code of its own version."""
        return cls(version, int(said) if said is not None else version)

    def facts(self) -> list[tuple[str, str]]:
        """The same, as the store keeps it."""
        return [(OLDEST_KEY, str(self.oldest)), (NUMBER_KEY, str(self.version))]

    def after(self, known: Iterable[Step]) -> Stored:
        """The same store when all steps are done."""
        coming = [step for step in known if step.number > self.version]
        if not coming:
            return self
        return Stored(coming[-1].number, max([self.oldest if self.version else 0, *(step.oldest for step in coming)]))


def refuse_newer(stored: Stored, where: str, otherwise: str) -> None:
    """Raise StoreUnusable when this code is too old for that store."""
    known = schema_number()
    if stored.version > known and stored.oldest > known:
        message = (
            f"{where} was written by a newer Wakeful (schema {stored.version}, for versions that know schema "
            f"{stored.oldest} or later; this one knows {known}): upgrade this one, or use another {otherwise}."
        )
        raise StoreUnusable(message)


def refuse_outgrown(said: str | None) -> None:
    """Raise StoreUnusable when the store was changed, since this code opened it, into what only newer code can use."""
    known = schema_number()
    if said is not None and int(said) > known:
        message = (
            f"The store has been changed for versions that know schema {said} or later; this one knows {known}: "
            "upgrade it."
        )
        raise StoreUnusable(message)


class Living(NamedTuple):
    """A node that is alive while somebody wants to change the schema."""

    name: str
    schema: int

    @classmethod
    def of(cls, name: str, details: Mapping[str, object]) -> Living:
        """One that does not say what it knows is older than all that do."""
        said = details.get("schema")
        return cls(name, said if isinstance(said, int) else 0)


def refuse_contracting(stored: Stored, living: Iterable[Living], where: str) -> None:
    """Raise StoreLocked when `stored`, the store as it is to be, would be unusable to a node that is alive."""
    behind = sorted(node.name for node in living if node.schema < stored.oldest)
    if behind:
        message = (
            f"{where} cannot be brought to schema {stored.version} while nodes run that know only older ones "
            f"than {stored.oldest}: upgrade or stop {', '.join(behind)} first."
        )
        raise StoreLocked(message)
