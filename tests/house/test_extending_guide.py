"""docs/extending.md shows the sample domain as it is, and every part that a domain or a kind can have."""

from __future__ import annotations

import re
import textwrap

import pytest
import yaml

from tests.house.source import ROOT
from tests.sample import domain
from tests.sample.configuration import LetterSettings
from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind

GUIDE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SOURCE = re.compile(r"(?:#|--) (tests/sample/\S+)\n")


def shown() -> list[tuple[str, str]]:
    """The blocks of Python and SQL: the file that the first line names, and the rest."""
    found = []
    for language, block in BLOCK.findall(GUIDE):
        if language != "yaml":
            named = SOURCE.match(block)
            assert named is not None, f"this block does not say which file it is from:\n{block}"
            found.append((named[1], block[named.end() :]))
    return found


@pytest.mark.parametrize(("path", "block"), shown())
def test_every_block_of_the_guide_is_in_the_sample(path, block):
    code = (ROOT / path).read_text(encoding="utf-8")
    assert block in code, f"{path} does not hold:\n{textwrap.indent(block, '  ')}"


def test_the_guide_shows_every_file_of_the_sample():
    parts = [*(ROOT / "tests/sample").glob("*.py"), *(ROOT / "tests/sample").rglob("*.sql")]
    there = {str(path.relative_to(ROOT)) for path in parts if not path.name.startswith("test_")}
    assert there - {path for path, _ in shown()} == set()


@pytest.mark.parametrize("what", [Domain, Kind])
def test_the_guide_explains_every_field(what):
    rows = " ".join(re.findall(r"^\| (.*?) \|", GUIDE, re.MULTILINE))
    assert [name for name in what._fields if f"`{name}`" not in rows] == []


def test_the_guides_section_of_the_file_is_valid():
    [text] = [block for language, block in BLOCK.findall(GUIDE) if language == "yaml"]
    [(section, values)] = yaml.safe_load(text).items()
    assert section == domain.section
    assert LetterSettings(**values).stamps == 3


def test_the_guides_own_links_lead_to_its_headings():
    headings = re.findall(r"^## (.*)$", GUIDE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", GUIDE)) - anchors == set()
