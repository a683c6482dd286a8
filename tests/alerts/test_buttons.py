"""Buttons under alerts in a chat: what a person would do next, once each, no matter who presses."""

from __future__ import annotations

import pytest

from tests.alerts.phones import Phone
from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Manual
from wakeful.domains.alerts import configure
from wakeful.domains.delivery.chat.buttons import NotPressed, actions, buttons_of, press
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.rules import read_rules
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.engine.alerts import close_alert, open_alert

pytestmark = pytest.mark.usefixtures("minutely_sweeps")


class Chat(Phone):
    """A chat in virtual time, with two people in it."""

    type = "telegram"
    allow_from = ("42", "43")

    async def send(self, message):
        await self(message)

    def to(self, sender):
        """The messages one of them got."""
        return [message for message in self.got if message.to == sender]


def labels(message):
    return [one.label for one in buttons_of(message.extra)]


async def pressed(scheduler, message, label, sender="42"):
    """What a press says, and the labels of the buttons that are left."""

    def work(tx, context):
        person = tx.of(Chats).person("bot", sender)
        found = press(tx, context, person, "bot", f"{labels(message).index(label)}:{message.id}")
        return found.said, [one["text"] for row in found.left for one in row]

    return await scheduler.transact(work)


def with_chat(scene, chat, **rules):
    scheduler = scene.scheduler()
    scheduler.connectors.add("bot", chat, read_rules(rules), "code")
    return scheduler


@pytest.mark.promise("X8")
@virtual
async def test_a_run_that_waits_is_answered_by_a_button_in_anybodys_copy_once(scene):
    chat = Chat(scene)
    async with with_chat(scene, chat) as scheduler:
        await configure(scheduler, to="bot")
        await scheduler.add_job("deploy", Manual(), approval=True)
        await scheduler.start()
        run = await scheduler.run_job("deploy")
        await scene.sleep(1)
        (zoes,), (bobs,) = chat.to("42"), chat.to("43")
        assert labels(zoes) == labels(bobs) == ["Approve", "Reject"]
        assert await pressed(scheduler, zoes, "Approve") == ("Approved.", [])
        assert await pressed(scheduler, bobs, "Approve", "43") == ("Approved.", [])
        with pytest.raises(ScheduleTriggerError, match=r"already approved by 42 \(bot\)"):
            await pressed(scheduler, bobs, "Reject", "43")
        await scene.sleep(1)
        assert [found.outcome for found in await scheduler.get_run_log("deploy")] == ["success", "deferred"]
        assert labels(chat.got[-1]) == []  # it is over
        assert (await scheduler.get_run(run)).outcome == "deferred"


@virtual
async def test_a_failing_job_is_acknowledged_paused_and_snoozed_by_buttons_that_work_once_for_all(scene):
    chat = Chat(scene)
    scene.act = failing()
    async with with_chat(scene, chat) as scheduler:
        await configure(scheduler, to="bot", after=1, cooldown="1d")
        await scheduler.add_job("backup", Every("10m"), max_errors=0)
        await scheduler.start()
        await scene.sleep("11m")
        (zoes,), (bobs,) = chat.to("42"), chat.to("43")
        assert labels(zoes) == ["Acknowledge", "Pause", "Snooze 1h"]
        (alert,) = await scheduler.list_alerts()
        begun = scene.now
        assert await pressed(scheduler, zoes, "Snooze 1h") == ("Snoozed for 1h.", ["Acknowledge", "Pause"])
        await scene.sleep("5m")
        assert await pressed(scheduler, bobs, "Snooze 1h", "43") == ("Snoozed for 1h.", ["Acknowledge", "Pause"])
        (alert,) = await scheduler.list_alerts()
        assert (alert.snoozed_until - begun).total_seconds() == 3600  # the second press added nothing
        assert await pressed(scheduler, bobs, "Acknowledge", "43") == ("Acknowledged.", ["Pause"])
        assert await pressed(scheduler, zoes, "Pause") == ("backup is paused.", [])
        (alert,) = await scheduler.list_alerts()
        assert alert.acked_at is not None
        assert (await scheduler.get_job("backup")).status == "paused"


