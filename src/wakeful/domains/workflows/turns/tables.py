"""What decides whose turn it is: the oldest pending events, and what the last runs worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wakeful.domains.workflows.tables import HandlerRow


class Worked(NamedTuple):
    """What runs worked on: how many events from a producer or a person; and events by topic."""

    new: int
    consumed: Mapping[str, int]
    published: Mapping[str, int]


class Turns(Verbs):
    """Questions about the order of handlers."""

    def oldest(self, workflow: str, topics: Collection[str]) -> dict[str, tuple[int, int]]:
        """By topic, when its oldest pending event was published, and the event's number."""
        if not topics:
            return {}
        one = (
            "SELECT * FROM (SELECT topic, at, seq FROM workflow_events WHERE workflow = ? AND topic = ? "
            "AND status = 'pending' ORDER BY seq LIMIT 1) e"
        )
        sql = " UNION ALL ".join([one] * len(topics))
        rows = self._session.rows(sql, [value for topic in topics for value in (workflow, topic)])
        return {str(topic): (int(at), int(seq)) for topic, at, seq in rows}

    def oldest_left(self, workflow: str, handlers: Collection[HandlerRow]) -> dict[str, tuple[int, int]]:
        """By handler, the oldest pending event that it has not passed over: when it was published, and its number.

        Passed over is what is older than the last event of its topic that the handler's last run took; and where that
        run took none of the topic, what was there when the last committed run began.
        """
        asked = [(handler, topic) for handler in handlers for topic in handler.topics()]
        if not asked:
            return {}
        last = "SELECT max(r.id) FROM workflow_runs r WHERE r.job_id = ?"
        taken = f"SELECT max(t.seq) FROM workflow_events t WHERE t.run_id = ({last}) AND t.topic = ?"
        one = (
            "SELECT * FROM (SELECT CAST(? AS text) AS handler, at, seq FROM workflow_events WHERE workflow = ? "
            f"AND topic = ? AND status = 'pending' AND seq > COALESCE(({taken}), ?) ORDER BY seq LIMIT 1) e"
        )
        values = [
            value
            for handler, topic in asked
            for value in (handler.name, workflow, topic, handler.job_id, topic, handler.seen)
        ]
        found: dict[str, tuple[int, int]] = {}
        for name, at, seq in self._session.rows(" UNION ALL ".join([one] * len(asked)), values):
            if name not in found or int(seq) < found[name][1]:
                found[str(name)] = int(at), int(seq)
        return found

    def worked_on(self, workflow: str, rounds: int) -> Worked:
        """What so many last runs consumed and published."""
        last = "SELECT id FROM (SELECT id FROM workflow_runs WHERE workflow = ? ORDER BY id DESC LIMIT ?) r"
        brought = "SELECT m.id FROM workflow_runs m WHERE m.id = e.made_by AND m.type = 'producer'"
        consumed = (
            f"SELECT e.topic, CASE WHEN e.made_by IS NULL OR EXISTS ({brought}) THEN 1 ELSE 0 END AS brought, count(*) "
            f"FROM workflow_events e WHERE e.run_id IN ({last}) GROUP BY 1, 2"
        )
        made = f"SELECT e.topic, count(*) FROM workflow_events e WHERE e.made_by IN ({last}) GROUP BY 1"
        taken: dict[str, int] = {}
        new = 0
        for topic, is_new, count in self._session.rows(consumed, (workflow, rounds)):
            new += int(count) if is_new else 0
            taken[str(topic)] = taken.get(str(topic), 0) + int(count)
        published = {str(topic): int(count) for topic, count in self._session.rows(made, (workflow, rounds))}
        return Worked(new, taken, published)

    def published_by(self, workflow: str, runs: int = 1_000) -> dict[str, set[str]]:
        """By handler, the topics that it published to in so many last runs of the workflow."""
        sql = (
            "SELECT DISTINCT r.handler, e.topic FROM (SELECT id, handler FROM workflow_runs WHERE workflow = ? "
            "ORDER BY id DESC LIMIT ?) r JOIN workflow_events e ON e.made_by = r.id"
        )
        found: dict[str, set[str]] = {}
        for handler, topic in self._session.rows(sql, (workflow, runs)):
            found.setdefault(str(handler), set()).add(str(topic))
        return found
