"""Every example does what it says at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
BIN = Path(sys.executable).parent


def said(path):
    """The output an example promises, in the comment at its end; None where it promises none."""
    _, found, after = path.read_text(encoding="utf-8").partition("# Output:\n")
    return "".join(line.removeprefix("# ") for line in after.splitlines(keepends=True)) if found else None


EXAMPLES = sorted(path for path in FOLDER.iterdir() if path.suffix in {".py", ".sh"} and said(path) is not None)


def test_every_example_is_run_by_a_test():
    rest = {path.name for path in FOLDER.iterdir() if path.is_file()} - {path.name for path in EXAMPLES}
    assert rest == {"app.py"}


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_it_says(path, tmp_path):
    program = [sys.executable] if path.suffix == ".py" else ["sh", "-eu"]
    env = {"HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}", "TZ": "UTC"}
    done = subprocess.run(
        [*program, path], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == said(path)


@pytest.mark.long
def test_the_example_app_is_served(terminal):
    (terminal.folder / "app.py").write_text((FOLDER / "app.py").read_text(encoding="utf-8"))
    terminal.serve("--app", "app:scheduler")
    answer = terminal("run", "digest", "--wait", "--db", "app.db")
    assert (answer.code, answer.out) == (0, '{\n  "for": "a request"\n}\n')
    jobs = {job["name"]: job for job in terminal.ask("list", "--db", "app.db", "--json").json}
    assert jobs["digest"]["schedule"] == "weekdays at 07:00, Europe/Berlin"
    assert jobs["inbox"]["options"] == {"lanes": {"mailbox": 1}}
    assert {job["source"] for job in jobs.values()} == {"code"}
