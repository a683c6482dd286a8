"""The README cannot lie: its program and its commands run as printed, and print what is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import wakeful
from tests.cli.terminal import PATIENCE, Terminal

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def steps_of(page):
    """The commands that a page shows, each with what it prints."""
    return [
        (command, shown)
        for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
        for command, shown in re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", block, re.MULTILINE)
    ]


STEPS = steps_of(README)
SPAN = r"\d+(ms|s|m|h|d)\b"
VARIES = [
    (r"(job|run)_[0-9a-z]{13}", "ID"),
    (r"(\w{3} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?( UTC|Z|\+00:00)", "TIME"),
    (r"(\w{3} )?\d\d:\d\d\b(?!,)", "CLOCK"),
    (rf"(in )?{SPAN}( {SPAN})*( ago)?|just now", "SPAN"),
    (r"/\S*wakeful\.db", "STORE"),
    (r"[ \n]+", " "),
]


def steady(text):
    """The text without what is different at each time and place."""
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text.replace("SPAN)", "SPAN )").strip()


def test_the_readmes_program_prints_what_it_says(tmp_path: Path) -> None:
    [(program, promised)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    pattern = re.escape(promised).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, result.stdout), result.stdout


def test_the_readmes_commands_print_what_it_says(tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / ".wakeful").rmdir()  # the store is the one of the user
    served = STEPS.index(next(step for step in STEPS if step[0].startswith("TOKEN=")))
    try:
        said = typed(terminal, STEPS[:served], "")
        server = terminal.start("serve", "--port", "0")
        url = re.search(r"http://(\S+:\d+)", server.until("listening on"))[1]
        said += typed(terminal, STEPS[served:], url.replace("127.0.0.1", "localhost"))
    finally:
        terminal.close()
    assert len(said) == len(STEPS) == 8
    for (command, shown), answer in zip(STEPS, said, strict=True):
        assert steady(answer) == steady(shown), command


def test_the_guide_to_scale_shows_what_staggered_jobs_print(tmp_path):
    [step] = steps_of((ROOT / "docs" / "scale.md").read_text(encoding="utf-8"))
    [answer] = typed(Terminal(tmp_path), [step], "")
    assert steady(answer) == steady(step[1])


def typed(terminal, steps, address):
    """What each of these commands prints in a shell."""
    script = "\n".join(f"echo '@@'\n{command.replace('localhost:7878', address)}" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{script}"],
        cwd=terminal.folder,
        env={**terminal.env, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.split("@@\n")[1:]


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_readme_is_short_and_leads_to_every_page():
    assert len(README.splitlines()) <= 120
    assert "(docs/README.md)" in README
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    linked = re.findall(r"\]\(([^)#]+)", index)
    assert pages - set(linked) == set()
    for target in linked:
        assert (ROOT / "docs" / target).exists(), target


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert project["version"] == wakeful.__version__
    assert re.findall(r"^## (.+)$", changes, re.MULTILINE)[:2] == ["Unreleased", wakeful.__version__]
    assert {"postgres"} <= set(project["optional-dependencies"])
