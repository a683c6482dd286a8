"""Issues of workflows in a chat: the alert has buttons, and a press answers it."""

from __future__ import annotations

import json

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_corrections import Hook, opened, wrong
from wakeful import LogicError, ids
from wakeful.domains.alerts import configure
from wakeful.domains.delivery.chat.buttons import NotPressed, buttons_of, press
from wakeful.domains.delivery.chat.tables import Person
from wakeful.domains.delivery.tables import DeliveryFilter, Outbox
from wakeful.domains.workflows.tables import Workflows

ADA = Person("phone", "1", "operator", "Ada", "code", 0)


async def ready(room, scheduler):
    """Everything goes to a phone that takes it."""

    async def send(message):
        return None

    scheduler.connectors.register("phone", send)
    await configure(scheduler, to="phone")
    await scheduler.start()
    await room.sleep("5m")


async def messages(scheduler):
    """The alerts with buttons: the row, and the buttons by their label."""
    rows = await scheduler.read(lambda tx: tx.of(Outbox).matching(DeliveryFilter()))
    found = [(row, buttons_of(json.loads(row.extra))) for row in rows if row.extra is not None]
    return [(row, {one.label: at for at, one in enumerate(buttons)}) for row, buttons in found if buttons]


async def pressed(scheduler, label, person=ADA):
    row, labels = next((row, labels) for row, labels in await messages(scheduler) if label in labels)
    data = f"{labels[label]}:{ids.encode('dlv', row.id)}"
    return (await scheduler.transact(lambda tx, context: press(tx, context, person, "phone", data))).said


@pytest.mark.promise("K11", "X8")
@pytest.mark.parametrize(
    ("label", "verdict", "ledger"), [("It happened", "happened", ["a"]), ("It did not", "did_not_happen", ["a", "a"])]
)
@virtual
async def test_an_uncertain_change_is_settled_by_a_press(room, label, verdict, ledger):
    room.mails, room.reconciles = ["a"], False
    room.after["mutate"] = fails(RuntimeError("cut"))
    async with room.open() as scheduler:
        await ready(room, scheduler)
        viewer = ADA._replace(role="viewer")
        with pytest.raises(NotPressed, match="needs operator"):
            await pressed(scheduler, label, viewer)
        assert (await pressed(scheduler, label)).startswith("Settled: it")
        await room.sleep("1m")
        assert room.ledger == ledger
        assert await room.events(scheduler) == {"a": "consumed"}
        [done] = await scheduler.read(lambda tx: tx.of(Workflows).actions("mailroom", 9))
        assert (done.who, done.action, done.detail) == ("Ada (phone 1)", "settled", verdict)


@pytest.mark.promise("K12")
@virtual
async def test_code_that_failed_is_tried_again_by_a_press(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(LogicError("wrong"))
    async with room.open() as scheduler:
        await ready(room, scheduler)
        assert await pressed(scheduler, "Try again") == "mailroom tries again."
        await room.sleep("1m")
        assert room.ledger == ["a"]


@pytest.mark.promise("K12")
@virtual
async def test_a_correction_is_deployed_by_a_press(room):
    room.mails, hook = ["a"], Hook(room)
    wrong(room, "prepare")
    async with opened(room, hook, apply=False) as scheduler:
        await ready(room, scheduler)
        assert await pressed(scheduler, "Deploy it") == "The correction is being deployed."
        await room.sleep("1m")
        assert room.ledger == ["a"]
