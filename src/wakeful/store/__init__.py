"""Where jobs live. One narrow interface; SQLite behind it. All SQL of the project is in this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.errors import StoreUnusable

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store


def make_store(url: str, clock: Clock, *, inline: bool = False) -> Store:
    """The store behind a URL, not yet opened."""
    scheme = str(url).partition(":")[0]
    if scheme == "sqlite":
        from wakeful.store.sqlite import SqliteStore

        return SqliteStore(url, clock, inline=inline)
    message = f"{url!r} is not a store's address: write sqlite:///file.db."
    raise StoreUnusable(message)
