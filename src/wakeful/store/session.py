"""The few things a dialect must be able to do inside one transaction.

The verbs in `jobs`, `runs`, `lanes` and the others are written once on top of this. Queries use `?` for parameters,
`RETURNING` and `ON CONFLICT`, which both dialects know; a dialect only decides how a batch of rows travels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from wakeful.store.alarm_watermark import Watermark

Row = Sequence[Any]


class OldTransaction(NamedTuple):
    """A transaction that a session holds open."""

    pid: int | None  # of the server process; None for a prepared transaction
    name: str  # of the program, or of the prepared transaction
    user: str
    age_ms: int


class Session(Protocol):
    """An open transaction."""

    now: int
    """When it began."""

    def execute(self, sql: str, params: Row = ()) -> int:
        """Run one statement; how many rows it touched."""

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        """All rows of a small query."""

    def bulk(self, columns: Sequence[str], source: str, params: Row = ()) -> list[Row]:
        """All rows of `SELECT columns FROM source`, made for hundreds of rows at once; order is that of `source`."""

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> int:
        """Insert a batch; how many rows went in."""

    def insert_soon(self, table: str, columns: Sequence[str], rows: Sequence[Row], on_conflict: str = "") -> None:
        """Insert a batch, at the latest before the next question; a mistake in it may show only then."""

    def update_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Set the columns after the first on the rows whose first column matches; when, and its mistakes, as above."""

    def select_in(
        self, columns: Sequence[str], table: str, key: str, keys: Sequence[Any], *, lock: bool = False, only: str = ""
    ) -> list[Row]:
        """The rows whose `key` is one of `keys`, in no particular order; `lock`: because what they say decides.

        `only`: a further condition, such as that of the index to find them by.
        """

    def append_events(self, at: int, groups: Sequence[Row]) -> list[tuple[int, int]]:
        """Add groups of events, each with its stream, how many there are, and their body; (id, seq) of each.

        Until this transaction ends, no other one adds any.
        """

    def contains(self, column: str) -> str:
        """The condition that the column is like a pattern of small letters, whose ASCII letters may be large there."""

    def delete_in(self, table: str, key: str, keys: Sequence[Any]) -> int:
        """Delete the rows whose `key` is one of `keys`; how many there were."""

    # -- what it takes not to be alone. Where only one transaction can write at a time, all of this is nothing. ------

    @property
    def exclusive(self) -> bool:
        """Whether no other process can write while this transaction does."""

    @property
    def repeated(self) -> bool:
        """Whether the transaction was begun before and undone: something in it was not as it was taken to be."""

    @property
    def lock_clause(self) -> str:
        """What a read that decides a write must end with, so that no other decides the same; it waits for them."""

    @property
    def skip_clause(self) -> str:
        """The same for a read that can skip rows locked by another transaction."""

    @property
    def watermark(self) -> Watermark | None:
        """From where on alarms need be asked for; None: from the first."""

    def first_alarm_below(self) -> int | None:
        """The first alarm below the watermark."""

    def among(self, select: str) -> str:
        """The condition `IN (select)`, without rows locked by another transaction."""

    def serialize(self, what: str) -> None:
        """Lock: until the transaction ends, no other one does `what`."""

    def select_serialized(
        self, what: str, columns: Sequence[str], table: str, key: str, keys: Sequence[Any]
    ) -> list[Row]:
        """`serialize`, and then the rows whose `key` is one of `keys`, of which none is given twice."""

    def announce(self) -> None:
        """With the commit, notify the other processes that there is something to look at."""

    def oldest_transaction(self) -> OldTransaction | None:
        """The transaction that has kept the database from cleaning up for longest, if there is one."""

    def database_now(self) -> int | None:
        """The database's own clock, which all nodes share; None where that is the clock everybody has anyway."""
