"""What a source of work items is: it lists them, claims one for us, and receives the result.

An item is claimed in our store first, so that the nodes of one store never meet at the source. What the source knows of
our claim is noted in the store before the source can act on it, so that a crash at any point leaves no doubt about who
holds the item.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from wakeful.errors import SchedulerError
from wakeful.kernel.rules.outcome import TransientError


class SourceFailed(SchedulerError):
    """A source cannot be used as it is: its settings or its files need a person."""

    code = "work_source"
    traced = False


class SourceAway(SourceFailed, TransientError):
    """A source cannot be reached now; later may be better."""


class SourceLimited(SourceFailed):
    """A source asks us to wait until `until` (epoch milliseconds)."""

    def __init__(self, message: str, until: int) -> None:
        super().__init__(message)
        self.until = until


class SourceItem(NamedTuple):
    """An item that waits at its source."""

    external_id: str
    title: str
    body: str | None = None
    version: str | None = None  # grows with every change at the source, if it has versions


class SourceListing(NamedTuple):
    """What waits at a source, the first to be worked on first; `is_whole`: nothing else does."""

    found: list[SourceItem]
    is_whole: bool


class InHand(NamedTuple):
    """An item that our store has claimed: what the source calls it, and what was noted about it."""

    external_id: str
    mark: Mapping[str, Any]
    agent: str
    lease_ms: int  # how long the claim holds for others who look

    @property
    def nonce(self) -> str:
        return str(self.mark["nonce"])


class ItemHeld(NamedTuple):
    """The source knows the item as ours."""

    title: str | None = None
    body: str | None = None
    path: str | None = None
    is_own: bool = False  # nobody but the user of this process could have written it


class Lost(NamedTuple):
    """Another worker has the item now."""


class Missing(NamedTuple):
    """The item no longer waits at the source."""


class ItemSettled(NamedTuple):
    """We reported the item before a crash; `status` is done or failed."""

    status: str


Claimed = ItemHeld | Lost | Missing | ItemSettled
Note = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Stores what must be known about a claim before the next step is taken."""


class WorkSource(Protocol):
    """A source of work items. Each call may fail with SourceFailed."""

    @property
    def key(self) -> str:
        """The key of this source, as it is stored with its items."""

    async def waiting(self, most: int) -> SourceListing:
        """The items that wait, so many at most."""

    def is_back(self, found: SourceItem, mark: Mapping[str, Any]) -> bool:
        """Whether an item that was reported waits again. Called in a transaction: nothing here takes time."""

    async def claim(self, item: InHand, note: Note) -> Claimed:
        """Make the item ours at the source, or find that it is."""

    async def release(self, item: InHand, note: Note) -> None:
        """Let it wait again."""

    async def report(self, item: InHand, status: str, text: str) -> Mapping[str, Any]:
        """Say that it is done or failed; what must be kept to see it come back."""
