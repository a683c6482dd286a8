"""Builds the sdist and the wheel twice, compares them byte by byte, and checks what they say about themselves.

python -m tools.packages        # also: make dist
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
EPOCH = "1767225600"
"""The time in every package, where SOURCE_DATE_EPOCH says nothing: builds of the same files are the same."""
REQUIRED = ("Name", "Version", "Summary", "License-Expression", "Requires-Python", "Description-Content-Type")


def build(folder: Path) -> dict[str, bytes]:
    """Both packages by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    env = {"SOURCE_DATE_EPOCH": EPOCH, **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=env, timeout=120)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def metadata(package: Path) -> Message:
    """What a package says about itself."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            return Parser().parsestr(archive.read(name).decode())
    with tarfile.open(package) as archive:
        [member] = [one for one in archive.getmembers() if one.name.count("/") == 1 and one.name.endswith("/PKG-INFO")]
        found = archive.extractfile(member)
        assert found is not None  # noqa: S101 - it is a file
        return Parser().parsestr(found.read().decode())


def problems(package: Path) -> list[str]:
    """What an index would refuse, or show without."""
    said = metadata(package)
    found = [f"{package.name} does not say {name}" for name in REQUIRED if not said.get(name)]
    if not str(said.get_payload() or "").strip():
        found.append(f"{package.name} has no description")
    return found


def main() -> int:
    """Build, compare and check; the exit code."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        once, again = build(Path(first)), build(Path(second))
    if once != again:
        print("two builds of the same files differ:", *(name for name in once if once[name] != again.get(name)))
        return 1
    DIST.mkdir(exist_ok=True)
    for name, content in once.items():
        (DIST / name).write_bytes(content)
    found = [problem for name in once for problem in problems(DIST / name)]
    print(*(found or [f"dist/{name}" for name in once]), sep="\n")
    if importlib.util.find_spec("twine") is not None:
        command = [sys.executable, "-m", "twine", "check", "--strict", *(str(DIST / name) for name in once)]
        return subprocess.run(command, check=False, timeout=120).returncode or bool(found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
