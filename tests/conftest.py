"""What holds for every test: promises are recorded, properties repeat, and nothing leaves this machine."""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

from tools.promises import read_promises

# The same examples on every run, so that red stays red; `--hypothesis-profile=search` looks for new ones.
settings.register_profile("repeat", derandomize=True, deadline=None, database=None, max_examples=100)
settings.register_profile("repeat-ci", settings.get_profile("repeat"), max_examples=40)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("repeat-ci" if os.environ.get("CI") else "repeat")

WORKERS_PER_CORE, MOST_WORKERS = 2, 8


def pytest_addoption(parser):
    parser.addoption("--promises-json", metavar="PATH", help="write what became of the tests of each promise to PATH")


def pytest_configure(config):
    in_a_worker = hasattr(config, "workerinput")  # it reports to the process that started it, and only that one writes
    path = None if in_a_worker else config.getoption("--promises-json")
    config.pluginmanager.register(PromiseRecorder(path), "promise-recorder")
    sys.addaudithook(_refuse_the_outside)
    # A shell ignores Ctrl-C for what it starts in the background, and so would all programs that tests start and stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Several processes for the whole suite, most of which waits; none for a part of it, which they would delay."""
    whole = [Path(__file__).parent, Path(__file__).parents[1]]
    asked_for = [Path(config.invocation_params.dir, argument).resolve() for argument in config.args]
    a_part = config.option.keyword or config.getoption("lf", default=False) or not all(x in whole for x in asked_for)
    if a_part or config.option.collectonly:
        return 0
    return min(MOST_WORKERS, WORKERS_PER_CORE * (os.cpu_count() or 1))


def pytest_collection_finish():
    """Thousands of tests stay in memory to the end: no collection of garbage need look at them again."""
    gc.collect()
    gc.freeze()


class PromiseRecorder:
    """Knows which promise each test carries, and what became of it: anything but three passed phases is no pass."""

    def __init__(self, path):
        self._path = path
        self._ids = {}  # by test, as its report says them: it may have run in another process
        self._outcomes = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        known = read_promises()
        for item in items:
            ids = [name for mark in item.iter_markers("promise") for name in mark.args]
            if unknown := [name for name in ids if name not in known]:
                raise pytest.UsageError(f"{item.nodeid} carries {unknown[0]!r}, which docs/promises.md does not list.")
            item.user_properties.append(("promises", ids))

    def pytest_runtest_logreport(self, report):
        self._ids[report.nodeid] = dict(report.user_properties).get("promises", [])
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish(self):
        if self._path is None:
            return
        proofs = defaultdict(list)
        for test, outcome in self._outcomes.items():
            for name in self._ids[test]:
                proofs[name].append({"test": test, "outcome": outcome})
        Path(self._path).write_text(json.dumps(proofs), encoding="utf-8")


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
