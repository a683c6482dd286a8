"""Buttons under a message: what each does, who may press it, and that it works once.

A message has buttons if it is stored with `Post(..., extra={"buttons": [button("approve", "run_…"), ...]})`. A press
names the message and the place of the button in it; everything else is looked up, because a press is a stranger's text.

Actions: `approve` and `reject` (a run), `acknowledge` (an alert), `pause` (a job). A domain adds others, such as
`snooze`, or replaces these, with `buttons` of its `Domain`: `{"snooze": "wakeful.alerts.buttons:snooze"}`, each a
function `(tx, context, pressed: Button, by: str) -> str` that does it and returns one sentence about it. What it raises
as a SchedulerError is the answer to the press, and nothing of it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.delivery.chat.tables import Chats, PressRow
from wakeful.delivery.tables import DeliveryRow, Outbox
from wakeful.domains import domains
from wakeful.errors import AlertNotFound, SchedulerError
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions.pausing import pause_all
from wakeful.kernel.actions.recording import Origin, on_record
from wakeful.kernel.actions.recording import acknowledge as record_acknowledgement
from wakeful.kernel.actions.runs import approve_run, reject_run
from wakeful.kernel.domain import load

if TYPE_CHECKING:
    from wakeful.delivery.chat.tables import Person
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

MAY_PRESS = ("operator", "admin")
#: Where one of them was pressed, the other is gone too.
EITHER = frozenset({"approve", "reject"})
GONE = "This button is no longer valid."


class Button(NamedTuple):
    """What is under a message: an action, and what it is done to."""

    action: str
    on: str  # a run's, alert's or job's id, or a job's name
    label: str
    more: Mapping[str, Any]


Action = Callable[["Transaction", "Context", Button, str], str]


class Press(NamedTuple):
    """What a press came to: the answer, and the buttons that the message keeps, None where all stay."""

    said: str
    left: list[list[dict[str, str]]] | None = None


class NotPressed(SchedulerError):
    """A press that does not count; the message is the answer to it."""


def button(action: str, on: str, label: str | None = None, **more: Any) -> dict[str, Any]:
    """A button for `extra={"buttons": [...]}`; `on` is the id of what it acts on, or a job's name."""
    return {"action": action, "on": on, **({"label": label} if label is not None else {}), **more}


def buttons_of(extra: Mapping[str, Any] | None) -> list[Button]:
    """The buttons a message is stored with; what is none is left out."""
    about = (extra or {}).get("alert")
    of_alert = about.get("buttons") if isinstance(about, Mapping) else None  # those of whoever opened the incident
    found = [one for some in (of_alert, (extra or {}).get("buttons")) if isinstance(some, list) for one in some]
    given = [item for item in found if isinstance(item, Mapping)]
    return [
        Button(item["action"], str(item.get("on", "")), str(item.get("label") or item["action"].capitalize()), item)
        for item in given
        if isinstance(item.get("action"), str)
    ]


def keyboard(delivery: str, buttons: list[Button], without: frozenset[int] = frozenset()) -> list[list[dict[str, str]]]:
    """One row of buttons as chats show them: a label and what a press sends back, which has 64 bytes at most."""
    row = [
        {"text": one.label[:40], "callback_data": f"{index}:{delivery}"}
        for index, one in enumerate(buttons)
        if index not in without
    ]
    return [row[at : at + 3] for at in range(0, len(row), 3)]


def press(tx: Transaction, context: Context, person: Person | None, connector: str, data: str) -> Press:
    """Do what a button says, once; NotPressed or another SchedulerError where it does not count."""
    if person is None:
        raise NotPressed("Not allowed.")
    place, _, text = data.partition(":")
    parsed = ids.decode(text)
    row = tx.of(Outbox).get(parsed[1]) if parsed is not None and parsed[0] == "dlv" else None
    if row is None or row.connector != connector or row.recipient not in (None, person.sender):
        raise NotPressed(GONE)
    buttons = buttons_of(json.loads(row.extra) if row.extra is not None else None)
    if not place.isascii() or not place.isdigit() or len(place) > 3 or int(place) >= len(buttons):
        raise NotPressed(GONE)
    if person.role not in MAY_PRESS:
        raise NotPressed(f"Your role is {person.role}: this needs {MAY_PRESS[0]}.")
    return _press_once(tx, context, person, row, (int(place), buttons))


def _press_once(
    tx: Transaction, context: Context, person: Person, row: DeliveryRow, chosen: tuple[int, list[Button]]
) -> Press:
    index, buttons = chosen
    chats = tx.of(Chats)
    before = chats.presses(row.id)
    if index in before:
        return Press(before[index].said, _left(row, buttons, before))
    one = buttons[index]
    action = actions().get(one.action)
    if action is None:
        raise NotPressed(GONE)
    said = load(action)(tx, context, one, f"{person.name or person.sender} ({row.connector})")
    pressed = PressRow(row.id, index, person.sender, tx.now, said)
    chats.add_press(pressed)
    return Press(said, _left(row, buttons, {**before, index: pressed}))


def _left(row: DeliveryRow, buttons: list[Button], pressed: Mapping[int, PressRow]) -> list[list[dict[str, str]]]:
    gone = set(pressed)
    if any(buttons[index].action in EITHER for index in pressed if index < len(buttons)):
        gone |= {index for index, one in enumerate(buttons) if one.action in EITHER}
    return keyboard(ids.encode("dlv", row.id), buttons, frozenset(gone))


# -- what they do ------------------------------------------------------------------------------------------------------


def approve(tx: Transaction, context: Context, pressed: Button, by: str) -> str:
    approve_run(tx, context, lookup.require_run(pressed.on), by)
    return "Approved."


def reject(tx: Transaction, context: Context, pressed: Button, by: str) -> str:
    note = pressed.more.get("note")
    reject_run(tx, context, lookup.require_run(pressed.on), by, note if isinstance(note, str) else None)
    return "Rejected."


def pause(tx: Transaction, context: Context, pressed: Button, by: str) -> str:
    pair = lookup.find_job(tx, pressed.on)
    on_record(tx, _origin(context, by), "pause", [pair], lambda: pause_all(tx, context, [pair], f"by {by}"))
    return f"{pair[0].name} is paused."


def acknowledge(tx: Transaction, context: Context, pressed: Button, by: str) -> str:
    number = ids.alert_number(pressed.on)
    if number is None or tx.journal.alert(number) is None:
        raise AlertNotFound(f"There is no alert {pressed.on!r:.60}.")
    record_acknowledgement(tx, number, _origin(context, by))
    return "Acknowledged."


def _origin(context: Context, by: str) -> Origin:
    return Origin(by, "chat", context.new_id())


_HERE = "wakeful.delivery.chat.buttons"
OWN = {name: f"{_HERE}:{name}" for name in ("approve", "reject", "pause", "acknowledge")}


def actions() -> Mapping[str, str]:
    """Every action there is and the function behind it; what other domains declare takes precedence."""
    found = dict(OWN)
    for domain in domains():
        found |= domain.buttons
    return found
