"""Reading pending events, oldest first: so many, after one that was read before, and only those that were asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.authoring import Event, Events
from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.publishing import is_key
from wakeful.domains.workflows.topics.tables import EventRow, Filter, Topics
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

MAX_PEEK = 1_000
BLOCK = 100  # so many at least are read at once where some of them may be sorted out
MESSAGE_ID = "message_id"
MAX_ID, MAX_IDS = 1_000, 10_000  # bytes, and how many
EXACT = 2**53  # whole numbers up to here are the same as numbers with a fraction of 0
FEW_TEXTS = 20  # so many texts at most are looked for in each payload by the store


class PeekQuery(NamedTuple):
    """Which events of a topic a handler wants to read."""

    topic: str
    limit: int
    after: int | None  # an event
    where: Filter
    keys: tuple[tuple[str, frozenset[str]], ...]  # of the payload, each with the JSON that is wanted


class Read(NamedTuple):
    """What was found: the events as stored, each with what caused it, and whether there are more."""

    found: list[tuple[EventRow, int | None]]
    more: bool


def asked(topic: str, limit: Any, after: Any, where: Any, *, until: int | None = None) -> PeekQuery:
    """What an author asks for; LogicError where that cannot be answered. `until`: they are shown no later ones."""
    if type(limit) is not int or limit < 0:
        message = f"The limit of peek is a whole number of events, not {limit!r:.80}."
        raise LogicError(message)
    if limit > MAX_PEEK:
        message = f"peek reads at most {MAX_PEEK} events at once, not {limit}: read on with `after`."
        raise LogicError(message)
    given = after.id if isinstance(after, Event) else after
    number = ids.number_of("evt", given) if isinstance(given, str) else None
    if number is None and after is not None:
        message = f"`after` is an event that peek found, or its id, not {after!r:.80}."
        raise LogicError(message)
    if where is not None and not (isinstance(where, Mapping) and all(isinstance(key, str) for key in where)):
        message = f"`where` maps message_id or keys of the payload to values, not {where!r:.80}."
        raise LogicError(message)
    values = {key: _values(value) for key, value in (where or {}).items()}
    names = None if MESSAGE_ID not in values else _names(values.pop(MESSAGE_ID))
    keys = tuple((key, frozenset(text for value in wanted for text in _ways(value))) for key, wanted in values.items())
    return PeekQuery(topic, limit, number, Filter(names, [_texts(*one) for one in keys], until), keys)


def _values(given: Any) -> list[Any]:
    """One value, or any of several."""
    values = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    strange = [value for value in values if value is not None and not isinstance(value, str | int | float)]
    if strange:
        message = f"`where` compares with texts, numbers, true, false and None, not {strange[0]!r:.80}."
        raise LogicError(message)
    return values


def _names(values: Sequence[Any]) -> list[str]:
    """Those that can be message ids at all; LogicError where they are more than every database takes."""
    if len(values) > MAX_IDS:
        message = f"`where` takes at most {MAX_IDS:,} message ids at once, not {len(values):,}."
        raise LogicError(message)
    return [name for name in map(str, values) if is_key(name, MAX_ID)]


def _ways(value: Any) -> set[str]:
    """The ways in which payloads have a value: 7 is 7.0 as well, as in Python and in JSON."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= EXACT
    return (
        {_text(value), *map(_text, (int(value), float(value)))} if is_whole and value == int(value) else {_text(value)}
    )


def _text(value: Any) -> str:
    """A value as payloads are stored."""
    return json.dumps(value, separators=(",", ":"))


def _texts(key: str, wanted: frozenset[str]) -> list[str]:
    """Texts one of which the payload has, wherever in it; what else has them is sorted out once it is read."""
    shortest = [value for value in sorted(wanted) if value.removesuffix(".0") not in wanted - {value}]  # 7 is in 7.0
    return [f"{_text(key)}:{value}" for value in shortest] if len(shortest) <= FEW_TEXTS else [f"{_text(key)}:"]


def read(tx: Transaction, workflow: str, question: PeekQuery) -> Read | None:
    """The events that a handler asks for; None if the one to read on after is of another topic.

    One that is not kept any more was before all that is pending: then it is read from the oldest on.
    """
    topics = tx.of(Topics)
    last = topics.get(question.after) if question.after is not None else None
    if last is not None and (last.workflow, last.topic) != (workflow, question.topic):
        return None
    after = last.seq if last is not None else 0
    found: list[tuple[EventRow, int | None]] = []
    while True:
        # One more than is wanted: it tells whether there are more.
        wanted = max(question.limit + 1 - len(found), BLOCK if question.keys else 0)
        rows = topics.pending(workflow, question.topic, wanted, after, question.where)
        found += [pair for pair in rows if _has(pair[0].payload, question.keys)]
        if len(rows) < wanted or len(found) > question.limit:
            return Read(found[: question.limit], len(found) > question.limit)
        after = rows[-1][0].seq


def _has(payload: str, keys: tuple[tuple[str, frozenset[str]], ...]) -> bool:
    if not keys:
        return True
    value = json.loads(payload)
    return isinstance(value, dict) and all(key in value and _text(value[key]) in wanted for key, wanted in keys)


def as_events(read: Read) -> Events:
    """Events as handlers see them."""
    return Events([_event(row, cause) for row, cause in read.found], more=read.more)


def _event(row: EventRow, cause: int | None) -> Event:
    known = None if cause is None else ids.encode("inp", cause)
    payload = json.loads(row.payload)
    return Event(ids.encode("evt", row.id), row.message_id, row.topic, payload, from_ms(row.at), known)
