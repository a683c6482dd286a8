"""What listings and counts cost on SQLite, in its own machine steps: the same however many jobs are stored."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, OpenStore, job, run
from wakeful.clock import ManualClock
from wakeful.domains.agents.inbound.tables import InboundRequests
from wakeful.store.jobs import JobFilter

FEW, MANY = 200, 4000
ASKED = {
    "counts": lambda tx: tx.jobs.counts(),
    "what will start": lambda tx: tx.jobs.armed(50, ("delivery",)),
    "what starts next": lambda tx: tx.jobs.soonest(3),
    "when to look again": lambda tx: (tx.jobs.next_alarm(), tx.jobs.overdue(NOW)),
    "first page": lambda tx: tx.jobs.matching(JobFilter(limit=20)),
    "a later page": lambda tx: tx.jobs.matching(JobFilter(limit=20, after="job-1")),
    "running": lambda tx: tx.jobs.matching(JobFilter(status="running", limit=20)),
    "waiting for a person": lambda tx: tx.jobs.matching(JobFilter(status="waiting", limit=20)),
    "done": lambda tx: tx.jobs.matching(JobFilter(status="done", limit=20)),
    "declared in code": lambda tx: tx.jobs.declared(),
    "what may be forgotten": lambda tx: tx.jobs.finished(NOW, (0, 0), 100, 20),
    "paused": lambda tx: tx.jobs.matching(JobFilter(status="paused", limit=20)),
    "disabled": lambda tx: tx.jobs.matching(JobFilter(status="disabled", limit=20)),
    "disabled of a kind": lambda tx: tx.jobs.matching(JobFilter(status="disabled", kind="rare", limit=20)),
    "kind": lambda tx: tx.jobs.matching(JobFilter(kind="rare", limit=20)),
    "owner": lambda tx: tx.jobs.matching(JobFilter(owner="ada", limit=20)),
    "source": lambda tx: tx.jobs.matching(JobFilter(source="cli", limit=20)),
    "of a kind, counted": lambda tx: tx.jobs.count(JobFilter(kind="rare")),
    "all, counted": lambda tx: tx.jobs.count(JobFilter()),
    "schedules that hear chats": lambda tx: tx.of(InboundRequests).chat_jobs(None),
    "open runs and alerts": lambda tx: (tx.runs.open_counts(), tx.alerts.count_open()),
}


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """How many machine steps each question takes, in tens, by how many jobs there are."""
    found = {}
    for count in (FEW, MANY):
        path = tmp_path_factory.mktemp("cost") / "wakeful.db"
        with OpenStore(f"sqlite:///{path}", ManualClock(), inline=True) as store:
            store.add(*special(), *(job(n, due_at=NOW + n, next_at=NOW + n) for n in range(100, 100 + count)))
            store.write(lambda tx: tx.runs.add(open_runs()))
            found[count] = {name: cost(store, ask) for name, ask in ASKED.items()}
    return found


def open_runs():
    return [run(7, 1, status="active"), run(8, 8, status="waiting", phase="approval")]


def special():
    """A few jobs of each sort; all others are idle and alike."""
    return (
        job(1, run_id=7),
        job(2, paused=1),
        job(3, enabled=0, kind="rare"),
        job(4, kind="rare", owner="ada"),
        job(5, source="cli"),
        job(6, parked="lane", ready_at=NOW),
        job(7, removed_at=NOW, enabled=0),
        job(8, run_id=8),
        job(9, trigger="once", enabled=0, ended_at=NOW - 1),
    )


def cost(store, ask):
    taken = [0]
    connection = store.store._writer
    connection.set_progress_handler(lambda: taken.__setitem__(0, taken[0] + 1), 2)
    store.write(ask)
    connection.set_progress_handler(None, 0)
    return taken[0]


@pytest.mark.promise("X24")
@pytest.mark.parametrize("name", ASKED)
def test_a_question_costs_its_answer_and_not_all_jobs(steps, name):
    assert 0 < steps[MANY][name] <= steps[FEW][name] + 100, "hundreds of machine steps more: it walks over idle jobs"
