"""Where jobs live. One narrow interface; SQLite or PostgreSQL behind it. All SQL of the project is in this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.errors import StoreUnusable
from wakeful.store.address import not_an_address, refuse_keywords

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store


def make_store(url: str, clock: Clock, *, inline: bool = False) -> Store:
    """The store behind a URL, not yet opened."""
    scheme = str(url).partition(":")[0]
    refuse_keywords(str(url))
    if scheme == "sqlite":
        from wakeful.store.sqlite import SqliteStore

        return SqliteStore(url, clock, inline=inline)
    if scheme in ("postgresql", "postgres"):
        try:
            from wakeful.store.postgres import PostgresStore
        except ImportError as error:
            message = "A store on PostgreSQL needs its driver: pip install 'wakeful[postgres]'."
            raise StoreUnusable(message) from error
        return PostgresStore(url, clock, inline=inline)
    raise StoreUnusable(not_an_address(url))
