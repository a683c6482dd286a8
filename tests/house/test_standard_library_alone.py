"""`import wakeful`, and the kernel on SQLite, need nothing that has to be installed."""

from __future__ import annotations

import subprocess
import sys

from tests.house.source import SRC

LOADED = """
import wakeful
for name in wakeful.__all__:
    getattr(wakeful, name)
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in before}
print(*sorted(name for name, file in files.items() if "site-packages" in file))
"""

PROGRAM = """
import asyncio, tempfile
from datetime import UTC, datetime
from wakeful import Once, Scheduler

async def main(folder):
    scheduler = Scheduler(f"sqlite:///{folder}/wakeful.db")
    ran = asyncio.Event()

    @scheduler.on_job_due("greet")
    async def greet(run):
        ran.set()

    async with scheduler:
        await scheduler.add_job("hello", Once(datetime(2020, 1, 1, tzinfo=UTC)), kind="greet")
        await scheduler.start()
        await asyncio.wait_for(ran.wait(), 30)
        await scheduler.stop(wait_for_jobs=True, timeout=30)

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
print("ran")
"""


def run_python(program, *options):
    """Runs the program with our source in front, in an interpreter that ignores the environment."""
    prelude = f"import sys; before = set(sys.modules); sys.path.insert(0, {str(SRC)!r})\n"
    command = [sys.executable, "-I", *options, "-W", "error", "-c", prelude + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_wakeful_loads_only_the_standard_library():
    assert run_python(LOADED) == ""


def test_a_job_runs_where_nothing_is_installed():
    assert run_python(PROGRAM, "-S") == "ran"
