"""A command loads what it needs: a listing brings no web server, no validation and no parser with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The argument parser loads pydantic by itself, and tables on a terminal need rich.
HEAVY = ("fastapi", "httpx", "starlette", "uvicorn", "yaml", "psycopg")
NOT_PLAIN = ("pydantic", "rich")
PROGRAM = """
import sys
from wakeful.surfaces.cli import main
code = main({argv!r})
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({heavy!r})), file=sys.stderr)
sys.exit(code)
"""


def loaded(folder, *argv, heavy=HEAVY):
    program = PROGRAM.format(argv=list(argv), heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("argv", [["list"], ["status"], ["token", "list"], ["--help"], ["next", "0 9 * * *"]])
def test_a_command_loads_no_more_than_it_needs(here, argv):
    assert loaded(here, *argv) == []


@pytest.mark.promise("X24")
@pytest.mark.parametrize(
    "argv",
    [["list"], ["status"], ["list", "--json"], ["status", "--json"], ["next", "-n", "3"], ["next", "0 9 * * *"],
     ["--version"], ["add", "job", "--every", "5m", "--", "true"]],
)  # fmt: skip
def test_a_plain_command_loads_no_parser_and_nothing_that_colours(here, argv):
    assert loaded(here, *argv, heavy=(*HEAVY, *NOT_PLAIN)) == []


def test_a_configuration_file_brings_its_parser_and_nothing_else(here):
    (here / "wakeful.yaml").write_text("store: jobs.db\n")
    assert loaded(here, "list") == ["yaml"]
