"""A program that runs jobs loads what runs jobs: the rest is loaded when it is used."""

from __future__ import annotations

import importlib
import re

import pytest

import wakeful
from tests.house.test_standard_library_alone import PROGRAM, run_python

LOADED = """
print(*sorted(name.removeprefix("wakeful.") for name in sys.modules if name.startswith("wakeful.")))
"""
#: What people ask for, what only a server does, and the engine of a trigger that the program does not have.
FOR_PEOPLE = {
    "kernel.actions.authorized", "kernel.actions.tokens", "kernel.actions.undoing", "kernel.rules.ledger",
    "kernel.rules.verdict", "kernel.views.actions", "kernel.views.explain", "kernel.views.history",
    "kernel.views.ledger", "kernel.views.records", "kernel.views.slots", "kernel.views.verdict_facts",
    "kernel.views.statistics",
}  # fmt: skip
FOR_OTHERS = {
    "scheduler.callbacks", "scheduler.loop_thread", "scheduler.server_side", "sync", "testing",
    "triggers.cron.days", "triggers.cron.fields", "triggers.cron.timetable", "triggers.cron.words",
}  # fmt: skip
#: What runs jobs, and nothing that adds or lists them.
FOR_RUNNING = {"kernel.loop.loop", "kernel.loop.handlers", "kernel.loop.sweep", "kernel.cluster.membership"}
#: The first file of a domain declares it, and is loaded with the first scheduler.
ROOMS = re.compile(r"(domains\.\w+|surfaces|config|console|routing)\.")
DECLARED = {
    "domains.agents.agent",
    "domains.agents.inbound",
    "domains.agents.naming",
    "domains.delivery.post",
    "domains.workflows.admission",
    "domains.workflows.timing",
}


def loaded(program):
    return set(run_python(program + LOADED).splitlines()[-1].split())


def test_importing_wakeful_loads_its_errors_and_its_version():
    assert loaded("import wakeful") == {"errors", "version"}


def test_a_program_that_runs_a_job_loads_nothing_that_explains_lists_or_serves():
    found = loaded(PROGRAM)
    assert found & (FOR_PEOPLE | FOR_OTHERS) == set()
    assert {name for name in found if ROOMS.match(name)} - DECLARED == set()


@pytest.mark.parametrize("words", [["list"], ["status"], ["add", "two", "--every", "1h", "--", "true"]])
def test_a_short_command_loads_neither_the_engine_nor_what_agents_are(tmp_path, words):
    store = ["--db", str(tmp_path / "w.db")]
    first = [*store, "add", "one", "--every", "1h", "--", "true"]
    run_python(f"from wakeful.surfaces.cli import main\nassert main({first}) == 0\n")
    found = loaded(f"from wakeful.surfaces.cli import main\nassert main({[*store, *words]}) == 0\n")
    assert found & (FOR_RUNNING | {"domains.agents.runners", "triggers.sentences.reading"}) == set()
    assert "scheduler.core" in found


def test_every_module_named_here_is_one():
    for name in sorted(FOR_PEOPLE | FOR_OTHERS | FOR_RUNNING | DECLARED):
        assert importlib.import_module(f"wakeful.{name}")


def test_every_public_name_is_found_where_the_table_says_and_no_other_is_offered():
    assert {name for name in wakeful.__all__ if not hasattr(wakeful, name)} == set()
    assert set(wakeful.__all__) <= set(dir(wakeful))
    assert not hasattr(wakeful, "nonsense")
