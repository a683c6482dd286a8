"""The store's facts about itself, by key; and what its database can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from wakeful.store.session import OldTransaction

#: The tables whose rows have ids of their own that an `IdSource` made.
NUMBERED = (
    "jobs", "runs", "nodes", "alerts", "actions", "deliveries", "delivery_attempts", "chat_messages", "press_answers",
    "agent_events", "agent_requests", "agent_work", "workflow_actions", "workflow_events", "workflow_fixes",
    "workflow_inputs",
)  # fmt: skip


class Facts(Verbs):
    """Verbs on facts; each call is part of the transaction it was made in."""

    def of(self, keys: Sequence[str]) -> dict[str, str]:
        """These facts, locked until this transaction ends, also those that are not there yet."""
        # Alone with the facts, rather than with these rows: one that is not there yet could not be locked.
        self._session.serialize("facts")
        rows = self._session.select_in(("key", "value"), "meta", "key", keys)
        return {str(key): str(value) for key, value in rows}

    def get(self, key: str) -> str | None:
        """One fact as it is, without waiting for transactions that change others."""
        return self._text("SELECT value FROM meta WHERE key = ?", key)

    def put(self, facts: Mapping[str, object]) -> None:
        """Set facts, as text."""
        rows = [(key, str(value)) for key, value in facts.items()]
        self._session.serialize("facts")
        conflict = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self._session.insert_many("meta", ("key", "value"), rows, conflict)

    def highest_id(self) -> int:
        """The highest id the store has given to anything."""
        found = self._column(" UNION ALL ".join(f"SELECT max(id) FROM {table}" for table in NUMBERED))
        return max((int(number) for number in found if number is not None), default=0)

    # -- the database -------------------------------------------------------------------------------------------------

    def database_now(self) -> int:
        """The time by the database's clock: the only one all nodes agree on, and so the one leases are decided by."""
        found = self._session.database_now()
        return found if found is not None else self._session.now

    def listens_in_vain(self) -> bool:
        """Whether this process tries to hear of others at once, and cannot."""
        watermark = self._session.watermark
        return watermark is not None and watermark.listens_in_vain

    def oldest_transaction(self) -> OldTransaction | None:
        """The transaction that has kept the database from cleaning up for longest, as far as we may see."""
        return self._session.oldest_transaction()
