"""What commands cost, counted in the database's own machine steps: the same however many jobs are stored."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.test_front import EXPECTED
from tests.service.cost import Steps
from tests.store.samples import NOW, OpenStore, job, run
from wakeful.surfaces.cli import main
from wakeful.testing import VirtualClock

FEW, MANY = 1_500, 6_000  # the fewer are more than any command looks at
#: Deeper trees cost some steps; a walk over the other jobs would cost two or more for each.
SLACK = 3_000
DONE, FOUND_SOMETHING, NOT_FOUND = 0, 1, 3
COMMANDS = [
    ["status"],
    ["status", "--json"],
    ["doctor"],
    ["next"],
    ["next", "-n", "3"],
    ["list"],
    ["list", "--status", "paused"],
    ["list", "--status", "done"],
    ["list", "--kind", "rare"],
    ["list", "--json", "--limit", "20"],
    ["runs"],
    ["runs", "job-60"],
    ["show", "job-60"],
    ["explain", "job-60"],
    ["logs", "job-60"],
    ["approvals"],
    ["alert", "list"],
    ["node", "list"],
    ["token", "list"],
    ["connector", "list"],
    ["delivery", "list"],
    ["agent", "list"],
    ["request", "list"],
    ["ledger", "job-60"],
    ["workflow", "list"],
    ["add", "new", "--every", "1h", "--", "true"],
    ["edit", "job-60", "--timeout", "5m"],
    ["pause", "job-60"],
    ["resume", "job-2"],
    ["run", "job-4"],
    ["remove", "job-60"],
    ["undo"],
]
#: Those that need more than a store, or do something to all of it.
OTHERS = {
    "apply", "approve", "backup", "cancel", "check", "completion", "copy", "demo", "init", "link", "plan", "reject",
    "export", "forecast", "import", "mcp", "service", "simulate", "skill",
    "restore",
    "retry", "schema", "serve", "work",
}  # fmt: skip


def stock(path, jobs):
    with OpenStore(f"sqlite:///{path}", VirtualClock(), inline=True) as store:
        special = [job(1, "job-1", kind="rare"), job(2, "job-2", paused=1), job(3, "job-3", enabled=0, ended_at=NOW)]
        special.append(job(4, "job-4", kind="command", payload='{"argv": ["true"]}'))
        store.add(*special, *(job(n, due_at=4 * NOW + n, next_at=4 * NOW + n) for n in range(5, jobs + 1)))
        store.add_runs(*(run(n, n, outcome="success") for n in range(5, jobs + 1)))


@pytest.fixture(scope="module")
def stocks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stocks")
    for jobs in (FEW, MANY):
        stock(folder / f"{jobs}.db", jobs)
    return folder


def test_every_command_is_counted_or_named_as_one_that_is_not():
    assert {argv[0] for argv in COMMANDS} | OTHERS == EXPECTED


@pytest.mark.promise("X24")
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_command_costs_the_same_however_many_jobs_are_stored(here, stocks, monkeypatch, capsys, argv):
    steps, found = Steps(monkeypatch), {}
    monkeypatch.setenv("WAKEFUL_DB", str(here / "jobs.db"))
    for jobs in (FEW, MANY):
        shutil.copy(stocks / f"{jobs}.db", here / "jobs.db")
        steps.since_last()
        assert main(argv) in (DONE, FOUND_SOMETHING, NOT_FOUND), capsys.readouterr().err
        found[jobs] = steps.since_last()
    assert 0 < found[MANY] <= found[FEW] * 1.05 + SLACK
