"""What is said about a workflow holds at that moment: what runs, what is tried again, and what an error was."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.workflows.mailroom import UNKNOWN, fails, publish, virtual
from wakeful import ApprovalNeeded, Every, ScheduleTriggerError, TransientError
from wakeful.domains.workflows import views
from wakeful.kernel.actions import pausing


async def said(scheduler, ref="mailroom.append"):
    return str(await scheduler.explain(ref))


async def shown(scheduler):
    return await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))


async def begin(room, scheduler, **acts):
    await scheduler.start()
    await room.sleep("1m")
    room.act.update(acts)
    await publish(scheduler, "a")
    await room.sleep("1s")


async def open_alerts(scheduler):
    return [alert for alert in await scheduler.list_alerts() if alert.closed_at is None]


@pytest.mark.promise("X3", "K16")
@virtual
async def test_a_wake_time_that_lies_ahead_has_not_come(room):
    async with room.open() as scheduler:
        room.wake_at = (room.now + timedelta(hours=3)).isoformat()
        await begin(room, scheduler)
        about = await said(scheduler)
        assert "it asked to be woken then." in about
        assert "came" not in about.partition("waits to start at")[2].splitlines()[0]
        room.wake_at = None
        await room.sleep("3h")
        assert "because it asked to be woken then, and ended as success." in await said(scheduler)


@pytest.mark.promise("K4", "X3")
@virtual
async def test_a_start_before_the_wake_time_is_said_to_be_for_the_event_that_came(room):
    async with room.open() as scheduler:
        room.wake_at = (room.now + timedelta(hours=3)).isoformat()
        await begin(room, scheduler)
        await publish(scheduler, "b")
        await room.sleep("1s")
        about = await said(scheduler)
        assert "because an event came, and ended as success." in about
        assert "waits to start at 2026-01-01 03:00:00 UTC: it asked to be woken then." in about
        await scheduler.workflows.pause("mailroom")
        await publish(scheduler, "c")
        await scheduler.workflows.resume("mailroom")
        await room.sleep("1s")
        assert "woken then, and ended" not in await said(scheduler)


@pytest.mark.promise("X3", "K16")
@virtual
async def test_a_handler_that_runs_is_not_said_to_be_stuck(room):
    async with room.open() as scheduler:
        room.verdict = UNKNOWN
        await begin(room, scheduler, mutate=fails(ValueError("lost")), reconcile=lambda _: room.sleep("10s"))
        about = await said(scheduler)
        assert "It is running now" in about
        assert "cannot continue" not in about
        others = await said(scheduler, "mailroom.poll")
        assert "its workflow is finding out whether the last change happened." in others
        assert "cannot continue" not in others


@pytest.mark.promise("K12", "K16")
@virtual
async def test_an_error_whose_message_is_only_a_value_is_shown_with_its_type(room):
    async with room.open() as scheduler:
        await begin(room, scheduler, prepare=fails(KeyError("subject")))
        issue = (await shown(scheduler))["issue"]
        assert issue["message"].startswith("The code of append failed: KeyError: 'subject'. ")
        [alert] = await open_alerts(scheduler)
        assert alert.message == "mailroom needs attention: KeyError: 'subject'"
        [run, *_] = await scheduler.get_run_log("mailroom.append", 1)
        assert (run.error_type, run.error) == ("KeyError", "KeyError: 'subject'")
        assert "ended as error after 0 ms: KeyError: 'subject'." in await said(scheduler, run.id)


@pytest.mark.promise("K11", "K16")
@virtual
async def test_a_handler_that_waits_to_be_settled_says_so_when_it_is_to_be_run(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await begin(room, scheduler, mutate=fails(ValueError("lost")))
        run = (await shown(scheduler))["issue"]["run"]
        settle = f"wakeful workflow settle mailroom {run} happened"
        with pytest.raises(ScheduleTriggerError, match=f"whether its last change happened is not known: {settle}"):
            await scheduler.run_job("mailroom.append")


@pytest.mark.promise("K16", "X8")
@virtual
async def test_what_was_approved_while_nothing_runs_is_said_to_be_approved(room):
    async with room.open() as scheduler:
        await begin(room, scheduler, mutate=fails(ApprovalNeeded("Go?")))
        run = (await shown(scheduler))["issue"]["run"]
        await scheduler.stop()
        await scheduler.workflows.approve("mailroom", run)
        assert (await shown(scheduler))["issue"]["message"] == "Trying again soon: a person approved it."
        await scheduler.start()
        await room.sleep("1s")
        assert (room.ledger, (await shown(scheduler))["issue"]) == (["a"], None)


@pytest.mark.promise("K16")
@virtual
async def test_what_is_just_tried_again_is_said_to_be_tried_now(room):
    async with room.open() as scheduler:
        await begin(room, scheduler, prepare=fails(TransientError("busy")))
        assert (await shown(scheduler))["issue"]["message"] == "Trying again soon: busy."
        room.act["prepare"] = lambda _: room.sleep("20s")
        await room.sleep("15s")
        found = await shown(scheduler)
        assert (found["status"], found["issue"]["message"]) == ("running", "Trying again now: busy.")


@pytest.mark.promise("K13", "K16")
@pytest.mark.parametrize("stop", ["pause_job", "disable_job"])
@virtual
async def test_a_backoff_whose_job_is_switched_off_is_an_alert_and_not_said_to_go_on_soon(room, stop):
    async with room.open() as scheduler:
        await begin(room, scheduler, prepare=fails(TransientError("busy"), 2))
        assert (await shown(scheduler))["issue"]["message"] == "Trying again soon: busy."
        await scheduler.transact(lambda tx, context: getattr(pausing, stop)(tx, context, "mailroom.append"))
        found = await shown(scheduler)
        how = "paused" if stop == "pause_job" else "disabled"
        words = f"busy. It is not tried again: mailroom.append is {how}. Resume it (wakeful resume mailroom.append)."
        assert (found["status"], found["issue"]["message"]) == ("needs_attention", words)
        assert found["issue"]["actions"] == [], "resuming the workflow would not help"
        assert f"its workflow cannot continue: busy. It is not tried again: mailroom.append is {how}" in await said(
            scheduler, "mailroom.poll"
        )
        await room.sleep("3m")
        [alert] = await open_alerts(scheduler)
        assert (alert.key, alert.times) == ("workflow:mailroom", 1)
        assert alert.message == f"mailroom needs attention: {words}"
        await scheduler.resume_job("mailroom.append")
        await room.sleep("1m")
        assert room.ledger == ["a"]
        assert ((await shown(scheduler))["issue"], await open_alerts(scheduler)) == (None, [])


@pytest.mark.promise("X20")
@virtual
async def test_so_is_the_error_of_any_job(room):
    async def act(run):
        raise KeyError("subject")

    room.scene.act = act
    async with room.scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await room.sleep("61m")
        assert (await scheduler.get_job("a")).last_error == "KeyError: 'subject'"


@pytest.mark.promise("K11", "K16")
@virtual
async def test_a_change_about_which_reconcile_is_asked_again_is_not_only_left_to_a_person(room):
    room.mails, room.verdict = ["a"], UNKNOWN
    room.after["mutate"] = fails(RuntimeError("cut"))
    asked, left = (
        "(mutate failed: cut). Wakeful tries to find out; you may settle it meanwhile.",
        "Look, and settle it.",
    )
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        seen = await shown(scheduler)
        assert seen["issue"]["message"].endswith(asked)
        about = await said(scheduler)
        assert "whether the last change happened (mutate failed: cut)" in about
        assert "cannot continue" not in about
        coming = {one["name"]: one["next_run_at"] for one in seen["handlers"]}
        assert coming["append"] is not None
        assert coming["poll"] is None
        with pytest.raises(ScheduleTriggerError, match="Wakeful tries to find out"):
            await scheduler.workflows.run("mailroom")
        await room.act_on(scheduler, "pause", who="Ada")
        assert (await shown(scheduler))["issue"]["message"].endswith(left)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("20m")
        assert (await shown(scheduler))["issue"]["message"].endswith(left)
        assert room.phases().count("reconcile") == 5
