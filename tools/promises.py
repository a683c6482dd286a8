"""Which promises are kept: `docs/promises.md` says it, the tests that carry the ids prove it.

`python -m tools.promises` runs those tests and prints every promise with them. It fails when a test fails, when a test
carries an id the list does not know, and when a promise called kept has no passing test. The last line is always
`N kept, M planned`; only what was proved in this run counts as kept.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "promises.md"

_ROW = re.compile(r"^\| *(?P<id>[A-Z]\d+) *\| *(?P<state>[^|]*?) *\| *(?P<text>.*?) *\|$", re.MULTILINE)
_NO_TESTS_COLLECTED = 5


@dataclass(frozen=True)
class Promise:
    """One row of the list."""

    id: str
    kept: bool
    text: str


@dataclass(frozen=True)
class Proof:
    """What one test that carries a promise's id ended as, in pytest's words."""

    test: str
    outcome: str


def read_promises(path: Path = LIST) -> dict[str, Promise]:
    """The list by id, in its own order; raises ValueError on an id given twice or a state that is no state."""
    promises: dict[str, Promise] = {}
    for row in _ROW.finditer(path.read_text(encoding="utf-8")):
        name, state = row["id"], row["state"]
        if name in promises:
            raise ValueError(f"{path.name} lists {name} twice: keep one row.")
        if state not in {"kept", "planned"}:
            raise ValueError(f"{path.name} calls {name} {state!r}: write kept or planned.")
        promises[name] = Promise(name, state == "kept", row["text"])
    return promises


def is_proved(proofs: Sequence[Proof]) -> bool:
    """At least one test passed and none did anything else."""
    return bool(proofs) and all(proof.outcome == "passed" for proof in proofs)


def describe(promise: Promise, proofs: Sequence[Proof]) -> list[str]:
    """The promise and the tests under it; the cases of a parametrised test share a line."""
    state = "planned" if not promise.kept else "kept" if is_proved(proofs) else "BROKEN"
    lines = [f"{promise.id:<4} {state:<8} {promise.text}"]
    if not promise.kept:
        return lines
    cases = Counter((proof.test.partition("[")[0], proof.outcome) for proof in proofs)
    for (test, outcome), count in sorted(cases.items()):
        verdict = "" if outcome == "passed" else f" {outcome.upper()}"
        lines.append(f"       {test}{f' ({count} cases)' if count > 1 else ''}{verdict}")
    return lines if proofs else [*lines, "       no test carries it"]


def report(promises: Mapping[str, Promise], proofs: Mapping[str, Sequence[Proof]]) -> tuple[list[str], bool]:
    """All lines to print, and whether every promise called kept was proved."""
    lines: list[str] = []
    for promise in promises.values():
        lines += describe(promise, proofs.get(promise.id, ()))
    called_kept = [promise.id for promise in promises.values() if promise.kept]
    broken = [name for name in called_kept if not is_proved(proofs.get(name, ()))]
    if broken:
        lines += ["", f"Called kept without a passing test: {', '.join(broken)}."]
        lines.append("Write the test, mend the code, or call the promise planned in docs/promises.md.")
    lines += ["", f"{len(called_kept) - len(broken)} kept, {len(promises) - len(called_kept)} planned"]
    return lines, not broken


def run_tests() -> tuple[dict[str, list[Proof]], int]:
    """Runs every test that carries a promise (chaos apart); pytest's own words go to standard error."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "promises.json"
        options = ["-q", "-m", "promise and not chaos", f"--promises-json={record}"]
        code = subprocess.run(
            [sys.executable, "-m", "pytest", *options], cwd=ROOT, stdout=sys.stderr, check=False
        ).returncode
        seen = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    return {name: [Proof(**proof) for proof in proofs] for name, proofs in seen.items()}, code


def main() -> int:
    promises = read_promises()
    proofs, code = run_tests()
    lines, all_proved = report(promises, proofs)
    tests_passed = code in {0, _NO_TESTS_COLLECTED}
    if not tests_passed:
        print(f"The tests did not pass (pytest ended with {code}): its report is above.\n")
    print("\n".join(lines))
    return 0 if all_proved and tests_passed else 1


if __name__ == "__main__":
    sys.exit(main())
