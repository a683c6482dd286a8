"""Chats in the store: paired people, codes, who receives, messages that came in, presses and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session


class Person(NamedTuple):
    """A sender who is paired with a connector."""

    connector: str
    sender: str
    role: str
    name: str | None
    source: str
    paired_at: int

    @property
    def signature(self) -> str:
        """Who did something, for the record: the name they chose, and their id, which they did not."""
        words = "".join(letter if letter.isprintable() else " " for letter in self.name or "").split()
        return f"{' '.join(words)} ({self.connector} {self.sender})" if words else f"{self.sender} ({self.connector})"


class Code(NamedTuple):
    """An open pairing code; only its hash is kept."""

    hash: str
    connector: str
    role: str
    expires_at: int
    tries: int


class ReceiverRow(NamedTuple):
    """Which node receives for an account, and up to where."""

    account: str
    connector: str
    node: int
    until: int
    position: int


class MessageRow(NamedTuple):
    """A message from a paired person; `open` until it was handed to the listeners."""

    id: int
    connector: str
    sender: str
    name: str | None
    role: str
    text: str
    at: int
    open: int


class PressRow(NamedTuple):
    """A button that was pressed and counted."""

    delivery_id: int
    button: int
    sender: str
    at: int
    said: str


class AnswerRow(NamedTuple):
    """A press that is to be answered; `buttons` is what the message keeps of them, None where they stay."""

    id: int
    connector: str
    query: str
    said: str
    chat: str | None
    message: str | None
    buttons: str | None


class Chats:
    """Verbs on chats."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- people -------------------------------------------------------------------------------------------------------

    def people(self, connector: str) -> list[Person]:
        """The paired people, in the order they were paired."""
        sql = f"SELECT {', '.join(Person._fields)} FROM people WHERE connector = ? ORDER BY paired_at, sender"
        return [Person._make(row) for row in self._session.rows(sql, (connector,))]

    def person(self, connector: str, sender: str) -> Person | None:
        sql = f"SELECT {', '.join(Person._fields)} FROM people WHERE connector = ? AND sender = ?"
        found = self._session.rows(sql, (connector, sender))
        return Person._make(found[0]) if found else None

    def pair(self, person: Person) -> None:
        changed = ", ".join(f"{name} = excluded.{name}" for name in ("role", "name", "source", "paired_at"))
        self._session.insert_many(
            "people", Person._fields, [person], f"ON CONFLICT (connector, sender) DO UPDATE SET {changed}"
        )

    def unpair(self, connector: str, sender: str) -> bool:
        """Forget a person, and that they were heard from; False where they were not paired."""
        self._session.execute("DELETE FROM interactions WHERE connector = ? AND sender = ?", (connector, sender))
        return self._session.execute("DELETE FROM people WHERE connector = ? AND sender = ?", (connector, sender)) > 0

    # -- codes --------------------------------------------------------------------------------------------------------

    def serialize(self, connector: str) -> None:
        """From here on no other transaction tries a code of this connector."""
        self._session.serialize(f"pairing:{connector}")

    def add_code(self, code: Code) -> None:
        self._session.insert_many("pairing_codes", Code._fields, [code])

    def codes(self, connector: str) -> list[Code]:
        sql = f"SELECT {', '.join(Code._fields)} FROM pairing_codes WHERE connector = ? ORDER BY expires_at, hash"
        return [Code._make(row) for row in self._session.rows(sql, (connector,))]

    def tries(self, connector: str, sender: str, now: int) -> int:
        """How many wrong codes a sender has tried lately."""
        sql = "SELECT tries FROM pairing_tries WHERE connector = ? AND sender = ? AND expires_at > ?"
        found = self._session.rows(sql, (connector, sender, now))
        return int(found[0][0]) if found else 0

    def put_tries(self, connector: str, sender: str, tries: int, expires_at: int) -> None:
        changed = (
            "ON CONFLICT (connector, sender) DO UPDATE SET tries = excluded.tries, expires_at = excluded.expires_at"
        )
        columns = ("connector", "sender", "tries", "expires_at")
        self._session.insert_many("pairing_tries", columns, [(connector, sender, tries, expires_at)], changed)

    def forget_tries(self, connector: str, keep: int) -> None:
        """Forget what senders tried, but for the latest."""
        sql = (
            "DELETE FROM pairing_tries WHERE connector = ? AND sender NOT IN (SELECT sender FROM pairing_tries "
            "WHERE connector = ? ORDER BY expires_at DESC, sender LIMIT ?)"
        )
        self._session.execute(sql, (connector, connector, keep))

    def drop_code(self, code: Code) -> None:
        self._session.execute("DELETE FROM pairing_codes WHERE hash = ?", (code.hash,))

    # -- receiving ----------------------------------------------------------------------------------------------------

    def receiver(self, account: str) -> ReceiverRow | None:
        """Who receives for an account; the answer holds until this transaction ends."""
        self._session.serialize(f"receiver:{account}")
        sql = f"SELECT {', '.join(ReceiverRow._fields)} FROM receivers WHERE account = ?{self._session.lock_clause}"
        found = self._session.rows(sql, (account,))
        return ReceiverRow._make(found[0]) if found else None

    def put_receiver(self, row: ReceiverRow) -> None:
        changed = ", ".join(f"{name} = excluded.{name}" for name in ReceiverRow._fields[1:])
        self._session.insert_many(
            "receivers", ReceiverRow._fields, [row], f"ON CONFLICT (account) DO UPDATE SET {changed}"
        )

    def add_message(self, row: MessageRow) -> None:
        self._session.insert_many("chat_messages", MessageRow._fields, [row])

    def open_messages(self, connector: str, limit: int) -> list[MessageRow]:
        """Those that were not handed over yet, the oldest first."""
        sql = (
            f"SELECT {', '.join(MessageRow._fields)} FROM chat_messages WHERE connector = ? AND open = 1 "
            "ORDER BY id LIMIT ?"
        )
        return [MessageRow._make(row) for row in self._session.rows(sql, (connector, limit))]

    def message_handed(self, number: int) -> None:
        self._session.execute("UPDATE chat_messages SET open = 0 WHERE id = ?", (number,))

    # -- presses ------------------------------------------------------------------------------------------------------

    def presses(self, delivery: int) -> dict[int, PressRow]:
        """The buttons of a message that were pressed, by their place."""
        sql = f"SELECT {', '.join(PressRow._fields)} FROM presses WHERE delivery_id = ?"
        return {int(row[1]): PressRow._make(row) for row in self._session.rows(sql, (delivery,))}

    def add_press(self, row: PressRow) -> None:
        self._session.insert_many("presses", PressRow._fields, [row])

    def add_answer(self, row: AnswerRow) -> None:
        self._session.insert_many("press_answers", AnswerRow._fields, [row])

    def answers(self, connector: str, limit: int) -> list[AnswerRow]:
        sql = f"SELECT {', '.join(AnswerRow._fields)} FROM press_answers WHERE connector = ? ORDER BY id LIMIT ?"
        return [AnswerRow._make(row) for row in self._session.rows(sql, (connector, limit))]

    def answered(self, number: int) -> None:
        self._session.execute("DELETE FROM press_answers WHERE id = ?", (number,))

    def prune(self, before: int, limit: int) -> int:
        """Delete messages that were handed over, and presses, of before that time; how many."""
        sql = "SELECT id FROM chat_messages WHERE open = 0 AND at < ? ORDER BY at LIMIT ?"
        messages = [int(row[0]) for row in self._session.rows(sql, (before, limit))]
        if messages:
            self._session.delete_in("chat_messages", "id", messages)
        sql = "SELECT DISTINCT delivery_id FROM presses WHERE at < ? LIMIT ?"
        pressed = [int(row[0]) for row in self._session.rows(sql, (before, limit))]
        if pressed:
            self._session.delete_in("presses", "delivery_id", pressed)
        return len(messages) + len(pressed)
