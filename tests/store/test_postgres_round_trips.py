"""How often PostgreSQL is asked and waited for: each time delays the start of a job."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import psycopg
import pytest

from tests.service.real_time import Watch, real
from tests.store.postgres_server import postgres_url
from wakeful import Once, Scheduler

pytestmark = pytest.mark.promise("X2")

PAST = datetime(2020, 1, 1, tzinfo=UTC)
#: Once a second a node also looks for what others set for times long past, with these two statements.
LOOK = ("SELECT set_config('enable_indexscan', 'off', true)", "SELECT (SELECT min((SELECT min(due_at")


@pytest.fixture
def transactions(monkeypatch):
    """The statements of every transaction on a writer's thread, each of which is waited for."""
    found, current = [], {}
    run = psycopg.Connection.execute

    def execute(self, query, *arguments, **options):
        if threading.current_thread().name == "wakeful-write":
            if query.startswith("BEGIN"):
                current[self] = []
                found.append(current[self])
            if self in current:  # else it is the first statement of a connection, which sets up its session
                current[self].append(query)
        return run(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    return found


def with_part(transactions, part):
    """The one transaction with this in a statement: the first words of each of its statements, but for the look."""
    (only,) = [each for each in transactions if any(part in statement for statement in each)]
    return [" ".join(statement.split()[:6]) for statement in only if not statement.startswith(LOOK)]


@real
async def test_a_job_is_added_with_three_statements_and_claimed_by_another_node_with_four(transactions):
    url = postgres_url()
    async with Scheduler(url, node="one") as node, Scheduler(url) as other:
        node.on_job_due("work", lambda run: None)
        await node.start()
        first = Watch(node)
        await node.add_job("first", Once(PAST), kind="work")  # from here on the node knows a floor
        await first.finished()
        done = len(transactions)
        second = Watch(node)
        await other.add_job("second", Once(PAST), kind="work")
        await second.finished()
        later = transactions[done:]
    added, claimed = with_part(later, "INSERT INTO jobs"), with_part(later, "INSERT INTO runs")
    assert len(added) == 3, added
    assert len(claimed) == 4, claimed
