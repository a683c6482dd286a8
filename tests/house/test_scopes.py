"""Which tests `pytest`, `make test` and `make prove` run: one rule, in tests/conftest.py."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from tests.conftest import SCOPES, Scope, Timed, chosen, done_before, read_times
from tests.house.source import ROOT
from tools.promises import Checkout, Part
from tools.times import listed

TESTS = [
    Timed("quick", ("H1",), postgres=False, seconds=0.1),
    Timed("quick on postgres", ("H1",), postgres=True, seconds=0.1),
    Timed("slow", ("H1",), postgres=False, seconds=9.0),
    Timed("slow, alone with its promise", ("H1", "H2"), postgres=False, seconds=5.0),
    Timed("slower, with the same promise", ("H2",), postgres=False, seconds=6.0),
    Timed("slow, alone with its promise on postgres", ("H2",), postgres=True, seconds=7.0),
    Timed("slow, without a promise", (), postgres=False, seconds=2.0),
]


@pytest.mark.parametrize(
    ("scope", "left_out"),
    [
        (
            Scope(seconds=0.5, postgres=False),
            {
                "quick on postgres", "slow", "slow, alone with its promise on postgres", "slow, without a promise",
                "slower, with the same promise",
            },
        ),
        (
            Scope(seconds=1.0, postgres=True),
            {"slow", "slow, without a promise", "slower, with the same promise"},
        ),
        (Scope(seconds=2.0, postgres=True), {"slow", "slower, with the same promise"}),
        (Scope(seconds=math.inf, postgres=True), set()),
    ],
)  # fmt: skip
def test_a_scope_has_the_quick_tests_and_one_for_every_promise_on_each_of_its_stores(scope, left_out):
    assert chosen(TESTS, scope) == {test.name for test in TESTS} - left_out


def test_each_scope_runs_what_the_smaller_ones_run():
    everyday, test, prove = (chosen(TESTS, SCOPES[name]) for name in ("everyday", "test", "prove"))
    assert everyday < test < prove == {test.name for test in TESTS}


def test_only_tests_that_are_not_quick_are_listed_with_their_times():
    text = listed({"tests/b.py::test_b[a b]": 1.26, "tests/a.py::test_a": 0.3, "tests/a.py::test_quick": 0.29})
    assert text.splitlines()[1:] == ["0.3 tests/a.py::test_a", "1.3 tests/b.py::test_b[a b]"]


def test_every_listed_test_is_in_a_file_that_exists():
    files = {name.partition("::")[0] for name in read_times()}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_what_passed_before_on_the_same_files_is_not_run_again_but_for_properties(tmp_path, monkeypatch):
    here = Checkout("c" * 40, "files")
    monkeypatch.setattr(Checkout, "read", lambda: here)
    Part(here, 0, {}, ["plain", "property"]).write(tmp_path / "test.json")
    items = [
        SimpleNamespace(nodeid="plain", obj=SimpleNamespace()),
        SimpleNamespace(nodeid="property", obj=SimpleNamespace(is_hypothesis_test=True)),
        SimpleNamespace(nodeid="new", obj=SimpleNamespace()),
    ]
    asked = SimpleNamespace(getoption=lambda _: str(tmp_path / "test.json"))
    assert done_before(asked, items) == {"plain"}
    assert done_before(SimpleNamespace(getoption=lambda _: None), items) == set()


def test_records_that_exist_are_not_taken_for_tests():
    """pytest looks for its options beside the first argument that is a path, and a record of the last run is one."""
    recipes = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m pytest" in line]
    assert len(recipes) == 2
    assert [word for line in recipes for word in line.split("-m pytest")[1].split() if "=" not in word] == []
