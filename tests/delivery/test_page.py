"""docs/delivery.md cannot lie: its configuration is valid, its commands and its program do what is shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.cli.test_documentation import first_words
from wakeful.domains.delivery.configuration import TYPES
from wakeful.domains.delivery.outbox import STATUSES
from wakeful.domains.delivery.webhook import REFUSED

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "delivery.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_commands_do_what_is_shown(tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(blocks("yaml")[0])
    assert terminal.ask("apply", "--yes").code == 0
    steps = [step for block in blocks("console") for step in re.findall(r"\$ (wakeful .+)\n((?:[^$].*\n)+)", block)]
    assert len(steps) == 3
    for line, shown in steps:
        answer = terminal.ask(*shlex.split(line)[1:])
        assert answer.code == 0, answer.err
        assert set(first_words(shown)) <= set(first_words(answer.out) + first_words(answer.err)), line


def test_the_programs_run_as_printed(tmp_path):
    printed = []
    for program in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed == ["", "", "files: three files are new\n"]


def test_every_type_status_and_code_is_on_the_page():
    words = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [word for word in words if word in TYPES] == list(TYPES)
    assert {word for word in words if word in STATUSES} == set(STATUSES)
    listed = re.search(r"answers ([\d, or]+) fails", PAGE)[1]
    assert {int(code) for code in re.findall(r"\d+", listed)} == REFUSED
