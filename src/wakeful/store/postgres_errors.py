"""What PostgreSQL's errors mean to the person who runs Wakeful: each becomes one sentence that says what to do.

No sentence shows the password.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import psycopg
from psycopg import errors as pg

from wakeful.errors import (
    InvalidJob,
    SchedulerError,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreRefused,
    StoreUnreachable,
    StoreUnusable,
)

if TYPE_CHECKING:
    from wakeful.store.postgres_address import PostgresAddress

#: The transaction did nothing, and doing it again is right.
AGAIN = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation)
#: A pooler gave us another server connection than the one that knows our prepared statements.
POOLED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
#: The server ends the connection, or is one that must not be kept: shutdown, crash, starting up, a standby ...
_GONE = {"57P01", "57P02", "57P03", "25006"}
#: ... or a limit on idle sessions, idle transactions or the length of a transaction was reached.
_ENDED = {"57P05", "25P03", "25P04"}

#: Classes of errors whose cause is what was to be written (or a row it met), not the server.
_REFUSED = {"21", "22", "23", "42", "54"}


class _KnownError(NamedTuple):
    """An error we know: by its class, or by its words where it comes without a code, as while connecting."""

    kinds: tuple[type[Exception], ...]
    words: str
    family: type[StoreError]
    sentence: str

    def fits(self, error: Exception) -> bool:
        if getattr(error, "sqlstate", None):
            return isinstance(error, self.kinds)
        by_words = bool(self.words) and isinstance(error, psycopg.OperationalError)
        return by_words and re.search(self.words, str(error)) is not None


_KNOWN = (
    _KnownError(
        (pg.DiskFull,), "", StoreFull, "The disk of {server} is full: free some space; nothing was half written."
    ),
    _KnownError(
        (pg.LockNotAvailable, pg.SerializationFailure, pg.DeadlockDetected),
        "",
        StoreLocked,
        "{address} has been locked by another process for too long: end what holds it, then try again.",
    ),
    _KnownError(
        (pg.QueryCanceled,),
        "",
        StoreUnreachable,
        "{server} canceled a statement ({reason}): check its load and its statement_timeout; nothing was stored.",
    ),
    _KnownError(
        (pg.ReadOnlySqlTransaction,),
        "session is read-only|server is not in hot standby mode|server is in hot standby mode",
        StoreUnreachable,
        "{address} does not accept writes ({reason}): connect to the primary, and check default_transaction_read_only.",
    ),
    _KnownError(
        (pg.TooManyConnections,),
        "too many clients|remaining connection slots|too many connections|no more connections allowed",
        StoreUnreachable,
        "{server} takes no more connections: end some, or raise its max_connections.",
    ),
    _KnownError(
        (),
        "no pg_hba.conf entry|pg_hba.conf rejects",
        StoreUnusable,
        "{server} does not accept this connection ({reason}): allow this host, user and database in its pg_hba.conf; "
        "if that asks for TLS, add sslmode=require to the address.",
    ),
    _KnownError(
        (pg.InvalidPassword, pg.InvalidAuthorizationSpecification),
        "password authentication failed|no password supplied|role .* does not exist",
        StoreUnusable,
        "{server} does not let us in ({reason}): check the user and the password of {address}.",
    ),
    _KnownError(
        (),
        # A connection that breaks says "SSL", too: only what was said while connecting and is no broken line.
        r"does not support SSL|certificate|SSL error: (?!unexpected eof|.*Connection reset)|private key",
        StoreUnusable,
        "The TLS connection to {server} failed ({reason}): check sslmode and the certificates named in the address.",
    ),
    _KnownError(
        (),
        "unsupported startup parameter",
        StoreUnusable,
        "The pooler at {server} does not pass on a setting of the address ({reason}): leave it out, and set it for the "
        "role with ALTER ROLE.",
    ),
    _KnownError(
        (),
        r"invalid .*(value|option)|invalid value for parameter|unrecognized configuration parameter",
        StoreUnusable,
        "A parameter in the address of the store is wrong ({reason}): correct it.",
    ),
    _KnownError(
        (pg.InvalidCatalogName,),
        "database .* does not exist|no such database",
        StoreUnusable,
        "There is no database {database} on {server}: create it, or name another.",
    ),
    _KnownError(
        (pg.InsufficientPrivilege, pg.InvalidSchemaName),
        "",
        StoreUnusable,
        "We may not do our work in {address} ({reason}): let its owner grant us CREATE on the schema.",
    ),
)

_STANDBY = "{address} is a standby and cannot be written: connect to the primary."


def lost(error: BaseException) -> bool:
    """Whether the connection is of no use after this error."""
    if not isinstance(error, psycopg.Error):
        return False
    if _standby(error):
        return True
    code = error.sqlstate
    if code is None:  # the driver's own: no server said so
        return isinstance(error, psycopg.OperationalError)
    return code in _GONE | _ENDED or code.startswith("08")


def _standby(error: BaseException) -> bool:
    """A server that follows another refuses even to begin a transaction that writes, in these words alone."""
    return isinstance(error, pg.FeatureNotSupported) and "recovery" in str(error)


def explain(error: Exception, address: PostgresAddress) -> SchedulerError:
    """What the database's error means to the person who runs this."""
    reason = address.hide(_reason(error))
    facts = {"address": address, "server": address.server, "database": address.database, "reason": reason}
    if _standby(error):
        return StoreUnreachable(_STANDBY.format(**facts))
    for known in _KNOWN:
        if known.fits(error):
            return known.family(known.sentence.format(**facts))
    if isinstance(error, UnicodeError):
        return InvalidJob("A text with half of a surrogate pair in it cannot be stored.")
    if isinstance(error, psycopg.DataError) and "NUL" in reason:
        return InvalidJob("A text with a NUL character in it cannot be stored.")
    if getattr(error, "sqlstate", None) in _ENDED:
        return StoreUnreachable(f"{address.server} ended the connection ({reason}): work continues over a new one.")
    if lost(error):
        message = (
            f"{address.server} cannot be reached ({reason}): check that the server runs. Jobs continue when it answers."
        )
        return StoreUnreachable(message)
    if isinstance(error, psycopg.Error) and (error.sqlstate or "")[:2] in _REFUSED:
        return StoreRefused(f"The database {address} failed: {reason}.")
    message = f"{address.server} cannot work right now ({reason}): look at its log. Jobs continue when it can."
    return StoreUnreachable(message)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[0] if lines else type(error).__name__
    for mark in ("failed: FATAL:", "failed: ", "FATAL:", "ERROR:"):
        said = said.rpartition(mark)[2].strip() or said
    return said.rstrip(".")
