"""The tables of events and inputs: verbs on them, each part of the transaction it is called in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class EventRow(NamedTuple):
    """An event of a topic."""

    id: int
    workflow: str
    topic: str
    message_id: str
    seq: int
    payload: str
    status: str
    at: int
    run_id: int | None = None
    made_by: int | None = None
    settled_at: int | None = None  # also of one that is pending where no handler subscribes
    reason: str | None = None
    revision: int = 0  # the number that was taken when its payload was last replaced
    hops: int = 0  # from workflow to workflow

    @property
    def is_open(self) -> bool:
        """Whether something is still to happen to it."""
        return self.status in ("pending", "reserved") and self.settled_at is None


class InputRow(NamedTuple):
    """Something from outside that a producer found."""

    id: int
    workflow: str
    source: str
    type: str
    external_id: str
    title: str | None
    at: int
    skipped_at: int | None = None
    reason: str | None = None


class Filter(NamedTuple):
    """Which events are wanted: those with one of these message ids, with one text of each list in the payload, and up
    to a number.
    """

    message_ids: Sequence[str] | None = None
    texts: Sequence[Sequence[str]] = ()
    until: int | None = None


ALL = Filter()
_MESSAGE = ("workflow", "topic", "message_id", "event_id")
#: Whether a handler of the deployed version subscribes to an event's topic.
_AWAITED = (
    "EXISTS (SELECT 1 FROM workflow_handlers h WHERE h.workflow = workflow_events.workflow AND h.job_id IS NOT NULL "
    "AND replace(h.subscribes, '\"' || workflow_events.topic || '\"', '') <> h.subscribes)"
)
_SIZES = (1, 8, 64, 512)  # how many message ids one question asks about: so few distinct ones stay prepared


class Topics(Verbs):
    """Verbs on events and inputs."""

    _events = Rows("workflow_events", EventRow)
    _inputs = Rows("workflow_inputs", InputRow)

    # -- publishing ---------------------------------------------------------------------------------------------------

    def known(self, workflow: str, topic: str, message_ids: Sequence[str]) -> dict[str, int]:
        """The events of those of the message ids that were published before, also of pruned ones.

        Who has locked the workflow's jobs is the only one who publishes: the answer stays true.
        """
        found: dict[str, int] = {}
        for first in range(0, len(message_ids), _SIZES[-1]):
            part = message_ids[first : first + _SIZES[-1]]
            size = next(size for size in _SIZES if size >= len(part))
            sql = (
                "SELECT message_id, event_id FROM workflow_messages WHERE workflow = ? AND topic = ? "
                f"AND message_id IN ({', '.join('?' * size)})"
            )
            asked = (workflow, topic, *part, *[part[0]] * (size - len(part)))
            found.update((str(name), int(event)) for name, event in self._session.rows(sql, asked))
        return found

    def add(self, events: Sequence[EventRow], causes: Sequence[tuple[int, int]]) -> None:
        """Add events whose message ids are new, and which input caused which: (event, input)."""
        messages = [(event.workflow, event.topic, event.message_id, event.id) for event in events]
        self._session.insert_soon("workflow_messages", _MESSAGE, messages)
        self._session.insert_soon("workflow_events", EventRow._fields, events)
        self._session.insert_soon("workflow_causes", ("event_id", "input_id"), causes)

    def replace_payload(self, event_id: int, payload: str, number: int) -> bool:
        """Give an event that is still pending another payload; False if it has that one, or is not pending."""
        sql = (
            "UPDATE workflow_events SET payload = ?, revision = ? WHERE id = ? AND status = 'pending' AND payload <> ?"
        )
        return bool(self._session.execute(sql, (payload, number, event_id, payload)))

    def await_again(self, workflow: str, topics: Sequence[str]) -> None:
        """A handler subscribes to these topics now: what was published to them before waits for it."""
        sql = (
            "UPDATE workflow_events SET settled_at = NULL WHERE workflow = ? AND topic = ? AND status = 'pending' "
            "AND settled_at IS NOT NULL"
        )
        for topic in topics:
            self._session.execute(sql, (workflow, topic))

    def await_no_more(self, workflow: str, topics: Sequence[str], now: int) -> None:
        """No handler subscribes to these topics any more: what is pending there waits for nothing."""
        sql = (
            "UPDATE workflow_events SET settled_at = ? WHERE workflow = ? AND topic = ? AND status = 'pending' "
            "AND settled_at IS NULL"
        )
        for topic in topics:
            self._session.execute(sql, (now, workflow, topic))

    # -- consuming ----------------------------------------------------------------------------------------------------

    def pending(
        self, workflow: str, topic: str, limit: int, after: int = 0, filtered: Filter = ALL
    ) -> list[tuple[EventRow, int | None]]:
        """The oldest events that are not reserved, each with the first of the inputs that caused it."""
        clause, params = where(
            [
                ("e.workflow = ? AND e.topic = ? AND e.status = 'pending' AND e.seq > ?", (workflow, topic, after)),
                *_filtered(workflow, topic, filtered),
            ]
        )
        sql = (
            f"SELECT {self._events.of('e')}, (SELECT min(c.input_id) FROM workflow_causes c WHERE c.event_id = e.id) "
            f"FROM workflow_events e {clause} ORDER BY e.seq LIMIT ?"
        )
        return [(EventRow._make(row[:-1]), row[-1]) for row in self._session.rows(sql, (*params, limit))]

    def count_pending(self, workflow: str, topics: Sequence[str], most: int = 1_000) -> int:
        """How many events are pending in these topics, counted up to a bound."""
        sql = (
            "SELECT count(*) FROM (SELECT 1 FROM workflow_events WHERE workflow = ? AND topic = ? "
            "AND status = 'pending' LIMIT ?) e"
        )
        return sum(self._count(sql, workflow, topic, most) for topic in topics)

    def count_made_by(self, run_id: int) -> int:
        """How many events a run published. Ids go up: they lie behind the run's."""
        sql = "SELECT count(*) FROM workflow_events WHERE id > ? AND made_by = ?"
        return self._count(sql, run_id, run_id)

    def places(self, event_ids: Sequence[int]) -> dict[int, tuple[str, str, str, int, int]]:
        """(workflow, topic, status, revision, hops) of each of these events."""
        columns = ("id", "workflow", "topic", "status", "revision", "hops")
        rows = self._session.select_in(columns, "workflow_events", "id", event_ids)
        return {int(row[0]): (str(row[1]), str(row[2]), str(row[3]), int(row[4]), int(row[5])) for row in rows}

    def reserve(self, event_ids: Sequence[int], run_id: int) -> None:
        """Reserve events for a run; the caller has seen in this transaction that they are pending."""
        rows = [(event_id, "reserved", run_id) for event_id in event_ids]
        self._session.update_many("workflow_events", ("id", "status", "run_id"), rows)

    def reserve_each(self, runs: Mapping[int, int]) -> None:
        """The same of several runs: the run of each event."""
        rows = [(event_id, "reserved", run_id) for event_id, run_id in runs.items()]
        self._session.update_many("workflow_events", ("id", "status", "run_id"), rows)

    def release(self, run_id: int, now: int) -> int:
        """What the run reserved is pending again."""
        sql = (
            "UPDATE workflow_events SET status = 'pending', run_id = NULL, "
            f"settled_at = CASE WHEN {_AWAITED} THEN NULL ELSE CAST(? AS bigint) END "
            "WHERE run_id = ? AND status = 'reserved'"
        )
        return self._session.execute(sql, (now, run_id))

    def hand_over(self, run_id: int, to: int) -> int:
        """What the run reserved is another run's."""
        sql = "UPDATE workflow_events SET run_id = ? WHERE run_id = ? AND status = 'reserved'"
        return self._session.execute(sql, (to, run_id))

    def consume(self, *run_ids: int, now: int) -> None:
        """Consume what the runs reserved. They own nothing else: released events are free again."""
        rows = [(run_id, "consumed", now) for run_id in run_ids]
        self._session.update_many("workflow_events", ("run_id", "status", "settled_at"), rows)

    def skip(self, event_ids: Sequence[int], now: int, reason: str | None = None) -> int:
        """Mark pending events as skipped."""
        sql = (
            "UPDATE workflow_events SET status = 'skipped', settled_at = ?, reason = ? "
            "WHERE id = ? AND status = 'pending'"
        )
        return sum(self._session.execute(sql, (now, reason, event_id)) for event_id in event_ids)

    def skip_caused(self, input_id: int, now: int, reason: str | None) -> int:
        """The same for all that an input caused."""
        sql = (
            "UPDATE workflow_events SET status = 'skipped', settled_at = ?, reason = ? WHERE status = 'pending' "
            "AND id IN (SELECT event_id FROM workflow_causes WHERE input_id = ?)"
        )
        return self._session.execute(sql, (now, reason, input_id))

    def reserved_by(self, run_id: int) -> list[EventRow]:
        """What a run works on."""
        return self._events.all("WHERE run_id = ? AND status = 'reserved' ORDER BY id", run_id)

    def causes_of_run(self, run_id: int) -> list[int]:
        """The inputs that caused what the run reserved."""
        sql = (
            "SELECT DISTINCT c.input_id FROM workflow_events e JOIN workflow_causes c ON c.event_id = e.id "
            "WHERE e.run_id = ? ORDER BY c.input_id"
        )
        return self._column(sql, run_id)

    def get(self, event_id: int) -> EventRow | None:
        return self._events.one("WHERE id = ?", event_id)

    def among(self, event_ids: Sequence[int]) -> dict[int, EventRow]:
        """Those of these events that there are, by id."""
        return {event.id: event for event in self._events.among("id", event_ids)}

    def matching(
        self, workflow: str, topic: str | None, status: str | None, before: int | None, limit: int
    ) -> list[EventRow]:
        """The newest first."""
        parked = "(SELECT event_id FROM workflow_tasks WHERE workflow = ? AND status = 'parked')"
        of_status: tuple[str, str | tuple[str, ...] | None] = ("status = ?", status)
        if status == "parked":
            of_status = (f"status = 'reserved' AND id IN {parked}", workflow)
        elif status == "reserved":
            of_status = (f"status = ? AND id NOT IN {parked}", (status, workflow))
        clause, params = where([("workflow = ?", workflow), ("topic = ?", topic), of_status, ("id < ?", before)])
        return self._events.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def newest_of_message(self, workflow: str, message_id: str) -> EventRow | None:
        """The last event of a workflow that a message with this id led to, in any topic."""
        return self._events.one("WHERE workflow = ? AND message_id = ? ORDER BY id DESC LIMIT 1", workflow, message_id)

    # -- inputs -------------------------------------------------------------------------------------------------------

    def find_input(self, workflow: str, source: str, kind: str, external_id: str) -> InputRow | None:
        return self._inputs.one(
            "WHERE workflow = ? AND source = ? AND type = ? AND external_id = ?", workflow, source, kind, external_id
        )

    def input(self, input_id: int) -> InputRow | None:
        return self._inputs.one("WHERE id = ?", input_id)

    def add_inputs(self, rows: Sequence[InputRow]) -> None:
        conflict = "ON CONFLICT (workflow, source, type, external_id) DO NOTHING"
        self._inputs.add(*rows, on_conflict=conflict)

    def mark_input(self, input_id: int, skipped_at: int | None, reason: str | None) -> None:
        sql = "UPDATE workflow_inputs SET skipped_at = ?, reason = ? WHERE id = ?"
        self._session.execute(sql, (skipped_at, reason, input_id))

    def inputs(self, workflow: str, status: str | None, before: int | None, limit: int) -> list[InputRow]:
        """The newest first; `status` is pending, skipped or done."""
        open_event = (
            "EXISTS (SELECT 1 FROM workflow_causes c JOIN workflow_events e ON e.id = c.event_id "
            "WHERE c.input_id = i.id AND e.status IN ('pending', 'reserved') AND e.settled_at IS NULL)"
        )
        waiting = (
            "i.id IN (SELECT c.input_id FROM workflow_events e JOIN workflow_causes c ON c.event_id = e.id "
            "WHERE e.workflow = ? AND e.status IN ('pending', 'reserved') AND e.settled_at IS NULL)"
        )
        conditions = {
            "pending": waiting,
            "skipped": f"i.skipped_at IS NOT NULL AND NOT {open_event}",
            "done": f"i.skipped_at IS NULL AND NOT {open_event}",
        }
        wanted: list[tuple[str, Any]] = [("i.workflow = ?", workflow), ("i.id < ?", before)]
        if status is not None:
            wanted.append((conditions[status], (workflow,) if status == "pending" else ()))
        clause, params = where(wanted)
        return self._inputs.joined("i", f"{clause} ORDER BY i.id DESC LIMIT ?", *params, limit)

    def count_pending_inputs(self, workflow: str, most: int = 1_000) -> int:
        """How many inputs wait, as far as the oldest so many waiting events say."""
        sql = (
            "SELECT count(DISTINCT c.input_id) FROM (SELECT id FROM workflow_events WHERE workflow = ? "
            "AND status IN ('pending', 'reserved') AND settled_at IS NULL ORDER BY id LIMIT ?) e "
            "JOIN workflow_causes c ON c.event_id = e.id"
        )
        return self._count(sql, workflow, most)

    def inputs_of(self, event_ids: Sequence[int]) -> dict[int, list[int]]:
        """The inputs that caused each of these events."""
        found: dict[int, list[int]] = {}
        rows = self._session.select_in(("event_id", "input_id"), "workflow_causes", "event_id", event_ids)
        for event_id, input_id in sorted((int(event), int(one)) for event, one in rows):
            found.setdefault(event_id, []).append(input_id)
        return found

    def events_of(self, input_id: int, limit: int | None = None) -> list[EventRow]:
        """The events that an input caused, in the order of publishing."""
        most, asked = ("", (input_id,)) if limit is None else (" LIMIT ?", (input_id, limit))
        caused = "JOIN workflow_causes c ON e.id = c.event_id WHERE c.input_id = ? ORDER BY e.seq"
        return self._events.joined("e", f"{caused}{most}", *asked)

    def statuses_of(self, input_id: int) -> set[str]:
        """What became of the events that an input caused: each status that one of them has.

        One that is pending where no handler subscribes is `left`.
        """
        sql = (
            "SELECT DISTINCT CASE WHEN e.status = 'pending' AND e.settled_at IS NOT NULL THEN 'left' ELSE e.status END "
            "FROM workflow_causes c JOIN workflow_events e ON e.id = c.event_id "
            "WHERE c.input_id = ?"
        )
        return set(self._column(sql, input_id))

    # -- retention ----------------------------------------------------------------------------------------------------

    def prune(self, before: int, limit: int) -> int:
        """Delete events that were settled before then and that no run in progress needs."""
        old = self._column(
            "SELECT e.id FROM workflow_events e WHERE e.settled_at IS NOT NULL AND e.settled_at < ? AND NOT EXISTS "
            "(SELECT 1 FROM workflow_handlers h WHERE h.open_run = e.run_id) ORDER BY e.settled_at LIMIT ?",
            before,
            limit,
        )
        if old:
            self._session.delete_in("workflow_causes", "event_id", old)
            self._session.delete_in("workflow_steps", "event_id", old)
            self._session.delete_in("workflow_events", "id", old)
        return len(old)

    def prune_messages(self, before_id: int, limit: int) -> int:
        """Forget message ids whose events are below that id and gone; they may be published again."""
        return self._session.execute(
            "DELETE FROM workflow_messages WHERE event_id IN (SELECT m.event_id FROM workflow_messages m "
            "WHERE m.event_id < ? AND NOT EXISTS (SELECT 1 FROM workflow_events e WHERE e.id = m.event_id) "
            "ORDER BY m.event_id LIMIT ?)",
            (before_id, limit),
        )

    def prune_inputs(self, before_id: int, limit: int) -> int:
        """Delete inputs below that id none of whose events is left."""
        return self._session.execute(
            "DELETE FROM workflow_inputs WHERE id IN (SELECT i.id FROM workflow_inputs i WHERE i.id < ? AND NOT EXISTS "
            "(SELECT 1 FROM workflow_causes c WHERE c.input_id = i.id) ORDER BY i.id LIMIT ?)",
            (before_id, limit),
        )


def _filtered(workflow: str, topic: str, filtered: Filter) -> Iterator[tuple[str, Any]]:
    """The conditions of a filter, and their values."""
    yield "e.seq <= ?", filtered.until
    if filtered.message_ids is not None:
        marks = ", ".join("?" * len(filtered.message_ids)) or "NULL"
        named = f"SELECT event_id FROM workflow_messages WHERE workflow = ? AND topic = ? AND message_id IN ({marks})"
        yield f"e.id IN ({named})", (workflow, topic, *filtered.message_ids)
    for texts in filtered.texts:
        any_of = " OR ".join(["replace(e.payload, ?, ?) <> e.payload"] * len(texts)) or "1 = 0"
        yield f"({any_of})", tuple(part for text in texts for part in (text, ""))
