"""What must not lie around: vague names, lock files, traces of a machine, addresses in the pins."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.house.source import ROOT

FOLDERS = [".ci", "bench", "docs", "examples", "requirements", "src", "tests", "tools"]
VAGUE = {"common", "helper", "helpers", "misc", "util", "utilities", "utils"}
LOCKS = {"Pipfile.lock", "package-lock.json", "pdm.lock", "poetry.lock", "pylock.toml", "uv.lock", "yarn.lock"}

# Written in pieces, so that this file does not hold what it looks for.
PLACES = ["/" + "root/", "/" + r"home/\w", "/" + r"Users/\w", "/" + "work/(main|shared)", "/" + "opt/(pypi|wheels)"]
MACHINE_PATH = re.compile(r"(?<![\w.])(" + "|".join(PLACES) + ")")
ADDRESS = re.compile(r"://|^\s*(-i|--(extra-)?index-url|-f|--find-links|--trusted-host)\b|\s@\s", re.MULTILINE)


def files() -> list[Path]:
    """The project's own files; what a person keeps beside them is not looked at."""
    listed = [
        path for path in ROOT.iterdir() if path.suffix in {".md", ".toml"} or path.name in {"Makefile", ".gitignore"}
    ]
    for folder in FOLDERS:
        listed += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(listed)


def test_every_file_is_named_after_what_it_holds():
    assert [str(path.relative_to(ROOT)) for path in files() if path.stem.lower().strip("_") in VAGUE] == []


def test_no_module_is_longer_than_400_lines():
    modules = [path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 300
    assert [str(path.relative_to(ROOT)) for path in modules if path.read_text().count("\n") > 400] == []


def test_no_lock_file_records_where_things_came_from():
    assert [name for name in LOCKS if (ROOT / name).exists()] == []


def test_no_file_names_a_path_of_a_developers_machine():
    found = []
    for path in files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture or a font, not text
        found += [f"{path.relative_to(ROOT)}:{n}" for n, line in enumerate(lines, 1) if MACHINE_PATH.search(line)]
    assert found == []


def test_every_pin_has_a_hash_and_none_an_address():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert not ADDRESS.search(text)
        pins = re.findall(r"^[a-z0-9][^\n]*\\\n    --hash=sha256:", text, re.MULTILINE | re.IGNORECASE)
        assert len(pins) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE | re.IGNORECASE)) > 0


@pytest.mark.parametrize(
    "line", ["--index-url x", "-i x", "thing @ file.whl", "https" + "://host/simple", "--find-links x"]
)
def test_an_address_in_the_pins_is_found(line):
    assert ADDRESS.search(line)


def test_contributing_explains_every_make_command():
    commands = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(commands) > 5
    assert [name for name in commands if f"make {name}" not in guide] == []


# What the contract calls by one name in two places: the scheduler with and without `await`, and the words of workflows.
SHARED = {"Context": 2, "Event": 2, "Scheduler": 2}


def test_one_class_name_is_one_class():
    modules = sorted((ROOT / "src").rglob("*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert names.total() > 1000
    assert {name: count for name, count in names.items() if count > 1} == SHARED
