"""Buttons under a message: what each does, who may press it, and that it works once.

A message has buttons if it is stored with `Post(..., extra={"buttons": [button("approve", "run_…"), ...]})`. A press
names the message and the place of the button in it; everything else is looked up, because a press is untrusted text.
Several people's copies of one message share their buttons, and a digest has those of the messages it combines.

Actions: `approve` and `reject` (a run), `acknowledge` (an alert), `pause` (a job). A domain adds others, as alerts do
with `snooze`, or replaces these, with `buttons` of its `Domain`: `{"snooze": "domains.alerts.buttons:snooze"}`, each a
function `(tx, context, pressed: Button, by: str) -> str` that does it and returns one sentence about it. What it raises
as a SchedulerError is the answer to the press, and nothing of it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains import domains
from wakeful.domains.delivery.chat.tables import Chats, PressRow
from wakeful.domains.delivery.tables import DeliveryRow, Outbox
from wakeful.errors import AlertNotFound, SchedulerError
from wakeful.kernel.actions import lookup
from wakeful.kernel.actions.pausing import pause_all
from wakeful.kernel.actions.recording import Origin, on_record
from wakeful.kernel.actions.recording import acknowledge as record_acknowledgement
from wakeful.kernel.actions.runs import approve_run, reject_run
from wakeful.kernel.domain import load

if TYPE_CHECKING:
    from wakeful.domains.delivery.chat.tables import Person
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

MAY_PRESS = ("operator", "admin")
#: Where one of them was pressed, the other is gone too.
EITHER = frozenset({"approve", "reject"})
GONE = "This button is no longer valid."
GATHERED_MOST = 24


class Button(NamedTuple):
    """A button under a message: an action and its subject."""

    action: str
    on: str  # a run's, alert's or job's id, or a job's name
    label: str
    more: Mapping[str, Any]


Action = Callable[["Transaction", "Context", Button, str], str]


class ButtonRef(NamedTuple):
    """Where a press is recorded: a message, and the place of the button in it."""

    delivery: int
    button: int


class Pressable(NamedTuple):
    """A message with buttons, and where a press of each is recorded."""

    row: DeliveryRow
    buttons: list[Button]
    places: list[ButtonRef]

    @property
    def originals(self) -> set[int]:
        """The messages under which presses of these buttons are recorded."""
        return {place.delivery for place in self.places}


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
    """The buttons a message is stored with; invalid ones are left out."""
    about = (extra or {}).get("alert")
    of_alert = about.get("buttons") if isinstance(about, Mapping) else None  # set by the code that opened the incident
    found = [one for some in (of_alert, (extra or {}).get("buttons")) if isinstance(some, list) for one in some]
    given = [item for item in found if isinstance(item, Mapping)]
    return [
        Button(item["action"], str(item.get("on", "")), str(item.get("label") or item["action"].capitalize()), item)
        for item in given
        if isinstance(item.get("action"), str)
    ]


def gathered(rows: Sequence[DeliveryRow]) -> list[dict[str, Any]]:
    """The buttons of a digest: those of its messages, each with its job; those of the latest where there are many.

    An incident that began and ended meanwhile needs none.
    """
    given = [(row, json.loads(row.extra)) for row in rows if row.extra is not None]
    alerts = [(row, extra, extra.get("alert") or {}) for row, extra in given]
    over = {alert["id"] for _, _, alert in alerts if alert.get("event") == "closed"}
    found: list[dict[str, Any]] = []
    for row, extra, alert in reversed(alerts):
        own = buttons_of(extra) if alert.get("id") not in over else []
        if len(found) + len(own) > GATHERED_MOST:
            break
        about = f": {row.job}" if row.job is not None else ""
        places = zip(own, _places(row, extra, own), strict=True)
        found = [{**one.more, "label": f"{one.label}{about}", "counts_as": place} for one, place in places] + found
    return found


def _places(row: DeliveryRow, extra: Mapping[str, Any], buttons: Sequence[Button]) -> list[ButtonRef]:
    """Where a press of each button is recorded, so that it counts once: copies and digests share the original's."""
    first = ids.decode(str(extra.get("copy_of")))
    number = first[1] if first is not None else row.id
    return [ButtonRef(*one.more.get("counts_as", (number, index))) for index, one in enumerate(buttons)]


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
    number = ids.number_of("dlv", text)
    row = tx.of(Outbox).get(number) if number is not None else None
    if row is None or row.connector != connector or row.recipient not in (None, person.sender):
        raise NotPressed(GONE)
    extra = json.loads(row.extra) if row.extra is not None else {}
    buttons = buttons_of(extra)
    if not place.isascii() or not place.isdigit() or len(place) > 3 or int(place) >= len(buttons):
        raise NotPressed(GONE)
    if person.role not in MAY_PRESS:
        raise NotPressed(f"Your role is {person.role}: this needs {MAY_PRESS[0]}.")
    return _press_once(tx, context, person, Pressable(row, buttons, _places(row, extra, buttons)), int(place))


def _press_once(tx: Transaction, context: Context, person: Person, message: Pressable, index: int) -> Press:
    chats, place = tx.of(Chats), message.places[index]
    before = {ButtonRef(number, at): row for number in message.originals for at, row in chats.presses(number).items()}
    if place in before:
        return Press(before[place].said, _left(message, before))
    one = message.buttons[index]
    action = actions().get(one.action)
    if action is None:
        raise NotPressed(GONE)
    said = load(action)(tx, context, one, person.signature)
    pressed = PressRow(place.delivery, place.button, person.sender, tx.now, said)
    chats.add_press(pressed)
    return Press(said, _left(message, {**before, place: pressed}))


def _left(message: Pressable, pressed: Mapping[ButtonRef, PressRow]) -> list[list[dict[str, str]]]:
    """The buttons that are left: none that was pressed, and none of a run that was answered."""
    buttons = message.buttons
    gone = {index for index, place in enumerate(message.places) if place in pressed}
    answered = {buttons[index].on for index in gone if buttons[index].action in EITHER}
    gone |= {index for index, one in enumerate(buttons) if one.action in EITHER and one.on in answered}
    return keyboard(ids.encode("dlv", message.row.id), buttons, frozenset(gone))


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
    if number is None or tx.alerts.get(number) is None:
        raise AlertNotFound(f"There is no alert {pressed.on!r:.60}.")
    record_acknowledgement(tx, number, _origin(context, by))
    return "Acknowledged."


def _origin(context: Context, by: str) -> Origin:
    return Origin(by, "chat", context.new_id())


_HERE = "wakeful.domains.delivery.chat.buttons"
OWN = {name: f"{_HERE}:{name}" for name in ("approve", "reject", "pause", "acknowledge")}


def actions() -> Mapping[str, str]:
    """Every action there is and the function behind it; what other domains declare takes precedence."""
    found = dict(OWN)
    for domain in domains():
        found |= domain.buttons
    return found
