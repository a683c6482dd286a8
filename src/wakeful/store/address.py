"""The address of a store as it may be shown, and what looks like an address and is none.

A password can be in an address in more than one place, and a mistake in writing it can move it to others. So what is
shown is built from the parts that are known to hold none; unclear parts are left out.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from wakeful.errors import StoreUnusable

HIDDEN = "…"

#: Settings of a connection that hold no secret.
_OPEN = frozenset(
    (
        *("application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "gssencmode", "host"),
        *("hostaddr", "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "load_balance_hosts"),
        *("options", "port", "service", "sslcert", "sslkey", "sslmode", "sslrootcert", "target_session_attrs"),
        *("tcp_user_timeout", "user"),
    )
)
_KEYWORDS = sorted({*_OPEN, "passfile", "password", "servicefile", "sslpassword"}, key=len, reverse=True)
# Compiled with their first use: every program that imports Wakeful would pay for it, and few need them.
_KEYWORD = rf"(?:^|\s)({'|'.join(_KEYWORDS)})\s*=\s*('(?:[^'\\]|\\.)*'|\S*)"
_SCHEME = r"(?i:[a-z][a-z0-9+.-]*://)"
_CREDENTIALS = r"[^/\s:@]*:[^/\s]*@"

_ACCOUNT = r"[^:/?#=&@\s]*"
_HOSTS = r"(?:(?:\[[^\]@]*\]|[^:@\[\]=&\s,]*)(?::\d*)?(?:,|$))*"
_PLACE = r"(?s)(?P<hosts>[^/?]*)(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?"


def not_an_address(said: object) -> str:
    """The sentence about an address of no kind of store; it holds no password."""
    shown = shown_url(said) if isinstance(said, str) and ":" in said else said
    return f"{shown!r} is not a store's address: write sqlite:///file.db, or postgresql://user@host/database."


def shown_url(url: str) -> str:
    """The address without any password in it: user, servers, database, and the settings known to hold no secret."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        return url
    if not re.match(_SCHEME, url):
        return HIDDEN
    before_path = rest.partition("/")[0]
    account, at, servers = before_path.rpartition("@")
    user = account.partition(":")[0]
    place = re.fullmatch(_PLACE, servers + rest[len(before_path) :])
    if place is None or not _is_readable(user, place["hosts"], unquote(place["database"] or "")):
        return f"{scheme}://{HIDDEN}"
    database = f"/{place['database']}" if place["database"] is not None else ""
    kept = [pair for pair in (place["query"] or "").split("&") if _may_be_shown(*pair.partition("=")[::2])]
    return f"{scheme}://{user}{at}{place['hosts']}{database}{'?' if kept else ''}{'&'.join(kept)}"


def _is_readable(user: str, hosts: str, database: str) -> bool:
    """Whether these are what they seem; a sign that belongs to none of them shows that a password was split."""
    return bool(re.fullmatch(_ACCOUNT, user) and re.fullmatch(_HOSTS, hosts)) and not re.search("[@:=?/]", database)


def _may_be_shown(name: str, value: str) -> bool:
    text = unquote(value)
    # A database's name may be a whole connection string, and its password with it.
    return name in _OPEN and "@" not in text and (name == "options" or "=" not in text)


def refuse_keywords(said: str) -> None:
    """StoreUnusable for a connection string or an address without its scheme; the sentence holds no password."""
    if re.match(_SCHEME, said):
        return
    given = {match[1]: _unquoted(match[2]) for match in re.finditer(_KEYWORD, said)}
    if given:
        message = (
            f"A store on PostgreSQL is named by a URL, not by a connection string: write {_url(given)}, with the "
            "password in ~/.pgpass or in PGPASSWORD."
        )
        raise StoreUnusable(message)
    if said.startswith(("postgresql:", "postgres:")) or re.match(_CREDENTIALS, said):
        message = "This is not a store's address: write a file's path, or postgresql://user@host:5432/database."
        raise StoreUnusable(message)


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1] if value[:1] == "'" and value[-1:] == "'" and len(value) > 1 else value)


def _url(given: dict[str, str]) -> str:
    user = f"{quote(given['user'], safe='')}@" if given.get("user") else ""
    host = given.get("host") or given.get("hostaddr") or ""
    port = f":{given['port']}" if host and given.get("port", "").isdigit() else ""
    name = quote(given.get("dbname", ""), safe="") or "database"
    rest = [f"{key}={quote(value, safe='')}" for key, value in given.items() if key in _OPEN - _IN_PLACE and value]
    return f"postgresql://{user}{quote(host, safe=',') or 'host'}{port}/{name}{'?' if rest else ''}{'&'.join(rest)}"


_IN_PLACE = frozenset(("user", "host", "hostaddr", "port", "dbname"))
