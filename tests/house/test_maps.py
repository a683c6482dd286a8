"""The maps of the code say what is there: nothing is missing, and nothing is named that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.source import PACKAGE, ROOT

GUIDES = ["CONTRIBUTING.md", "docs/architecture.md", "docs/extending.md", "docs/glossary.md", "docs/states.md"]
#: Where a path in a guide may begin.
BASES = (ROOT, PACKAGE, PACKAGE / "domains", PACKAGE / "surfaces", ROOT / "docs")
#: Files that users have, not we.
OF_USERS = {"wakeful.yaml"}

PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:\.(?:py|md|sql|toml|yaml)|/)")
FENCE = re.compile(r"```.*?```", re.DOTALL)


def map_of(guide: str) -> set[str]:
    """Every path below src/wakeful in CONTRIBUTING's map; indentation says what lies in what."""
    block = re.search(r"```\nsrc/wakeful/\n(.*?)^\S", guide, re.DOTALL | re.MULTILINE)
    assert block is not None, "CONTRIBUTING.md has no map that begins with src/wakeful/"
    folders, found = dict[int, str](), set[str]()
    for line in block[1].splitlines():
        depth, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        path = folders.get(depth - 1, "") + name
        folders[depth] = path
        found.add(path)
    return found


def rooms(package: Path) -> set[str]:
    """Every package and folder of scripts, and every module that lies at the top or beside packages."""
    folders = {path.parent for pattern in ("*.py", "*.sql") for path in package.rglob(pattern)} - {package}
    beside = [package, package / "kernel"]
    modules = {path for folder in beside for path in folder.glob("*.py") if path.name != "__init__.py"}
    return {f"{path.relative_to(package)}/" for path in folders} | {str(path.relative_to(package)) for path in modules}


def missing_paths(text: str) -> list[str]:
    """Paths in backticks or links that lead nowhere."""
    prose = FENCE.sub("", text)
    named = [word for word in re.findall(r"`([^`\s]+)`", prose) if PATH.fullmatch(word)]
    named += [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose) if "://" not in link]
    return [path for path in named if path not in OF_USERS and not exists(path)]


def exists(path: str) -> bool:
    if any((base / path).exists() for base in BASES):
        return True
    return "/" not in path and any(next(folder.rglob(path), None) for folder in (PACKAGE, ROOT / "tests" / "sample"))


def test_the_map_in_contributing_is_complete_and_true():
    shown = map_of((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    there = rooms(PACKAGE)
    assert sorted(there - shown) == [], "missing in the map of CONTRIBUTING.md"
    assert sorted(shown - there) == [], "named by the map of CONTRIBUTING.md and not there"


@pytest.mark.parametrize("guide", GUIDES)
def test_every_file_that_a_guide_names_exists(guide):
    assert missing_paths((ROOT / guide).read_text(encoding="utf-8")) == []


def test_every_table_has_its_owner_in_the_architecture():
    scripts = (PACKAGE / "store" / "schema").glob("*.sql")
    tables = {name for path in scripts for name in re.findall(r"CREATE TABLE (\w+)", path.read_text(encoding="utf-8"))}
    rows = re.findall(
        r"^\| (`[^|]*`) \| `\w+/", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    shown = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(shown) == sorted(tables)


def test_a_map_with_a_mistake_is_noticed():
    shown = map_of(
        "```\nsrc/wakeful/\n  kernel/     jobs\n    rules/    pure\n  clock.py    time\ntests/   tests\n```\n"
    )
    assert shown == {"kernel/", "kernel/rules/", "clock.py"}
    assert missing_paths("`kernel/loop/loop.py` and `kernel/loop.py`, [x](docs/nowhere.md), `wakeful.yaml`") == [
        "kernel/loop.py",
        "docs/nowhere.md",
    ]
