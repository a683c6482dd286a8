"""Signing in to the dashboard: a link with a one-time code, or a token, becomes a session behind a cookie.

A code is valid for ten minutes and once. A session lasts thirty days, until it is signed out, or until the token it was
opened with is revoked. The store keeps hashes alone, so a reader of the store cannot sign in.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from wakeful.errors import InvalidSetting
from wakeful.kernel.actions.tokens import LONGEST_SECRET, check_name, hash_of
from wakeful.store.records import PageCode, PageSession, TokenRow

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

PREFIX = "wks_"
ROLES = ("viewer", "operator", "admin")
CODE_MS = 10 * 60_000
SESSION_MS = 30 * 86_400_000
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another
_CODE_LENGTH = 20


def new_code() -> str:
    """A code that cannot be guessed within its ten minutes, and that a person can type on a phone."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))


def new_session() -> str:
    """The content of a cookie."""
    return PREFIX + secrets.token_urlsafe(32)


def store_code(tx: Transaction, code: str, name: str, role: str) -> None:
    """From the commit on, `code` signs in as `name` with that role, once, within ten minutes."""
    check_name(name)
    if role not in ROLES:
        raise InvalidSetting(f"A link's role is one of {', '.join(ROLES)}, not {role!r}.")
    tx.access.add_code(PageCode(hash_of(code), name, role, tx.now + CODE_MS))


def redeem(tx: Transaction, code: str, secret: str) -> PageSession | None:
    """Open a session for a valid code, which is used up; None for any other."""
    if len(code) > LONGEST_SECRET:
        return None
    found = tx.access.take_code(hash_of(code.strip().lower()))
    if found is None or found.expires_at < tx.now:
        return None
    return _open(tx, secret, found.name, found.role, None)


def open_with_token(tx: Transaction, token: TokenRow, secret: str) -> PageSession | None:
    """Open a session for a valid token; None for one of an agent, which has no pages."""
    return _open(tx, secret, token.name, token.role, token.hash) if token.role in ROLES else None


def _open(tx: Transaction, secret: str, name: str, role: str, token_hash: str | None) -> PageSession:
    session = PageSession(hash_of(secret), name, role, token_hash, tx.now, tx.now + SESSION_MS)
    tx.access.add_session(session)
    return session


def find(tx: Transaction, secret: str) -> PageSession | None:
    """The session behind a cookie, or None where it is over."""
    if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET:
        return None
    session = tx.access.session(hash_of(secret))
    if session is None or session.expires_at < tx.now:
        return None
    if session.token_hash is not None:
        token = tx.access.token(session.token_hash)
        if token is None or token.revoked_at is not None or token.role != session.role:
            return None
    return session


def sign_out(tx: Transaction, secret: str) -> None:
    """The session is over, on every node."""
    tx.access.end_session(hash_of(secret))
