"""Tokens: who may call over the network, and with which role.

A token is 256 random bits behind `wk_`. It is shown once, when it is made; the store keeps its SHA-256 alone, so
a reader of the store learns no token. A name is taken until its token is revoked, and free again after that. Who
gets a name that was used before inherits nothing: jobs of that owner have none from then on, and keys are free.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

from wakeful.errors import InvalidSetting, TokenExists, TokenNotFound
from wakeful.kernel.actions.recording import Origin, note_other
from wakeful.store.owners import Owned
from wakeful.store.records import TokenRow

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

PREFIX = "wk_"
ROLES = ("viewer", "operator", "admin", "agent")
LONGEST_NAME = 100
LONGEST_SECRET = 200  # no token of ours is longer; what is need not be hashed


def new_secret() -> str:
    """A token that cannot be guessed."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """The stored form of a token. Its 256 bits are random, so a plain hash is as good as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def create(tx: Transaction, name: str, role: str, secret: str, apart: tuple[str, ...] = ()) -> TokenRow:
    """Store a new token under a free name. `apart`: kinds whose jobs have owners that are not tokens."""
    check_name(name)
    if role not in ROLES:
        raise InvalidSetting(f"A token's role is one of {', '.join(ROLES)}, not {role!r}.")
    token = TokenRow(hash_of(secret), name, role, tx.now, None, None)
    had = tx.access.was_used(name)
    if not tx.access.add_token(token):
        raise TokenExists(f"A token named {name!r} already exists: revoke it first, or choose another name.")
    if had:
        tx.jobs.disown(Owned(name, apart=apart), tx.now)
        tx.access.forget_answers(name)
    return token


def create_first(tx: Transaction, name: str, secret: str) -> bool:
    """Store an admin's token if the store never had any; whether it did so."""
    if tx.access.tokens(revoked=True):
        return False
    # Of two nodes that start at once, one is first.
    return tx.access.add_token(TokenRow(hash_of(secret), name, "admin", tx.now, None, None))


def check_name(name: object) -> None:
    """A name must be usable in a table, a log line and a command."""
    good = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
    if not good:
        raise InvalidSetting(f"A token's name is a text of 1 to {LONGEST_NAME} printable characters, not {name!r:.80}.")


def revoke(tx: Transaction, name: str, origin: Origin) -> None:
    """From the commit on the token opens nothing."""
    if not tx.access.revoke_token(name, tx.now):
        raise TokenNotFound(f"There is no token named {name!r}: see wakeful token list.")
    note_other(tx, origin, "revoke_token", origin.action, name)


def find(tx: Transaction, secret: str) -> TokenRow | None:
    """The valid token that this is, or None."""
    if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET:
        return None
    wanted = hash_of(secret)
    found = tx.access.token(wanted)
    if found is None or found.revoked_at is not None or not hmac.compare_digest(found.hash, wanted):
        return None
    return found