@virtual
async def test_what_cannot_be_paused_has_no_button_for_it_and_what_is_over_cannot_be_snoozed(scene):
    chat = Chat(scene)
    scene.act = failing()
    async with with_chat(scene, chat) as scheduler:
        await configure(scheduler, to="bot", after=1)
        await scheduler.add_job("backup", Manual(), max_errors=1)
        await scheduler.start()
        await scheduler.run_job("backup")
        await scene.sleep(1)
        (disabled,) = chat.to("42")
        assert (disabled.title, labels(disabled)) == ("backup: disabled", ["Acknowledge", "Snooze 1h"])
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
        await scene.sleep(1)
        assert labels(chat.got[-1]) == ["Acknowledge", "Snooze 1h"]
        await scheduler.transact(lambda tx, context: close_alert(tx, context, "clock", "back"))
        assert await pressed(scheduler, chat.to("42")[1], "Snooze 1h") == ("This alert is over.", ["Acknowledge"])
        with pytest.raises(NotPressed):  # it was sent to another person
            await pressed(scheduler, disabled, "Acknowledge", "43")


@pytest.mark.promise("X19")
@virtual
async def test_a_digest_has_the_buttons_of_what_is_still_open(scene):
    chat = Chat(scene)
    scene.act = failing()
    async with with_chat(scene, chat, quiet_hours={"start": "00:00", "end": "07:00", "timezone": "UTC"}) as scheduler:
        await configure(scheduler, to="bot", after=1, cooldown="1d")
        await scheduler.add_job("deploy", Manual(), approval=True)
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
        await scheduler.run_job("deploy")
        await scene.sleep("2h")
        await scheduler.transact(lambda tx, context: close_alert(tx, context, "clock", "back"))
        await scene.sleep("6h")
        (zoes,), (bobs,) = chat.to("42"), chat.to("43")
        assert (zoes.kind, chat.times[0]) == ("digest", at(7))
        assert labels(zoes) == [
            "Approve: deploy", "Reject: deploy", "Acknowledge: backup", "Pause: backup", "Snooze 1h: backup",
        ]  # fmt: skip
        left = ["Acknowledge: backup", "Pause: backup", "Snooze 1h: backup"]
        assert await pressed(scheduler, zoes, "Reject: deploy") == ("Rejected.", left)
        assert await pressed(scheduler, zoes, "Pause: backup") == ("backup is paused.", [left[0], left[2]])
        await scheduler.resume_job("backup")
        assert await pressed(scheduler, bobs, "Pause: backup", "43") == ("backup is paused.", [left[0], left[2]])
        assert (await scheduler.get_job("backup")).status != "paused"  # the second press did nothing


#: Buttons whose press can be undone, and what it is on record as.
UNDOABLE = {"Acknowledge": "acknowledge", "Pause": "pause", "Snooze 1h": "snooze"}
#: And all others: an answer that a person gave is given.
FINAL = {"approve", "reject", "settle", "resume_workflow", "correct_workflow", "leave_workflow"}


@pytest.mark.promise("X27")
@virtual
async def test_every_press_that_can_be_undone_is_on_record_with_who_and_from_where(scene):
    chat, scene.act = Chat(scene), failing()
    async with with_chat(scene, chat) as scheduler:
        await configure(scheduler, to="bot", after=1)
        await scheduler.add_job("backup", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 1))
        message, alert = chat.to("42")[0], (await scheduler.list_alerts())[0]
        for label, what in UNDOABLE.items():
            await pressed(scheduler, message, label)
            (action, *_) = await scheduler.list_actions()
            assert (action.what, action.actor, action.via) == (what, "42 (bot)", "chat")
            await scene.sleep(1)
            assert (await scheduler.undo(action.id)).kept == {}
        assert (await scheduler.list_alerts())[0] == alert
        assert (await scheduler.get_job("backup")).status == "idle"
    assert actions().keys() == set(UNDOABLE.values()) | FINAL
