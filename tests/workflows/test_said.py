"""What people read about events, inputs and what they did to a workflow is what happened."""

from __future__ import annotations

from functools import partial

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_failures import ask_a_person
from tests.workflows.test_runs import publish
from wakeful import Every, ScheduleTriggerError, TransientError, ids
from wakeful.domains.workflows import views
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.input_actions import skip
from wakeful.domains.workflows.topics.explanation import explain_event, explain_input
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.words import still_waits
from wakeful.errors import InvalidJob, NotFound
from wakeful.kernel.actions import authorized
from wakeful.kernel.context import Rights
from wakeful.triggers.moments import spoken


async def shown(scheduler):
    return await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))


async def event_of(scheduler, message_id):
    found = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "mail", None, None, 9))
    return ids.encode("evt", next(one.id for one in found if one.message_id == message_id))


async def about(scheduler, explained, ref):
    return (await scheduler.read(lambda tx: explained(tx, ref, spoken))).sentences


async def skipped(scheduler, ref):
    return await scheduler.transact(lambda tx, context: skip(tx, context, "mailroom", ref, reason="spam", who="Ada"))


@pytest.mark.promise("K16")
@virtual
async def test_an_event_and_an_input_are_explained(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        event = await event_of(scheduler, "a")
        [row] = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        item = ids.encode("inp", row.id)
        first, by, cause, end = await about(scheduler, explain_event, event)
        assert first == f"{event} is message 'a' in the topic mail of the workflow mailroom."
        assert by.startswith("It was published by run_")
        assert cause == f"Its input is {item}."
        assert "consumed it at" in end
        said = await about(scheduler, explain_input, item)
        assert said[0] == f"{item} is an input of the workflow mailroom: mail a from imap (Mail a)."
        assert f"It caused {event} in mail, which is consumed." in said
        await room.act_on(scheduler, "pause", who="Ada")
        await publish(scheduler, "b")
        waits = await about(scheduler, explain_event, await event_of(scheduler, "b"))
        assert waits[2:] == [
            "It is pending: mailroom.append works on it when prepare reserves it.",
            "Its workflow is paused: this waits until it is resumed (wakeful workflow resume mailroom).",
        ]
        await skipped(scheduler, await event_of(scheduler, "b"))
        assert (await about(scheduler, explain_event, await event_of(scheduler, "b")))[-1].endswith(": spam.")
        for explained in (explain_event, explain_input):
            with pytest.raises(NotFound, match="There is no"):
                await about(scheduler, explained, "evt_nothing")


@pytest.mark.promise("K16")
@virtual
async def test_an_input_with_nothing_left_to_skip_is_not_skipped(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        [row] = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        item = ids.encode("inp", row.id)
        with pytest.raises(ScheduleTriggerError, match="is done already: nothing more happens to it"):
            await skipped(scheduler, item)
        assert (await shown(scheduler))["actions"] == []


@pytest.mark.promise("K16")
@virtual
async def test_a_change_that_a_person_skipped_is_listed_as_one_of_which_nobody_knows_whether_it_was_done(room):
    room.reconciles = False
    room.act["mutate"] = fails(ValueError("cut off"))
    async with room.open() as scheduler:
        await scheduler.start()
        await publish(scheduler, "a")
        await room.sleep("1m")
        issue = (await shown(scheduler))["issue"]
        await room.act_on(scheduler, "settle", issue["run"], "skip", who="Ada")
        await room.sleep("1m")
        assert (await shown(scheduler))["recent"][0]["text"] == (
            "Add 1 rows (a person skipped it: it is not known whether it was done)"
        )


@pytest.mark.promise("K16")
@virtual
async def test_a_workflow_that_waits_for_a_person_has_no_next_check_and_resuming_it_says_so(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert "Next check" in (await shown(scheduler))["schedule"]
        assert still_waits(await room.row(scheduler)) is None
        room.act["mutate"] = ask_a_person
        await publish(scheduler, "a")
        await room.sleep("1s")
        found = await shown(scheduler)
        assert found["schedule"] == "Checks 5 minutes after the last run ends."
        assert [one["next_run_at"] for one in found["handlers"]] == [None, None]
        await room.act_on(scheduler, "resume", who="Ada")
        words = "It cannot continue: Waiting for your approval: Add a row? (wakeful workflow show mailroom)."
        assert still_waits(await room.row(scheduler)) == words


@pytest.mark.promise("K16")
@virtual
async def test_pausing_or_draining_a_workflow_again_is_no_second_action(room):
    async with room.open() as scheduler:
        await scheduler.start()
        assert await room.act_on(scheduler, "pause", who="Ada", note="holiday") is not None
        assert await room.act_on(scheduler, "pause", who="Ada") is None
        assert (await room.row(scheduler)).pause_note == "holiday"
        assert await room.act_on(scheduler, "pause", who="Ada", note="longer") is None, "it is paused either way"
        found = await shown(scheduler)
        assert [one["action"] for one in found["actions"]] == ["paused", "paused"]
        await room.act_on(scheduler, "resume", who="Ada")
        room.act["prepare"] = fails(TransientError("busy"))
        await publish(scheduler, "a")
        for is_first in (True, False):
            done = await scheduler.transact(lambda tx, context: drain(tx, context, "mailroom", who="Ada"))
            assert (done.paused, done.action is not None) == (False, is_first)
        assert [one["action"] for one in (await shown(scheduler))["actions"]].count("draining") == 1
        await room.act_on(scheduler, "pause", who="Ada")
        with pytest.raises(ScheduleTriggerError, match=r"is paused \(wakeful workflow resume mailroom\)"):
            await scheduler.run_job("mailroom.poll")


@pytest.mark.promise("K16")
@virtual
async def test_a_handler_is_changed_and_removed_with_its_workflow_only(room):
    async with room.open() as scheduler:
        await scheduler.start()
        rights, name = Rights("Ada", admin_kinds=True), "mailroom.append"
        doors = [
            lambda: scheduler.update_job(name, trigger=Every("1h")),
            lambda: scheduler.remove_job(name),
            lambda: scheduler.add_job(name, Every("1h"), kind="other", if_exists="update"),
            lambda: scheduler.transact(partial(authorized.remove_job, ref=name), rights=rights),
        ]
        for door in doors:
            with pytest.raises(InvalidJob, match=f"{name} cannot be changed or removed: it belongs to its workflow"):
                await door()
        assert (await scheduler.get_job(name)).revision == 1
        await publish(scheduler, "a")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K16")
@virtual
async def test_a_run_of_a_workflow_is_shown_with_its_phase(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["mutate"] = ask_a_person
        await publish(scheduler, "a")
        await room.sleep("1s")
        found = await scheduler.get_run_log("mailroom.append", 9)
        assert [(run.status, run.phase) for run in found] == [("waiting", "approval"), ("done", "committed")]
        room.act["mutate"] = fails(ValueError("cut off"))
        await room.act_on(scheduler, "approve", found[0].id, who="Ada")
        await room.sleep("1s")
        assert (await scheduler.get_run_log("mailroom.append", 1))[0].phase == "mutating"
