"""Holding everything, and letting it continue; each is one transaction, and an action that can be undone.

A hold is one stored fact that every claim reads. Jobs are not changed by it: what comes due waits, and starts when the
hold ends, by the same rules as after a time without a server. What a person paused stays paused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wakeful.errors import NotAllowed, ScheduleTriggerError
from wakeful.kernel.actions.recording import keep, origin_of
from wakeful.kernel.context import Context, Rights
from wakeful.kernel.engine.lines import TOGETHER, requeue_released
from wakeful.kernel.rules.holding import Hold, hold_of, hold_words
from wakeful.store.actions import ActionRow, SubjectChange
from wakeful.store.interface import Transaction

HOLD, RELEASE = "pause_all", "resume_all"
EVERYTHING = "everything"
SUBJECT = 1  # ids are made from the time: no job, and no alert, has this number


class Held(NamedTuple):
    """What stands after a request, and the action, if it changed anything. `more`: jobs are left to be put back."""

    hold: Hold | None
    action: str | None
    more: bool = False


def hold_all(tx: Transaction, context: Context, note: str | None = None, *, messages: bool = False) -> Held:
    """Start nothing more; what runs finishes. A hold that stands keeps who began it, and takes the new note."""
    _refuse_owner(context.rights)
    text = tx.nodes.held()
    before = hold_of(text)
    hold = Hold(tx.now, context.rights.caller, note, messages) if before is None else before
    if before is not None:
        hold = hold._replace(note=note or before.note, messages=messages or before.messages)
    if hold.text == text:
        return Held(hold, None)
    tx.nodes.hold(hold.text)
    tx.events.emit("job", {"type": "held", **hold.to_dict()})
    return Held(hold, _record(tx, context, HOLD, (text, hold.text)))


def release_all(tx: Transaction, context: Context) -> Held:
    """Let everything continue, and put back the first of what waited; nothing else is changed."""
    _refuse_owner(context.rights)
    before = tx.nodes.held()
    if before is None:
        return Held(None, None, more=put_back(tx))
    more = _release(tx, context)
    return Held(None, _record(tx, context, RELEASE, (before, None)), more)


def put_back(tx: Transaction) -> bool:
    """Put back the next of what waited for the end of a hold; whether there may be more."""
    return requeue_released(tx) == TOGETHER


def take_back(tx: Transaction, context: Context, row: ActionRow, before: Any, left: Any) -> str | None:
    """Undo a hold or its end; why not, where the hold was changed since."""
    if tx.nodes.held() != left["hold"]:
        return f"{row.name} was paused or resumed since: left as it is"
    if before["hold"] is None:
        _release(tx, context)
    else:
        tx.nodes.hold(before["hold"])
        found = hold_of(before["hold"])
        assert found is not None  # noqa: S101 - just asked
        tx.events.emit("job", {"type": "held", **found.to_dict()})
    return None


def refuse_held(tx: Transaction, name: str) -> None:
    """ScheduleTriggerError while everything is held: not even a person starts a job then."""
    hold = hold_of(tx.nodes.held())
    if hold is not None:
        message = f"{name} cannot start: everything is paused {hold_words(hold)}. Run wakeful resume --all first."
        raise ScheduleTriggerError(message, {"job": name, "reason": "held"})


def _release(tx: Transaction, context: Context) -> bool:
    tx.nodes.hold(None)
    for hook in context.declared.hooks.released:
        hook(tx)
    tx.events.emit("job", {"type": "released"})
    return put_back(tx)


def _refuse_owner(rights: Rights) -> None:
    if rights.owner is not None:
        raise NotAllowed(f"{rights.owner} may only pause its own jobs, not everything.")


def _record(tx: Transaction, context: Context, what: str, change: tuple[str | None, str | None]) -> str:
    before, left = change
    done = SubjectChange(SUBJECT, EVERYTHING, ("hold",), (before,), (left,))
    found = keep(tx, origin_of(context), what, [done])
    assert found is not None  # noqa: S101 - it is a change
    return found
