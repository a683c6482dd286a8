"""What holds for every test: promises are recorded, properties repeat, and nothing leaves this machine."""

from __future__ import annotations

import gc
import ipaddress
import json
import math
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from tools.promises import Checkout, Part, Proof, passed_before, read_promises

# The same examples on every run, so that red stays red; `--hypothesis-profile=search` looks for new ones.
repeat = settings(derandomize=True, deadline=None, database=None)
settings.register_profile("everyday", repeat, max_examples=25)
settings.register_profile("test", repeat, max_examples=40)
settings.register_profile("prove", repeat, max_examples=100)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)

WORKERS_PER_CORE, MOST_WORKERS = 2, 8

# Some environments forbid bytecode: every process would then compile all tests again, for twenty seconds.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class Scope(NamedTuple):
    """What one command runs: tests up to that many seconds, on SQLite alone or on PostgreSQL too."""

    seconds: float
    postgres: bool


# `pytest` alone, `make test`, `make prove`.
SCOPES = {
    "everyday": Scope(seconds=0.4, postgres=False),
    "test": Scope(seconds=0.7, postgres=True),
    "prove": Scope(seconds=math.inf, postgres=True),
}


def chosen(tests, scope):
    """Which of these tests belong to a scope: the quick ones, and for every promise at least one on each store.

    A test is a name, the promises it carries, whether it needs PostgreSQL, and how long it took (tests/times.txt).
    """
    possible = [test for test in tests if scope.postgres or not test.postgres]
    names = {test.name for test in possible if test.seconds <= scope.seconds}
    proved = {(promise, test.postgres) for test in possible if test.name in names for promise in test.promises}
    for test in sorted(possible, key=lambda test: (test.seconds, test.name)):
        if missing := {(promise, test.postgres) for promise in test.promises} - proved:
            proved |= missing
            names.add(test.name)
    return names


class Timed(NamedTuple):
    """A test, as the choice sees it."""

    name: str
    promises: tuple[str, ...]
    postgres: bool
    seconds: float


def pytest_addoption(parser):
    parser.addoption("--scope", choices=SCOPES, help="how much to run (default: everyday; of a part, all of it)")
    parser.addoption("--promises-json", metavar="PATH", help="write what became of the tests of each promise to PATH")
    parser.addoption(
        "--but-for", metavar="PATH", help="leave out what passed in the run on record there, on these files"
    )
    parser.addoption("--times", metavar="PATH", help="write how long each test took to PATH")


def pytest_configure(config):
    in_a_worker = hasattr(config, "workerinput")  # it reports to the process that started it, and only that one writes
    path = None if in_a_worker else config.getoption("--promises-json")
    config.pluginmanager.register(PromiseRecorder(path), "promise-recorder")
    if config.getoption("--times") and not in_a_worker:
        config.pluginmanager.register(Stopwatch(Path(config.getoption("--times"))), "stopwatch")
    if config.getoption("--hypothesis-profile") is None:
        settings.load_profile(scope_of(config))
    sys.addaudithook(_refuse_the_outside)
    # A shell ignores Ctrl-C for what it starts in the background, and so would all programs that tests start and stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Several processes for the whole suite, most of which waits; none for a part of it, which they would delay."""
    if is_part(config) or config.option.collectonly:
        return 0
    return min(MOST_WORKERS, WORKERS_PER_CORE * (os.cpu_count() or 1))


def is_part(config):
    """Whether a part of the suite was asked for: a folder, a file, a test, some words of a name."""
    whole = [Path(__file__).parent, Path(__file__).parents[1]]
    asked_for = [Path(config.invocation_params.dir, argument).resolve() for argument in config.args]
    return bool(config.option.keyword or config.getoption("lf", default=False)) or any(
        path not in whole for path in asked_for
    )


def scope_of(config):
    """The scope that was asked for; else the everyday one for the whole suite, and all of a part."""
    return config.getoption("--scope") or ("prove" if is_part(config) else "everyday")


def pytest_collection_modifyitems(config, items):
    """Leave out what the scope does not run."""
    times = read_times()
    tests = [
        Timed(item.nodeid, tuple(promises_of(item)), needs_postgres(item), times.get(item.nodeid, 0.0))
        for item in items
    ]
    names = chosen(tests, SCOPES[scope_of(config)]) - done_before(config, items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def done_before(config, items):
    """Tests that another run on the same files has passed, without properties: they get more examples here."""
    if config.getoption("--but-for") is None:
        return set()
    passed = passed_before(Path(config.getoption("--but-for")), Checkout.read())
    return {item.nodeid for item in items if item.nodeid in passed and not is_property(item)}


def is_property(item):
    return getattr(item.obj, "is_hypothesis_test", False)


def read_times():
    """How long tests took that are not quick, by name."""
    lines = (Path(__file__).parent / "times.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(seconds) for seconds, name in pairs}


def promises_of(item):
    return [name for mark in item.iter_markers("promise") for name in mark.args]


def needs_postgres(item):
    return "postgres" in item.nodeid or any(name.startswith("postgres") for name in item.fixturenames)


class Stopwatch:
    """Writes how long each test took, with its fixtures."""

    def __init__(self, path):
        self._path = path
        self._times = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self._times[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._times), encoding="utf-8")


def pytest_collection_finish():
    """Thousands of tests stay in memory to the end: no collection of garbage need look at them again."""
    gc.collect()
    gc.freeze()


class PromiseRecorder:
    """Knows which promise each test carries, and what became of it: anything but three passed phases is no pass."""

    def __init__(self, path):
        self._path = path and Path(path)
        # Before the first test: a change while they run makes the record stale.
        self._checkout = path and Checkout.read()
        self._ids = {}  # by test, as its report says them: it may have run in another process
        self._outcomes = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        known = read_promises()
        for item in items:
            ids = promises_of(item)
            if unknown := [name for name in ids if name not in known]:
                raise pytest.UsageError(f"{item.nodeid} carries {unknown[0]!r}, which docs/promises.md does not list.")
            item.user_properties.append(("promises", ids))

    def pytest_runtest_logreport(self, report):
        self._ids[report.nodeid] = dict(report.user_properties).get("promises", [])
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self, exitstatus):
        if self._path is None:
            return
        proofs = {}
        for test, outcome in self._outcomes.items():
            for name in self._ids[test]:
                proofs.setdefault(name, []).append(Proof(test, outcome))
        passed = [test for test, outcome in self._outcomes.items() if outcome == "passed"]
        Part(self._checkout, int(exitstatus), proofs, passed).write(self._path)


def _refuse_the_outside(event, args):
    """An audit hook: a connection to anything but this machine fails the test that tries it."""
    if event != "socket.connect" or not isinstance(args[1], tuple):
        return  # not a connection, or one to a path on this machine
    host = args[1][0]
    if not _is_this_machine(host):
        raise PermissionError(f"A test tried to reach {host}: tests talk to this machine alone.")


def _is_this_machine(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
