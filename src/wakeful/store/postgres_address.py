"""Which PostgreSQL database is meant: how to connect, what is shown of it, and where its files lie on this machine."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from wakeful.errors import StoreUnusable
from wakeful.store.address import shown_url

#: Unless the address says otherwise. A server that vanished without a word is noticed within half a minute.
_CONNECTION = {
    "connect_timeout": "5",
    "application_name": "wakeful",
    "client_encoding": "UTF8",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


DEFAULT_SCHEMA = "public"
#: Where the driver looks for what the address does not say.
_FROM_ENVIRONMENT = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "service": "PGSERVICE",
}

_UNREADABLE = (
    "The store's address cannot be read: write postgresql://user:password@host:5432/database, "
    "with %40 for an @ in the password, %2F for a / and %3A for a colon."
)


class PostgresAddress:
    """A server and a database, from a URL; `str()` is for people and leaves the password out."""

    def __init__(self, url: str) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error as error:
            # The driver's own words may quote the password, so neither they nor the address are repeated.
            raise StoreUnusable(_misspelt(str(error)) or _UNREADABLE) from None
        parts = "".join(str(given.get(name) or "") for name in ("host", "port", "dbname"))
        user = given.get("user")
        misplaced = "@" in parts or "=" in str(given.get("dbname") or "") or re.search("[?/=]", str(user or ""))
        if misplaced or not re.fullmatch(r"[\d,]*", str(given.get("port") or "")):
            raise StoreUnusable(_UNREADABLE)  # what follows a stray @, / or : is a piece of the password
        self.settings: dict[str, Any] = {**_CONNECTION, **given}
        self._secrets = [str(given[name]) for name in ("password", "sslpassword") if given.get(name)]
        host = given.get("host") or given.get("hostaddr") or ""
        if "," in str(host):  # of several servers the one that can be written, whichever that is today
            self.settings.setdefault("target_session_attrs", "read-write")
        self.server = ",".join(_join(str(host), str(given.get("port") or ""))) or "this machine"
        self.database = str(given.get("dbname") or user or "")
        self._shown = shown_url(url)

    def __str__(self) -> str:
        return self._shown

    def hide(self, text: str) -> str:
        """The text without any password."""
        for secret in self._secrets:
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
        return text

    def folder(self, schema: str | None = None) -> Path:
        """The folder on this machine for what does not fit into a row.

        Each server, database, schema and service has its own; what the server says about the schema is the truth.
        """
        home = Path.home()
        state = os.environ.get("XDG_STATE_HOME", "")
        if sys.platform == "darwin":
            base = home / "Library" / "Application Support"
        else:
            base = Path(state) if state.startswith("/") else home / ".local" / "state"
        mark = hashlib.sha256(self._identity(schema).encode()).hexdigest()[:12]
        return base / "wakeful" / f"postgresql-{mark}.logs"

    def _identity(self, schema: str | None) -> str:
        """What distinguishes this store from others; what is as usual adds nothing to server and database."""
        more = {} if schema in (None, DEFAULT_SCHEMA) else {"schema": schema}
        for name, variable in _FROM_ENVIRONMENT.items():
            if name == "service" and self.settings.get(name):
                more[name] = self.settings[name]
            elif not self.settings.get(name) and os.environ.get(variable):
                more[name] = os.environ[variable]
        return f"{self.server}/{self.database}" + "".join(f"?{name}={value}" for name, value in sorted(more.items()))


def _join(hosts: str, ports: str) -> list[str]:
    names, numbers = hosts.split(","), ports.split(",")
    numbers += numbers[-1:] * (len(names) - len(numbers))
    return [f"{name}:{number}" if number and name else name for name, number in zip(names, numbers, strict=False)]


def _misspelt(said: str) -> str | None:
    """What to say of a parameter the driver does not know; it may be a piece of the password, and is not repeated."""
    found = re.search(r'invalid URI query parameter: "(.*)"', said)
    if found is None:
        return None
    known = [option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()]
    near = difflib.get_close_matches(found[1], known, n=1, cutoff=0.8)
    hint = f"did you mean {near[0]}?" if near else "check its spelling, and write %2F for a / in the password."
    return f"The store's address has a parameter that PostgreSQL does not know: {hint}"
