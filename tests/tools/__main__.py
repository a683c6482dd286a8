"""`python -m tests.tools [PROGRAM …]`: each preset with the program itself, which a stand-in for a model answers.

Programs are installed into `build/tools`; what cannot be installed is skipped, and the reason is printed. Ends with 1
if Wakeful makes anything else of a program's output than it should.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.tools.checks import Bench, Checks
from tests.tools.installing import CannotInstall
from tests.tools.model_server import ModelServer
from tests.tools.programs import PROGRAMS, Program


def check(name: str, program: Program, server: ModelServer) -> int:
    """Run the cases of a program; how many are not as they should be."""
    if isinstance(program.install, str):
        print(f"{name:10} skipped: {program.install}")
        return 0
    try:
        path = program.install()
    except CannotInstall as error:
        print(f"{name:10} skipped: {error}")
        return 0
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{path}{os.pathsep}{before}"
    try:
        print(f"{name:10} {_version(name)}", flush=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return sum(_is_wrong(*one) for one in Checks(Bench(name, program, server, Path(folder))))
    finally:
        os.environ["PATH"] = before


def _is_wrong(case, check_case) -> bool:
    try:
        print(f"  ok    {case:13} {check_case()[:160]}", flush=True)
    except (AssertionError, ValueError) as error:
        print(f"  WRONG {case:13} {str(error)[:600]}", flush=True)
        return True
    return False


def _version(program: str) -> str:
    said = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )
    return next((line.strip() for line in said.stdout.splitlines() if line.strip()), "its version is not known")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tools", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"one of {', '.join(PROGRAMS)}; all, if none")
    names = parser.parse_args().programs or list(PROGRAMS)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        parser.error(f"there is no program {unknown[0]}: there are {', '.join(PROGRAMS)}")
    with ModelServer() as server:
        wrong = sum(check(name, PROGRAMS[name], server) for name in names)
    print("All is as it should be." if not wrong else f"Not as it should be: {wrong}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
