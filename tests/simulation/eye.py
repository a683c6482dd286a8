"""A connection of its own to the database of a fleet, for its invariants."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row


class Eye:
    """Reads the database beside the nodes, with the statements of the invariants."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)

    def execute(self, sql: str, params: tuple[object, ...] = ()) -> Any:
        return self._connection.execute(sql.replace("%", "%%").replace("?", "%s"), params)

    def close(self) -> None:
        self._connection.close()
