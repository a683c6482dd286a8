"""The outbox in the store: deliveries, attempts, connectors and interactions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.delivery.routing import Interaction
from wakeful.ids import first_id_at
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from wakeful.store.session import Row


class DeliveryRow(NamedTuple):
    """One delivery."""

    id: int
    connector: str | None
    recipient: str | None
    status: str
    open: int
    kind: str
    text: str
    title: str | None
    job_id: int | None
    job: str | None
    run_id: int | None
    agent: str | None
    outcome: str | None
    extra: str | None
    urgent: int
    attempts: int
    next_at: int | None
    last_error: str | None
    created_at: int
    sent_at: int | None = None
    held_for: str | None = None
    digest_id: int | None = None
    dedupe: str | None = None
    spared: int = 0  # attempts that do not count: made before their time, or cut off by the end of the process
    regular_at: int | None = None  # when its turn is, while it is tried before that
    not_before: int | None = None  # until when its target asked to be left alone
    queued_at: int | None = None  # when a person queued it again: its age counts from then
    progress: str | None = None  # which parts of it have arrived, as its connector wrote it

    @property
    def counted(self) -> int:
        """The attempts that count."""
        return self.attempts - self.spared

    @property
    def since(self) -> int:
        """From when its age counts."""
        return max(self.created_at, self.queued_at or 0)


class AttemptRow(NamedTuple):
    """One attempt; `ok` is None while it is in progress and when its result is unknown."""

    id: int
    delivery_id: int
    connector: str
    at: int
    ms: int | None
    ok: int | None
    error: str | None


class ConnectorRow(NamedTuple):
    """A connector as every node knows it: no secrets."""

    name: str
    type: str
    position: int
    job_id: int
    rules: str
    source: str
    removed_at: int | None


class DeliveryFilter(NamedTuple):
    """Which deliveries to list, the newest first."""

    status: str | None = None
    connector: str | None = None
    job: str | None = None
    agent: str | None = None
    before: int | None = None
    limit: int = 50


REQUEUED = (
    "status = 'pending', open = 1, attempts = 0, spared = 0, regular_at = NULL, not_before = NULL, held_for = NULL, "
    "next_at = ?, queued_at = ?"
)
#: What a person's word can send: nothing of a digest, nothing that waits for quiet hours or a pairing, no test.
MOVED = "digest_id IS NULL AND kind <> 'test' AND (held_for IS NULL OR held_for = 'restore')"


class Outbox(Verbs):
    """Verbs on deliveries."""

    _deliveries = Rows("deliveries", DeliveryRow)
    _attempts = Rows("delivery_attempts", AttemptRow)
    _connectors = Rows("connectors", ConnectorRow)
    _interactions = Rows("interactions", Interaction)

    # -- deliveries ---------------------------------------------------------------------------------------------------

    def add(self, row: DeliveryRow) -> None:
        self._deliveries.add(row)

    def save(self, row: DeliveryRow) -> None:
        self._deliveries.save(row)

    def get(self, number: int) -> DeliveryRow | None:
        return self._deliveries.locked("WHERE id = ?", number)

    def failed_count(self, from_id: int) -> int:
        """How many made from that id on were given up."""
        sql = "SELECT count(*) FROM deliveries WHERE status = 'failed' AND id >= ? AND kind NOT IN ('digest', 'test')"
        return self._count(sql, from_id)

    def waiting(self, most: int) -> tuple[int, int | None]:
        """How many wait to be sent anywhere, at most `most` of them are counted, and since when the first does."""
        some = "SELECT created_at, queued_at FROM deliveries WHERE open = 1 LIMIT ?"
        since = "min(CASE WHEN queued_at > created_at THEN queued_at ELSE created_at END)"
        count, first = self._session.rows(f"SELECT count(*), {since} FROM ({some}) q", (most,))[0]
        return int(count), None if first is None else int(first)

    def by_dedupe(self, key: str) -> int | None:
        """The delivery with that key; no other transaction can store one before this one ends."""
        self._session.serialize(f"delivery:{key}")
        return self._number("SELECT id FROM deliveries WHERE dedupe = ?", key)

    def head(self, connector: str) -> DeliveryRow | None:
        """The oldest that waits to be sent there."""
        return self._deliveries.locked("WHERE connector = ? AND open = 1 ORDER BY id LIMIT 1", connector)

    def queued(self, connector: str, most: int) -> tuple[int, int | None]:
        """How many wait to be sent there, at most `most`, and since when the first of them does."""
        some = "SELECT id, created_at, queued_at FROM deliveries WHERE connector = ? AND open = 1 ORDER BY id LIMIT ?"
        rows = self._session.rows(f"SELECT count(*) FROM ({some}) q", (connector, most))
        first = self._session.rows(some, (connector, 1))
        return int(rows[0][0]), max(int(first[0][1]), int(first[0][2] or 0)) if first else None

    def in_flight(self, connector: str) -> list[DeliveryRow]:
        """The deliveries recorded as being sent: one at most, and it is or was the head of the queue."""
        return self._deliveries.all(
            "WHERE connector = ? AND open = 1 AND status = 'sending' ORDER BY id LIMIT 10", connector
        )

    def hold_waiting(self, connector: str, until: int) -> int:
        """What waits and is not urgent waits for the end of quiet hours instead."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'held', open = 0, held_for = 'quiet', next_at = ? "
            "WHERE connector = ? AND open = 1 AND urgent = 0 AND status <> 'sending'",
            (until, connector),
        )

    def hold_all(self, reason: str) -> int:
        """Hold the pending messages of a restored backup until a person releases them."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'held', open = 0, held_for = ?, next_at = NULL WHERE open = 1", (reason,)
        )

    def release_held(self, reason: str, now: int) -> int:
        """What was held for that reason waits in its queue again."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'pending', open = 1, held_for = NULL, next_at = ? WHERE held_for = ?",
            (now, reason),
        )

    def hold_for_pairing(self, connector: str, reason: str) -> int:
        """Hold waiting messages without a recipient until a person is paired; how many."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'held', open = 0, held_for = 'pairing', next_at = NULL, last_error = ? "
            "WHERE connector = ? AND open = 1 AND recipient IS NULL AND status <> 'sending'",
            (reason, connector),
        )

    def give_up_for(self, connector: str, recipient: str, reason: str) -> int:
        """Cancel the messages that wait for a person; how many."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'expired', open = 0, held_for = NULL, next_at = NULL, last_error = ? "
            "WHERE connector = ? AND recipient = ? AND status IN ('pending', 'unknown', 'held') "
            "AND (open = 1 OR held_for IS NOT NULL)",
            (reason, connector, recipient),
        )

    def release_to(self, connector: str, recipient: str, now: int) -> int:
        """Queue the messages that were held for a pairing, for that person; how many."""
        return self._session.execute(
            "UPDATE deliveries SET status = 'pending', open = 1, held_for = NULL, last_error = NULL, recipient = ?, "
            "next_at = ? WHERE connector = ? AND held_for IS NOT NULL AND held_for = 'pairing'",
            (recipient, now, connector),
        )

    def holds_any(self, connector: str) -> bool:
        """Whether anything is held there for quiet hours."""
        return bool(self.held(connector, 1))

    def held(self, connector: str, limit: int) -> list[DeliveryRow]:
        """What is held there for quiet hours and in no digest yet, the oldest first."""
        return self._deliveries.all(
            "WHERE connector = ? AND held_for IS NOT NULL AND held_for = 'quiet' AND digest_id IS NULL "
            "ORDER BY id LIMIT ?",
            connector,
            limit,
        )

    def put_in_digest(self, numbers: Sequence[int], digest: int) -> None:
        self._session.update_many("deliveries", ("id", "digest_id"), [(number, digest) for number in numbers])

    def end_digest(self, digest: int, status: str, error: str | None, now: int | None) -> None:
        """What became of a digest became of all that is in it."""
        self._session.execute(
            "UPDATE deliveries SET status = ?, last_error = ?, sent_at = ?, held_for = NULL WHERE digest_id = ?",
            (status, error, now, digest),
        )

    def keep_progress(self, number: int, progress: str) -> None:
        """What has arrived of a message that is sent in parts."""
        self._session.execute("UPDATE deliveries SET progress = ? WHERE id = ?", (progress, number))

    def requeue(self, number: int, now: int) -> None:
        self._session.execute(f"UPDATE deliveries SET {REQUEUED} WHERE id = ?", (now, now, number))

    def requeue_all(self, status: str, now: int, chats: Collection[str]) -> list[str | None]:
        """All of one status that may be, in `chats` for people who are paired; the connectors of each."""
        marks = ", ".join("?" for _ in chats) or "NULL"
        paired = "SELECT 1 FROM people WHERE people.connector = deliveries.connector AND people.sender = recipient"
        sql = (
            f"UPDATE deliveries SET {REQUEUED} WHERE status = ? AND {MOVED} AND (connector IS NULL "
            f"OR recipient IS NULL OR connector NOT IN ({marks}) OR EXISTS ({paired})) RETURNING connector"
        )
        return [row[0] for row in self._session.rows(sql, (now, now, status, *chats))]

    def awaited(self) -> list[str | None]:
        """Where messages that wait are to go; None is `last`, where there was no connector."""
        return [row[0] for row in self._session.rows("SELECT DISTINCT connector FROM deliveries WHERE open = 1", ())]

    def adopt_unrouted(self, connector: str, now: int) -> int:
        """What had nowhere to go goes there."""
        return self._session.execute(
            "UPDATE deliveries SET connector = ?, next_at = ?, last_error = NULL WHERE connector IS NULL AND open = 1",
            (connector, now),
        )

    def matching(self, wanted: DeliveryFilter) -> list[DeliveryRow]:
        said = [(f"{name} = ?", getattr(wanted, name)) for name in ("status", "connector", "job", "agent")]
        clause, params = where([*said, ("id < ?", wanted.before)])
        return self._deliveries.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, wanted.limit)

    def of_runs(self, run_ids: Sequence[int]) -> list[Row]:
        """(run, id, connector, status, error) of everything sent about these runs."""
        columns = ("run_id", "id", "connector", "status", "last_error")
        return sorted(self._session.select_in(columns, "deliveries", "run_id", run_ids), key=lambda row: int(row[1]))

    def counts(self) -> dict[tuple[str, str], int]:
        """How many there are by connector and status, of those that are not over."""
        sql = (
            "SELECT connector, status, count(*) FROM deliveries WHERE status IN ('pending', 'sending', 'unknown', "
            "'held', 'failed') AND connector IS NOT NULL GROUP BY connector, status"
        )
        return {(str(name), str(status)): int(count) for name, status, count in self._session.rows(sql)}

    def prune(self, before: int, limit: int) -> int:
        """Delete what is over and was stored before that time; how many. Ids are read, which are in order of time."""
        return self.prune_below(first_id_at(before), limit)

    def prune_below(self, number: int, limit: int) -> int:
        """The same, below an id."""
        sql = "SELECT id FROM deliveries WHERE id < ? AND open = 0 AND held_for IS NULL ORDER BY id LIMIT ?"
        numbers = self._column(sql, number, limit)
        if numbers:
            self._session.delete_in("delivery_attempts", "delivery_id", numbers)
            self._session.delete_in("deliveries", "id", numbers)
        return len(numbers)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def begin_attempt(self, row: AttemptRow) -> None:
        self._attempts.add(row)

    def end_attempt(self, number: int, *, ok: bool | None, error: str | None, ms: int | None) -> None:
        self._session.execute(
            "UPDATE delivery_attempts SET ok = ?, error = ?, ms = ? WHERE id = ?",
            (None if ok is None else int(ok), error, ms, number),
        )

    def tried_between(self, delivery: int) -> tuple[int, int] | None:
        """When the first and the last attempt were made."""
        found = self._session.rows("SELECT min(at), max(at) FROM delivery_attempts WHERE delivery_id = ?", (delivery,))
        return (int(found[0][0]), int(found[0][1])) if found and found[0][0] is not None else None

    def open_attempt(self, delivery: int) -> AttemptRow | None:
        """The last attempt, if its result was not recorded."""
        found = self.attempts(delivery)
        return found[-1] if found and found[-1].ok is None and found[-1].error is None else None

    def attempts(self, delivery: int) -> list[AttemptRow]:
        """The latest 500, in order."""
        return self._attempts.all("WHERE delivery_id = ? ORDER BY id DESC LIMIT 500", delivery)[::-1]

    def attempts_of(self, deliveries: Sequence[int]) -> dict[int, list[AttemptRow]]:
        """Those of many messages, in order."""
        found: dict[int, list[AttemptRow]] = {}
        for row in sorted(self._attempts.among("delivery_id", deliveries)):
            found.setdefault(row.delivery_id, []).append(row)
        return found

    def attempt_before(self, connector: str, span: tuple[int, int], times: int) -> int | None:
        """When the attempt was made that is so many back, if it lies in the span; later ones are of another clock."""
        sql = (
            "SELECT at FROM delivery_attempts WHERE connector = ? AND at > ? AND at <= ? "
            "ORDER BY at DESC LIMIT 1 OFFSET ?"
        )
        return self._number(sql, connector, *span, times - 1)

    # -- connectors and interactions ----------------------------------------------------------------------------------

    def connectors(self, *, removed: bool = False) -> list[ConnectorRow]:
        """In the order in which they were first registered."""
        return self._connectors.all(f"{'' if removed else 'WHERE removed_at IS NULL'} ORDER BY position")

    def put_connector(self, row: ConnectorRow) -> None:
        self._connectors.put(row, key=("name",))

    def serialize(self) -> None:
        """Lock: no other transaction changes connectors until this one ends."""
        self._session.serialize("connectors")

    def touch(self, item: Interaction) -> None:
        self._interactions.put(item, key=("agent", "connector"))

    def interactions(self) -> list[Interaction]:
        return self._interactions.all("ORDER BY at DESC, id DESC LIMIT 1000")

    # -- changes ------------------------------------------------------------------------------------------------------

    def last_result(self, job_id: int) -> tuple[str, str] | None:
        found = self._session.rows("SELECT outcome, hash FROM delivery_last WHERE job_id = ?", (job_id,))
        return (str(found[0][0]), str(found[0][1])) if found else None

    def keep_result(self, job_id: int, outcome: str, output_hash: str) -> None:
        self._session.insert_many(
            "delivery_last",
            ("job_id", "outcome", "hash"),
            [(job_id, outcome, output_hash)],
            "ON CONFLICT (job_id) DO UPDATE SET outcome = excluded.outcome, hash = excluded.hash",
        )
