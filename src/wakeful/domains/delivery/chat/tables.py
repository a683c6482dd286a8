"""Chats in the store: paired people, codes, who receives, messages that came in, presses and their answers."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.store.rows import Rows, Verbs


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


class PairingCode(NamedTuple):
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


class Chats(Verbs):
    """Verbs on chats."""

    _people = Rows("people", Person)
    _codes = Rows("pairing_codes", PairingCode)
    _receivers = Rows("receivers", ReceiverRow)
    _messages = Rows("chat_messages", MessageRow)
    _presses = Rows("presses", PressRow)
    _answers = Rows("press_answers", AnswerRow)

    # -- people -------------------------------------------------------------------------------------------------------

    def people(self, connector: str) -> list[Person]:
        """The paired people, in the order they were paired."""
        return self._people.all("WHERE connector = ? ORDER BY paired_at, sender", connector)

    def person(self, connector: str, sender: str) -> Person | None:
        return self._people.one("WHERE connector = ? AND sender = ?", connector, sender)

    def pair(self, person: Person) -> None:
        self._people.put(person, key=("connector", "sender"))

    def unpair(self, connector: str, sender: str) -> bool:
        """Forget a person, and that they were heard from; False where they were not paired."""
        self._session.execute("DELETE FROM interactions WHERE connector = ? AND sender = ?", (connector, sender))
        return self._session.execute("DELETE FROM people WHERE connector = ? AND sender = ?", (connector, sender)) > 0

    # -- codes --------------------------------------------------------------------------------------------------------

    def serialize(self, connector: str) -> None:
        """From here on no other transaction tries a code of this connector."""
        self._session.serialize(f"pairing:{connector}")

    def add_code(self, code: PairingCode) -> None:
        self._codes.add(code)

    def codes(self, connector: str) -> list[PairingCode]:
        return self._codes.all("WHERE connector = ? ORDER BY expires_at, hash", connector)

    def tries(self, connector: str, sender: str, now: int) -> int:
        """How many wrong codes a sender has tried lately."""
        sql = "SELECT tries FROM pairing_tries WHERE connector = ? AND sender = ? AND expires_at > ?"
        return self._count(sql, connector, sender, now)

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

    def drop_code(self, code: PairingCode) -> None:
        self._session.execute("DELETE FROM pairing_codes WHERE hash = ?", (code.hash,))

    # -- receiving ----------------------------------------------------------------------------------------------------

    def receiver(self, account: str) -> ReceiverRow | None:
        """Who receives for an account; the answer holds until this transaction ends."""
        self._session.serialize(f"receiver:{account}")
        return self._receivers.locked("WHERE account = ?", account)

    def put_receiver(self, row: ReceiverRow) -> None:
        self._receivers.put(row, key=("account",))

    def add_message(self, row: MessageRow) -> None:
        self._messages.add(row)

    def open_messages(self, connector: str, limit: int) -> list[MessageRow]:
        """Those that were not handed over yet, the oldest first."""
        return self._messages.all("WHERE connector = ? AND open = 1 ORDER BY id LIMIT ?", connector, limit)

    def message_handed(self, number: int) -> None:
        self._session.execute("UPDATE chat_messages SET open = 0 WHERE id = ?", (number,))

    # -- presses ------------------------------------------------------------------------------------------------------

    def presses(self, delivery: int) -> dict[int, PressRow]:
        """The buttons of a message that were pressed, by their place."""
        return {press.button: press for press in self._presses.all("WHERE delivery_id = ?", delivery)}

    def add_press(self, row: PressRow) -> None:
        self._presses.add(row)

    def add_answer(self, row: AnswerRow) -> None:
        self._answers.add(row)

    def answers(self, connector: str, limit: int) -> list[AnswerRow]:
        return self._answers.all("WHERE connector = ? ORDER BY id LIMIT ?", connector, limit)

    def answered(self, number: int) -> None:
        self._session.execute("DELETE FROM press_answers WHERE id = ?", (number,))

    def prune(self, before: int, limit: int) -> int:
        """Delete messages that were handed over, and presses, of before that time; how many."""
        sql = "SELECT id FROM chat_messages WHERE open = 0 AND at < ? ORDER BY at LIMIT ?"
        messages = self._column(sql, before, limit)
        if messages:
            self._session.delete_in("chat_messages", "id", messages)
        sql = "SELECT DISTINCT delivery_id FROM presses WHERE at < ? LIMIT ?"
        pressed = self._column(sql, before, limit)
        if pressed:
            self._session.delete_in("presses", "delivery_id", pressed)
        return len(messages) + len(pressed)
