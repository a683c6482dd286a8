"""Threads that were cut off on a node that has stopped are waited for as long as its process may live."""

from __future__ import annotations

import json
import os

import psycopg
import pytest

from tests.workflows.mailroom import Mailroom, fails, virtual
from tests.workflows.mailroom import publish as publish_mail
from wakeful import Scheduler
from wakeful.domains.workflows.tables import WorkflowVerbs


@pytest.fixture
def room(postgres_scene):
    return Mailroom(postgres_scene)


def lives_on(url, name):
    """As if the process of that node were another one that is still there."""
    with psycopg.connect(url, autocommit=True) as connection:
        (details,) = connection.execute("SELECT details FROM nodes WHERE name = %s", (name,)).fetchone()
        changed = json.dumps({**json.loads(details), "pid": os.getppid()})
        connection.execute("UPDATE nodes SET details = %s WHERE name = %s", (changed, name))


async def left_there(room, scheduler, run_id):
    """A node has stopped, and a thread of that run works on in its process."""
    other = Scheduler(room.url, clock=room.clock, node="there", seed=99, tuning=room.tuning)
    await other.open()
    await other.start()

    def cut_off_there(tx, context):
        node = tx.nodes.named("there").id
        tx.of(WorkflowVerbs).change("mailroom", tx.now, working_run=run_id, working_node=node, working_since=tx.now)

    await scheduler.transact(cut_off_there)
    await other.close()
    lives_on(room.url, "there")


@pytest.mark.promise("K11", "X2")
@virtual
async def test_a_thread_of_a_node_that_stopped_is_waited_for_while_its_process_lives_for_lease_and_timeout(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await left_there(room, scheduler, 1)
        await publish_mail(scheduler, "a")
        await room.sleep("5m")
        assert room.ledger == []
        await room.sleep("1m")
        assert room.ledger == ["a"]


@pytest.mark.promise("K11", "X2")
@virtual
async def test_a_person_may_say_what_became_of_a_change_whose_node_has_stopped(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        room.act["mutate"] = fails(ValueError("cut off"))
        await publish_mail(scheduler, "a")
        await room.sleep("1s")
        issue = (await scheduler.workflows.get("mailroom"))["issue"]
        await left_there(room, scheduler, (await room.attempts(scheduler))[-1].id)
        await scheduler.workflows.settle("mailroom", issue["run"], "did_not_happen")
        await room.sleep("1m")
        assert room.ledger == ["a"]
