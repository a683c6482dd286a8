"""What the store remembers beside jobs and runs: events, alerts, refused starts, nodes and a few facts of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.store.nodes import HOLD_KEY, hold_level, standing_of, standing_sql
from wakeful.store.records import Alert, EventGroup, NodeRow, SkipRow, Standing
from wakeful.store.schema_version import DOMAINS_KEY, OLDEST_KEY, refuse_outgrown
from wakeful.store.snoozes import Snoozes

if TYPE_CHECKING:
    from wakeful.store.session import OldTransaction, Session

#: Made once, and without a look for circles, which no event has: every run pays for it.
_WRITE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_ALERT = ", ".join(Alert._fields)
_NODE = ", ".join(NodeRow._fields)

_OF_RUNS = "'failing', 'flapping', 'down', 'missed', 'stuck', 'no_handler', 'no_node'"
_AWAITED = (
    f"NOT (kind IN ({_OF_RUNS}) AND EXISTS (SELECT 1 FROM job_state s WHERE s.job_id = a.job_id AND s.paused = 1))"
)


class Journal(Snoozes):
    """Verbs on the journal; each call is part of the transaction it was made in."""

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._now = now
        self._pending: dict[str, list[Any]] = {}

    # -- events: collected during the transaction, written as one row per stream at its end ---------------------------

    @property
    def has_events(self) -> bool:
        """Whether this transaction has emitted anything so far."""
        return bool(self._pending)

    def emit(self, stream: str, *events: Any) -> None:
        """Add events to a stream; they become visible with the commit."""
        self._pending.setdefault(stream, []).extend(events)

    def flush(self, at: int) -> list[EventGroup]:
        """Write what was emitted; what subscribers get after the commit."""
        groups = [(stream, len(events), _WRITE(events)) for stream, events in self._pending.items()]
        self._pending.clear()
        added = self._session.append_events(at, groups) if groups else []
        return [
            EventGroup(event_id, stream, seq, at, body)
            for (stream, _, body), (event_id, seq) in zip(groups, added, strict=True)
        ]

    def events(self, after: int, stream: str | None = None, limit: int = 100) -> list[EventGroup]:
        """Groups with an id above `after`, in order."""
        where, params = "id > ?", [after]
        if stream is not None:
            where, params = "id > ? AND stream = ?", [after, stream]  # type: ignore[list-item]
        sql = f"SELECT id, stream, seq, at, body FROM events WHERE {where} ORDER BY id LIMIT ?"
        return [EventGroup._make(row) for row in self._session.rows(sql, (*params, limit))]

    def events_of(self, after: int, streams: Sequence[str] | None, limit: int) -> list[EventGroup]:
        """Groups of these streams (None: of all) with an id above `after`, in order."""
        where = "" if streams is None else f" AND stream IN ({', '.join('?' * len(streams))})"
        sql = f"SELECT id, stream, seq, at, body FROM events WHERE id > ?{where} ORDER BY id LIMIT ?"
        return [EventGroup._make(row) for row in self._session.rows(sql, (after, *(streams or ()), limit))]

    def event_ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        found = self._session.rows("SELECT min(id), max(id) FROM events")
        oldest, newest = found[0]
        return (int(oldest), int(newest)) if oldest is not None else (0, 0)

    def prune_events(self, before: int, limit: int, most: int = 2**62) -> int:
        """Delete what is older or more than `most`, among the oldest `limit`; how many there were."""
        # Stamped further ahead than history is kept: by a clock that was wrong. It would bar the way to what follows.
        ahead = 2 * self._now - before
        return self._session.execute(
            # The newest stays: from it the next one's id is counted, and readers go on from the last id they saw.
            "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) oldest "
            "WHERE (at < ? OR at > ? OR id <= (SELECT max(id) FROM events) - ?) AND id < (SELECT max(id) FROM events))",
            (limit, before, ahead, most),
        )

    # -- refused starts -------------------------------------------------------------------------------------------

    def skip(self, skips: Sequence[SkipRow]) -> None:
        """Count refused starts; one row per job and reason, with the last time."""
        merged: dict[tuple[int, str], SkipRow] = {}
        for skip in skips:  # one statement must not meet a row twice
            seen = merged.get((skip.job_id, skip.reason))
            merged[skip.job_id, skip.reason] = skip._replace(times=skip.times + seen.times) if seen else skip
        if merged:
            conflict = (
                "ON CONFLICT (job_id, reason) DO UPDATE SET times = skips.times + excluded.times, "
                "last_at = excluded.last_at, detail = excluded.detail"
            )
            self._session.insert_many("skips", SkipRow._fields, list(merged.values()), conflict)

    def skips(self, job_id: int) -> list[SkipRow]:
        """Why starts of this job were refused, the latest reason first."""
        sql = "SELECT job_id, reason, times, last_at, detail FROM skips WHERE job_id = ? AND times > 0 "
        sql += "ORDER BY last_at DESC, reason"
        return [SkipRow._make(row) for row in self._session.rows(sql, (job_id,))]

    def latest_skips(self, job_ids: Sequence[int]) -> dict[int, str]:
        """The reason for which a start of each of these jobs was last refused."""
        rows = self._session.select_in(("job_id", "last_at", "reason"), "skips", "job_id", job_ids)
        return {int(job_id): str(reason) for job_id, _, reason in sorted(map(tuple, rows))}

    # -- alerts -----------------------------------------------------------------------------------------------------

    def raise_alert(self, alert: Alert) -> tuple[Alert, bool]:
        """Open the incident, or count it again if it is open; as it is now, and whether it is new."""
        conflict = "ON CONFLICT (key) WHERE closed_at IS NULL DO NOTHING"
        known = self._count_again(alert)
        while known is None:
            if self._session.insert_many("alerts", Alert._fields, [alert], conflict):
                self._announce("opened", (alert.id, alert.kind, alert.message, alert.job_id))
                return alert, True
            known = self._count_again(alert)  # another node was quicker
        return known, False

    def _count_again(self, alert: Alert) -> Alert | None:
        found = self._session.rows(
            "UPDATE alerts SET times = times + 1, last_at = ?, message = ?, data = coalesce(?, data) "
            f"WHERE key = ? AND closed_at IS NULL RETURNING {_ALERT}",
            (alert.last_at, alert.message, alert.data, alert.key),
        )
        return Alert._make(found[0]) if found else None

    def close_alert(self, key: str, now: int) -> Alert | None:
        """The incident is over; as it is now, or None when it was not open."""
        closed = self._session.rows(
            f"UPDATE alerts SET closed_at = ? WHERE key = ? AND closed_at IS NULL RETURNING {_ALERT}", (now, key)
        )
        if not closed:
            return None
        alert = Alert._make(closed[0])
        self._announce("closed", (alert.id, alert.kind, alert.message, alert.job_id))
        return alert

    def note_alert_sent(self, alert_id: int, now: int) -> None:
        """A message about it is stored, and what was put off is no longer."""
        self._session.execute("UPDATE alerts SET notified_at = ?, snoozed_until = NULL WHERE id = ?", (now, alert_id))

    def open_alerts_of(self, kind: str) -> list[Alert]:
        """The open incidents of one kind; their keys begin with it."""
        sql = f"SELECT {_ALERT} FROM alerts WHERE closed_at IS NULL AND key > ? AND key < ? ORDER BY id"
        return [Alert._make(row) for row in self._session.rows(sql, (f"{kind}:", f"{kind};"))]

    def alert(self, alert_id: int) -> Alert | None:
        found = self._session.rows(f"SELECT {_ALERT} FROM alerts WHERE id = ?", (alert_id,))
        return Alert._make(found[0]) if found else None

    def ack_alert(self, alert_id: int, now: int) -> bool:
        """A person has seen it; False when one already had."""
        acked = self._session.rows(
            "UPDATE alerts SET acked_at = ? WHERE id = ? AND acked_at IS NULL RETURNING id, kind, message, job_id",
            (now, alert_id),
        )
        for alert in acked:
            self._announce("acked", alert)
        return bool(acked)

    def unack_alert(self, alert_id: int, acked_at: int) -> bool:
        """What was acknowledged then is not; False when it is over, or was acknowledged at another time."""
        sql = (
            "UPDATE alerts SET acked_at = NULL WHERE id = ? AND acked_at = ? AND closed_at IS NULL "
            "RETURNING id, kind, message, job_id"
        )
        found = self._session.rows(sql, (alert_id, acked_at))
        for alert in found:
            self._announce("unacked", alert)
        return bool(found)

    def reopen_alert(self, alert_id: int) -> bool:
        """The incident is not over after all; False where it is open already, as this alert or as a newer one."""
        sql = (
            "UPDATE alerts SET closed_at = NULL WHERE id = ? AND closed_at IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM alerts o WHERE o.key = alerts.key AND o.closed_at IS NULL) "
            "RETURNING id, kind, message, job_id"
        )
        found = self._session.rows(sql, (alert_id,))
        for alert in found:
            self._announce("reopened", alert)
        return bool(found)

    def _announce(self, what: str, alert: Sequence[Any]) -> None:
        """An event about an alert, with the job it is about, if it is about one."""
        alert_id, kind, message, job_id = alert
        about: dict[str, object] = {}
        if job_id is not None:
            named = self._session.rows("SELECT name FROM jobs WHERE id = ?", (job_id,))
            about = {"job_id": job_id, "job": named[0][0]} if named else {"job_id": job_id}
        self.emit("alert", {"type": what, "alert": alert_id, **about, "kind": kind, "message": message})

    def alerts_before(self, before: int | None, limit: int, *, open_only: bool) -> list[Alert]:
        """The newest first, from that id on."""
        where, params = ["1 = 1"], []
        if before is not None:
            where.append("id < ?")
            params.append(before)
        if open_only:
            where.append("closed_at IS NULL")
        sql = f"SELECT {_ALERT} FROM alerts WHERE {' AND '.join(where)} ORDER BY id DESC LIMIT ?"
        return [Alert._make(row) for row in self._session.rows(sql, (*params, limit))]

    def open_alerts(self) -> list[Alert]:
        sql = f"SELECT {_ALERT} FROM alerts WHERE closed_at IS NULL ORDER BY id"
        return [Alert._make(row) for row in self._session.rows(sql)]

    def open_alerts_about(self, job_ids: Sequence[int]) -> list[tuple[int, int]]:
        """The open alerts about these jobs, each with its job, the first first."""
        only = "closed_at IS NULL"
        rows = self._session.select_in(("id", "job_id"), "alerts", "job_id", job_ids, only=only) if job_ids else []
        return sorted((int(number), int(job_id)) for number, job_id in rows)

    def open_alert_count(self) -> int:
        return int(self._session.rows("SELECT count(*) FROM alerts WHERE closed_at IS NULL")[0][0])

    def open_alert_counts(self, but: str) -> tuple[int, int]:
        """How many open alerts no person has acknowledged, and how many one has; of all kinds but that one.

        A job that a person has paused needs nobody: what is open about its runs is left out.
        """
        sql = f"SELECT count(*), count(acked_at) FROM alerts a WHERE closed_at IS NULL AND kind <> ? AND {_AWAITED}"
        both, acked = self._session.rows(sql, (but,))[0]
        return int(both) - int(acked), int(acked)

    def newest_unacked_alert(self, but: str) -> Alert | None:
        """The newest of those that no person has acknowledged."""
        where = f"closed_at IS NULL AND acked_at IS NULL AND kind <> ? AND {_AWAITED}"
        found = self._session.rows(f"SELECT {_ALERT} FROM alerts a WHERE {where} ORDER BY id + 0 DESC LIMIT 1", (but,))
        return Alert._make(found[0]) if found else None

    def alerts(self, job_id: int | None = None, limit: int = 50) -> list[Alert]:
        where, params = ("WHERE job_id = ?", [job_id]) if job_id is not None else ("", [])
        sql = f"SELECT {_ALERT} FROM alerts {where} ORDER BY id DESC LIMIT ?"
        return [Alert._make(row) for row in self._session.rows(sql, (*params, limit))]

    # -- nodes and facts --------------------------------------------------------------------------------------------

    def join(self, node: NodeRow) -> None:
        """Become one of the nodes, unless the schema has left this code behind since the store was opened."""
        self._session.insert_many("nodes", NodeRow._fields, [node])
        # Asked after the insert: a node that raises the number locks the table before it looks which nodes are alive.
        # And who holds everything changes the facts first, then the nodes that it sees: this one, or it is seen here.
        facts = self.get_meta([OLDEST_KEY, DOMAINS_KEY, HOLD_KEY])
        refuse_outgrown(facts)
        if HOLD_KEY in facts:
            self._session.execute("UPDATE nodes SET held = ? WHERE id = ?", (hold_level(facts[HOLD_KEY]), node.id))

    def leave(self, node_id: int, now: int) -> None:
        sql = "UPDATE nodes SET stopped_at = ?, seen_at = ? WHERE id = ? AND stopped_at IS NULL"
        self._session.execute(sql, (now, now, node_id))

    def last_node(self) -> NodeRow | None:
        found = self._session.rows(f"SELECT {_NODE} FROM nodes ORDER BY id DESC LIMIT 1")
        return NodeRow._make(found[0]) if found else None

    def serving(self) -> list[NodeRow]:
        """The nodes that have not left and may start something."""
        return self._nodes("stopped_at IS NULL AND draining = 0")

    def alive(self) -> list[NodeRow]:
        """The nodes that have not left, oldest first; one of them may have died without signing off."""
        return self._nodes("stopped_at IS NULL")

    def silent(self, since: int) -> list[NodeRow]:
        """The nodes that have not left, and were last heard of before that time."""
        return self._nodes("stopped_at IS NULL AND seen_at < ?", since)

    def earlier(self, name: str) -> list[NodeRow]:
        """Incarnations of that name that never said they left."""
        return self._nodes("stopped_at IS NULL AND name = ?", name)

    def _nodes(self, where: str, *params: object) -> list[NodeRow]:
        rows = self._session.rows(f"SELECT {_NODE} FROM nodes WHERE {where} ORDER BY id", params)
        return [NodeRow._make(row) for row in rows]

    def beat(self, node_id: int, now: int, loop_at: int) -> bool | None:
        """The node is alive, and its loop last turned at `loop_at`; whether a person asked it to start nothing more.

        None when another one has taken over what it held: it must start nothing more under this id.
        """
        sql = "UPDATE nodes SET seen_at = ?, loop_at = ? WHERE id = ? AND stopped_at IS NULL RETURNING draining"
        found = self._session.rows(sql, (now, loop_at, node_id))
        return bool(found[0][0]) if found else None

    def correct_seen(self, now: int) -> None:
        """No node was seen in the future: after the database's clock was set back, silence counts from now."""
        self._session.execute("UPDATE nodes SET seen_at = ? WHERE stopped_at IS NULL AND seen_at > ?", (now, now))

    def stalled(self, since: int) -> list[NodeRow]:
        """The nodes that say they live, but whose loop has not turned since that time."""
        return self._nodes("stopped_at IS NULL AND loop_at < ?", since)

    def lives(self, node_id: int) -> bool | None:
        """As `beat` answers, without a beat; and so it stays until this transaction ends."""
        return self.standing(node_id).draining

    def standing(self, node_id: int, *, parked: bool = False) -> Standing:
        """Whether the node may claim, which stays so until this transaction ends; `parked`: also say if any job is."""
        found = self._session.rows(standing_sql(self._session.lock_clause, parked=parked), (node_id,))
        return standing_of(found[0] if found else None)

    def take_over(self, silent: NodeRow, by: int, now: int) -> bool:
        """Declare a node dead, unless it was heard of or taken over since it was read; True for exactly one caller."""
        sql = "UPDATE nodes SET stopped_at = ?, taken_by = ? WHERE id = ? AND stopped_at IS NULL AND seen_at = ?"
        return self._session.execute(sql, (now, by, silent.id, silent.seen_at)) == 1

    def database_now(self) -> int:
        """The time by the database's clock: the only one all nodes agree on, and so the one leases are decided by."""
        found = self._session.database_now()
        return found if found is not None else self._now

    def listens_in_vain(self) -> bool:
        """Whether this process tries to hear of others at once, and cannot."""
        floor = self._session.floor
        return floor is not None and floor.listens_in_vain

    def oldest_transaction(self) -> OldTransaction | None:
        """The transaction that has kept the database from cleaning up for longest, as far as we may see."""
        return self._session.oldest_transaction()

    def highest_id(self) -> int:
        """The highest id the store has given to anything."""
        found = self._session.rows(
            "SELECT max(id) FROM jobs UNION ALL SELECT max(id) FROM runs UNION ALL SELECT max(id) FROM nodes "
            "UNION ALL SELECT max(id) FROM alerts UNION ALL SELECT max(id) FROM deliveries "
            "UNION ALL SELECT max(id) FROM chat_messages"
        )
        return max((int(row[0]) for row in found if row[0] is not None), default=0)

    def node_names(self, node_ids: Sequence[int]) -> dict[int, str]:
        return {row[0]: str(row[1]) for row in self._session.select_in(("id", "name"), "nodes", "id", node_ids)}

    def get_meta(self, keys: Sequence[str]) -> dict[str, str]:
        # Alone with the facts, rather than with these rows: one that is not there yet could not be locked.
        self._session.serialize("facts")
        rows = self._session.select_in(("key", "value"), "meta", "key", keys)
        return {str(key): str(value) for key, value in rows}

    def fact(self, key: str) -> str | None:
        """One fact as it is, without waiting for transactions that change others."""
        found = self._session.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def set_meta(self, facts: Mapping[str, object]) -> None:
        rows = [(key, str(value)) for key, value in facts.items()]
        self._session.serialize("facts")
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._session.insert_many("meta", ("key", "value"), rows, conflict)
