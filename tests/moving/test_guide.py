"""docs/moving.md cannot lie: its files are written, its commands typed, and they print what is printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.moving.test_readers import SAMPLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "moving.md").read_text(encoding="utf-8")
FILES = re.findall(r"[Tt]his is `([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
STEPS = [
    (command, shown)
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for command, shown in re.findall(r"^\$ wakeful ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", block, re.MULTILINE)
]


def steady(text, here):
    """Lines without what is different at each time."""
    text = text.replace(f"{here}/", "")
    text = re.sub(r"in \d+d( \d+h)?|in \d+h \d+m", "SPAN", text)
    text = re.sub(r"\b(Mon )?\d\d:\d\d\n", "TIME\n", text)
    return sorted(re.sub(r" {2,}", "  ", line.rstrip()) for line in text.splitlines() if line.strip())


@pytest.mark.promise("X10")
def test_the_guide_prints_what_happens(wakeful, here):
    for name, content in FILES:
        (here / name).write_text(content)
    shutil.copy(SAMPLES / "apscheduler" / "jobs.sqlite", here)
    assert len(FILES) == 5
    assert len(STEPS) == 10
    for command, shown in STEPS:
        answer = wakeful(*shlex.split(command))
        assert answer.code == (5 if "Nothing was changed" in shown else 0), command
        assert steady(answer.out + answer.err, here) == steady(shown, here), command
    [yaml] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert (here / "wakeful.yaml").read_text() == yaml
