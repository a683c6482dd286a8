"""`docs/promises.md` and the tests agree, and the tool that says so cannot be fooled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.source import ROOT
from tools.promises import Checkout, Part, Promise, Proof, read_promises, report

GROUPS = {"H": 18, "C": 10, "K": 17, "A": 12, "D": 14, "X": 33}

SAMPLE = """
import pytest

@pytest.fixture
def broken():
    yield
    raise RuntimeError

@pytest.mark.promise("H1", "H2")
def test_passes(): ...

@pytest.mark.promise("H3")
def test_fails(): assert False

@pytest.mark.promise("H4")
def test_is_skipped(): pytest.skip("why")

@pytest.mark.promise("H5")
def test_fails_afterwards(broken): ...
"""


def run_pytest(tmp_path, code, *options):
    (tmp_path / "test_sample.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-p", "tests.conftest", *options, str(tmp_path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_the_list_has_every_id_once_and_in_order():
    assert list(read_promises()) == [f"{group}{n}" for group, count in GROUPS.items() for n in range(1, count + 1)]


@pytest.mark.parametrize("rows", ["| H1 | kept | a |\n| H1 | planned | b |", "| H1 | almost | a |"])
def test_a_list_that_contradicts_itself_is_refused(tmp_path, rows):
    path = tmp_path / "promises.md"
    path.write_text(rows)
    with pytest.raises(ValueError, match="H1"):
        read_promises(path)


def test_only_a_passing_test_keeps_a_promise():
    promises = {name: Promise(name, name != "H4", "text") for name in ("H1", "H2", "H3", "H4")}
    proofs = {
        "H1": [Proof("t.py::test_a[1]", "passed"), Proof("t.py::test_a[2]", "passed")],
        "H2": [Proof("t.py::test_a[1]", "passed"), Proof("t.py::test_b", "failed")],
    }
    lines, all_proved = report(promises, proofs)
    assert not all_proved
    assert "       t.py::test_a (2 cases)" in lines
    assert "Called kept without a passing test: H2, H3." in lines
    assert lines[-1] == "1 kept, 1 planned"


def test_a_list_whose_kept_promises_are_proved_is_accepted():
    lines, all_proved = report({"H1": Promise("H1", kept=True, text="t")}, {"H1": [Proof("t.py::test_a", "passed")]})
    assert all_proved
    assert lines[-1] == "1 kept, 0 planned"


def test_what_became_of_each_test_is_recorded(tmp_path):
    run_pytest(tmp_path, SAMPLE, f"--promises-json={tmp_path / 'out.json'}")
    part = Part.read(tmp_path / "out.json")
    outcomes = {name: [proof.outcome for proof in proofs] for name, proofs in part.proofs.items()}
    assert outcomes == {"H1": ["passed"], "H2": ["passed"], "H3": ["failed"], "H4": ["skipped"], "H5": ["failed"]}
    assert (part.exit_code, part.checkout) == (1, Checkout.read())


def test_a_test_that_carries_an_unknown_promise_is_an_error(tmp_path):
    done = run_pytest(tmp_path, 'import pytest\n@pytest.mark.promise("H99")\ndef test_it(): ...')
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "H99" in done.stdout + done.stderr
