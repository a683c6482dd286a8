"""Pairing: a person proves with a code, in a private chat, that an operator lets them in.

Codes are long enough that guessing is hopeless in the minutes they live. A sender who guesses is not heard any more;
the code stays valid, because otherwise any stranger could keep its owner out.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wakeful.domains.delivery.chat.tables import Chats, PairingCode, Person
from wakeful.domains.delivery.outbox import NO_CONNECTOR, arm_named
from wakeful.domains.delivery.tables import Outbox
from wakeful.errors import InvalidSetting
from wakeful.kernel.engine.alerts import close_alert

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

ROLES = ("viewer", "operator", "admin")
ROLE = "operator"
LIFE_MS = 600_000
TRIES = 5  # wrong codes of one sender
MOST_SENDERS = 100  # whose wrong codes are counted; more than these take turns
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none looks like another
LENGTH = 10
NAME_MOST = 100


def new_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def hash_of(connector: str, code: str) -> str:
    return hashlib.sha256(f"{connector}\0{code.strip().upper()}".encode()).hexdigest()


def offer(tx: Transaction, connector: str, code: str, role: str) -> int:
    """Open a code, which can be used once; when it expires."""
    if role not in ROLES:
        raise InvalidSetting(f"The role of a paired person is one of {', '.join(ROLES)}, not {role!r:.40}.")
    chats = tx.of(Chats)
    _drop_expired(tx, connector)
    chats.forget_tries(connector, keep=0)
    chats.add_code(PairingCode(hash_of(connector, code), connector, role, tx.now + LIFE_MS, 0))
    return tx.now + LIFE_MS


def redeem(
    tx: Transaction, context: Context, connector: str, sender: str, code: str, *, name: str | None = None
) -> Person | None:
    """Pair the sender if the code is open, and the sender has not tried too many wrong ones."""
    chats = tx.of(Chats)
    chats.serialize(connector)
    _drop_expired(tx, connector)
    wanted, codes = hash_of(connector, code), chats.codes(connector)
    if not codes or not is_heard(tx, connector, sender):
        return None
    found = next((item for item in codes if secrets.compare_digest(item.hash, wanted)), None)
    if found is None:
        tried = chats.tries(connector, sender, tx.now) + 1
        chats.put_tries(connector, sender, tried, tx.now + LIFE_MS)
        chats.forget_tries(connector, keep=MOST_SENDERS)
        return None
    chats.drop_code(found)
    person = Person(connector, sender, found.role, name[:NAME_MOST] if name else None, "code", tx.now)
    chats.pair(person)
    release_waiting(tx, context, connector, sender)
    return person


def is_heard(tx: Transaction, connector: str, sender: str) -> bool:
    """Whether a code of this sender counts, and is answered."""
    return tx.of(Chats).tries(connector, sender, tx.now) < TRIES


def has_open_code(tx: Transaction, connector: str) -> bool:
    return any(_is_open(code, tx.now) for code in tx.of(Chats).codes(connector))


def _is_open(code: PairingCode, now: int) -> bool:
    # One that is valid for longer than a code lives was made before the clock was set back.
    return now < code.expires_at <= now + LIFE_MS


def _drop_expired(tx: Transaction, connector: str) -> None:
    chats = tx.of(Chats)
    for code in chats.codes(connector):
        if not _is_open(code, tx.now):
            chats.drop_code(code)


def release_waiting(tx: Transaction, context: Context, connector: str, sender: str) -> None:
    """Messages that waited for a pairing go to the first paired person."""
    if tx.of(Outbox).release_to(connector, sender, tx.now):
        close_alert(tx, context, NO_CONNECTOR, connector)
        arm_named(tx, {connector})


def forget(tx: Transaction, connector: str, sender: str) -> None:
    """Unpair a person: their messages no longer count, and nothing is sent to them."""
    tx.of(Chats).unpair(connector, sender)
    tx.of(Outbox).give_up_for(connector, sender, no_longer(connector, sender))


def no_longer(connector: str, sender: str) -> str:
    """Why nothing is sent to a person."""
    return f"{sender} is no longer paired with {connector}"


def allow(tx: Transaction, context: Context, connector: str, senders: Iterable[str]) -> None:
    """Pair the people in the file's `allow_from`, and unpair those who are no longer in it."""
    chats, wanted = tx.of(Chats), list(dict.fromkeys(senders))
    known = {person.sender: person for person in chats.people(connector)}
    for person in known.values():
        if person.source == "file" and person.sender not in wanted:
            forget(tx, connector, person.sender)
    for sender in wanted:
        if sender not in known:
            chats.pair(Person(connector, sender, ROLE, None, "file", tx.now))
    paired = chats.people(connector)
    if paired:
        release_waiting(tx, context, connector, paired[0].sender)
