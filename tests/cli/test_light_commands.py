"""A command loads what it needs: a listing brings no web server, no validation and no parser with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The argument parser loads pydantic by itself, so that one is not ours to leave out.
HEAVY = ("fastapi", "httpx", "starlette", "uvicorn", "yaml", "psycopg")
PROGRAM = """
import sys
from wakeful.cli import main
code = main({argv!r})
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({heavy!r})), file=sys.stderr)
sys.exit(code)
"""


def loaded(folder, *argv):
    program = PROGRAM.format(argv=list(argv), heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("argv", [["list"], ["status"], ["token", "list"], ["--help"], ["next", "0 9 * * *"]])
def test_a_command_loads_no_more_than_it_needs(here, argv):
    assert loaded(here, *argv) == []


def test_a_configuration_file_brings_its_parser_and_nothing_else(here):
    (here / "wakeful.yaml").write_text("store: jobs.db\n")
    assert loaded(here, "list") == ["yaml"]
