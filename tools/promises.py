"""Which promises are kept: `docs/promises.md` says it, the tests that carry the ids prove it.

`make prove` runs the tests. Each pytest in it records what became of them, and on which files, in `build/promises/`.
`python -m tools.promises` reads the records and prints every promise with its tests; `--run` runs the tests that carry
a promise instead. Records of other files than those here are refused. It fails when a test failed, and when a promise
called kept has no passing test. The last line is `N kept, M planned`; only what was proved counts as kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "promises.md"
PARTS = ROOT / "build" / "promises"

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


@dataclass(frozen=True)
class Checkout:
    """What tests ran on: the commit, and a digest of all files as they are, committed or not, and of the Python."""

    commit: str
    files: str

    @classmethod
    def read(cls, root: Path = ROOT) -> Checkout:
        listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        digest = hashlib.sha256(sys.version.encode())
        for path in sorted({root / name for name in listed if name}):
            content = path.read_bytes() if path.is_file() else b"gone"
            digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode() + content)
        return cls(_git(root, "rev-parse", "HEAD").decode().strip(), digest.hexdigest())


def _git(root: Path, *arguments: str) -> bytes:
    command = ["git", *arguments]
    try:
        return subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode().strip()
        raise RuntimeError(f"{root} is not a Git checkout that can be read: {said or error}") from error


@dataclass(frozen=True)
class Part:
    """What one run of pytest proved: on which files, how it ended, and what became of the tests of each promise.

    `tests` are all that passed, also those that carry no promise.
    """

    checkout: Checkout
    exit_code: int
    proofs: Mapping[str, Sequence[Proof]]
    tests: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        return self.exit_code in {0, _NO_TESTS_COLLECTED}

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Part:
        stored = json.loads(path.read_text(encoding="utf-8"))
        proofs = {name: [Proof(**proof) for proof in found] for name, found in stored["proofs"].items()}
        return cls(Checkout(**stored["checkout"]), stored["exit_code"], proofs, stored.get("tests", ()))


def why_stale(parts: Sequence[Part], now: Checkout) -> str | None:
    """Why the parts say nothing about the files as they are now, if they do not."""
    commits = {part.checkout.commit for part in parts} - {now.commit}
    if not parts:
        return "Nothing has been proved yet"
    if commits:
        return f"The last `make prove` ran on commit {commits.pop()[:12]}, and this is {now.commit[:12]}"
    if any(part.checkout != now for part in parts):
        return "Files have changed since the last `make prove`"
    return None


def passed_before(path: Path, now: Checkout) -> frozenset[str]:
    """The tests that passed in the run that this file is the record of, if that was on the same files."""
    part = Part.read(path) if path.exists() else None
    return frozenset(part.tests) if part is not None and part.checkout == now else frozenset()


def merge(parts: Sequence[Part]) -> dict[str, list[Proof]]:
    """What became of the tests of each promise; a test that ran in two parts is there once for each outcome."""
    proofs: dict[str, list[Proof]] = defaultdict(list)
    for part in parts:
        for name, found in part.proofs.items():
            proofs[name] += [proof for proof in found if proof not in proofs[name]]
    return proofs


def run_tests(folder: Path) -> list[Part]:
    """Runs every test that carries a promise; pytest's own words go to standard error."""
    record = folder / "run.json"
    options = ["-q", "--scope", "prove", "-m", "promise", f"--promises-json={record}"]
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, stdout=sys.stderr, check=False)
    return [Part.read(record)] if record.exists() else []


def read_parts(folder: Path) -> list[Part]:
    return [Part.read(path) for path in sorted(folder.glob("*.json"))]


def forget_stale(folder: Path, now: Checkout) -> None:
    """Remove the records of runs on other files."""
    for path in folder.glob("*.json"):
        if Part.read(path).checkout != now:
            path.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.promises", description="Which promises are kept, and by which tests.")
    parser.add_argument(
        "--run", action="store_true", help="run the tests instead of reading what `make prove` recorded"
    )
    parser.add_argument("--forget-stale", action="store_true", help="only remove what was recorded on other files")
    asked = parser.parse_args(arguments)
    if asked.forget_stale:
        forget_stale(PARTS, Checkout.read())
        return 0
    if asked.run:
        with tempfile.TemporaryDirectory() as folder:
            parts = run_tests(Path(folder))
    else:
        parts = read_parts(PARTS)
        if why := why_stale(parts, Checkout.read()):
            print(f"{why}: run `make prove`, or `make promises RUN=1`.")
            return 2
    lines, all_proved = report(read_promises(), merge(parts))
    all_passed = bool(parts) and all(part.passed for part in parts)
    if not all_passed:
        print("Tests failed: see the report of pytest.\n")
    print("\n".join(lines))
    return 0 if all_proved and all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
