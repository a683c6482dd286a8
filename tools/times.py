"""How long tests take: `python -m tools.times` writes `tests/times.txt` from what the last `make test` and `make prove`
measured.

tests/conftest.py reads that file to decide which tests a command runs. Quick tests are not in it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURED = [ROOT / "build" / "times" / name for name in ("test.json", "prove.json")]
LIST = ROOT / "tests" / "times.txt"
QUICK_S = 0.3
HEAD = "# Seconds and test, for tests of 0.3 s and more. Made by `make times` after `make prove`."


def listed(times: Mapping[str, float]) -> str:
    """The text of the file: one line per test that is not quick, in the order of their names."""
    slow = sorted((name, seconds) for name, seconds in times.items() if seconds >= QUICK_S)
    return "\n".join([HEAD, *(f"{seconds:.1f} {name}" for name, seconds in slow)]) + "\n"


def main() -> int:
    if not all(path.exists() for path in MEASURED):
        print("No times are on record: run make test and make prove first.")
        return 1
    times: dict[str, float] = {}
    for path in MEASURED:
        times |= json.loads(path.read_text(encoding="utf-8"))
    LIST.write_text(listed(times), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
