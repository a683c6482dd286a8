"""Installing agent programs from the registries of npm and PyPI, each into a folder of its own under `build/tools`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "tools"
PATIENCE_S = 900


class CannotInstall(Exception):
    """Why a program cannot be installed here."""


def npm(name: str, package: str, node: str | None = None) -> str:
    """The PATH for the commands of a package, with a Node.js of that version; what is there already is kept."""
    before = "" if node is None else f"{npm('node', f'node@{node}')}{os.pathsep}"
    commands = FOLDER / name / "node_modules" / ".bin"
    if not (commands / name).exists():
        if shutil.which("npm") is None:
            raise CannotInstall("npm is not on PATH")
        argv = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(_folder(name)), package]
        _run(argv, f"{before}{os.environ['PATH']}")
    return f"{_checked(commands, name)}{os.pathsep}{before}".rstrip(os.pathsep)


def pip(name: str, package: str) -> str:
    """The PATH for the commands of an environment that has the package."""
    commands = FOLDER / name / "bin"
    if not (commands / name).exists():
        _run([sys.executable, "-m", "venv", "--clear", str(_folder(name))])
        _run([str(commands / "python"), "-m", "pip", "install", "--quiet", package])
    return str(_checked(commands, name))


def _folder(name: str) -> Path:
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(argv: list[str], path: str | None = None) -> None:
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{argv[0]} took longer than {PATIENCE_S} s") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if "rror" in line] or ["it gave no reason"]
        raise CannotInstall(f"{Path(argv[0]).name} failed: {' / '.join(lines[:4])[:400]}")


def _checked(commands: Path, name: str) -> Path:
    if not (commands / name).exists():
        raise CannotInstall(f"the package has no command {name}")
    return commands
