"""Tokens of callers over the network, and stored answers to requests that must not be done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.store.records import KeptAnswer, Token

if TYPE_CHECKING:
    from wakeful.store.session import Session

_TOKEN = ", ".join(Token._fields)
# The columns of the schema, in the order of the record; `method`, `status` and `headers` are not separate any more.
_ANSWER_COLUMNS = ("caller", "key", "path", "body_hash", "body", "created_at")
_ANSWER = ", ".join(_ANSWER_COLUMNS)


class Access:
    """Verbs on tokens and kept answers; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # -- tokens -------------------------------------------------------------------------------------------------------

    def add_token(self, token: Token) -> bool:
        """Store a token; False when one of that name is valid already."""
        return self._session.insert_many("tokens", Token._fields, [token], "ON CONFLICT DO NOTHING") == 1

    def token(self, token_hash: str) -> Token | None:
        """The token of that hash, revoked or not."""
        found = self._session.rows(f"SELECT {_TOKEN} FROM tokens WHERE hash = ?", (token_hash,))
        return Token._make(found[0]) if found else None

    def tokens(self, *, revoked: bool = False) -> list[Token]:
        """The valid tokens by name; with `revoked` also those that were, the latest first under each name."""
        where = "" if revoked else "WHERE revoked_at IS NULL"
        order = "ORDER BY name, created_at DESC, hash"
        return [Token._make(row) for row in self._session.rows(f"SELECT {_TOKEN} FROM tokens {where} {order}")]

    def was_used(self, name: str) -> bool:
        """Whether a token of that name was ever made."""
        return bool(self._session.rows("SELECT 1 FROM tokens WHERE name = ? LIMIT 1", (name,)))

    def revoke_token(self, name: str, now: int) -> bool:
        """The token of that name is worth nothing from here on; False when there is none."""
        sql = "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
        return self._session.execute(sql, (now, name)) == 1

    def token_used(self, token_hash: str, now: int) -> None:
        self._session.execute("UPDATE tokens SET last_used_at = ? WHERE hash = ?", (now, token_hash))

    # -- answers kept for a request that is made again ----------------------------------------------------------------

    def begin_answer(self, kept: KeptAnswer) -> KeptAnswer | None:
        """Take a caller's key for a request; its current holder, or None when it is ours."""
        columns, row = ("method", *_ANSWER_COLUMNS), ("", *kept)
        if self._session.insert_many("idempotency", columns, [row], "ON CONFLICT DO NOTHING") == 1:
            return None
        return self.answer(kept.caller, kept.key)

    def answer(self, caller: str, key: str) -> KeptAnswer | None:
        found = self._session.rows(f"SELECT {_ANSWER} FROM idempotency WHERE caller = ? AND key = ?", (caller, key))
        return KeptAnswer._make(found[0]) if found else None

    def keep_answer(self, caller: str, key: str, answer: str) -> None:
        sql = "UPDATE idempotency SET body = ? WHERE caller = ? AND key = ?"
        self._session.execute(sql, (answer, caller, key))

    def answer_bytes(self, caller: str) -> int:
        """How much is kept of what was answered to a caller."""
        found = self._session.rows(
            "SELECT sum(length(key) + length(path) + coalesce(length(body), 0)) FROM idempotency WHERE caller = ?",
            (caller,),
        )
        return int(found[0][0] or 0)

    def forget_answers(self, caller: str) -> int:
        """Forget what was answered to a caller: its keys are free; how many there were."""
        return self._session.execute("DELETE FROM idempotency WHERE caller = ?", (caller,))

    def drop_answer(self, caller: str, key: str) -> None:
        """The request was not done: the key is free again."""
        self._session.execute("DELETE FROM idempotency WHERE caller = ? AND key = ?", (caller, key))

    def prune_answers(self, before: int) -> int:
        """Forget answers older than that; how many there were."""
        return self._session.execute("DELETE FROM idempotency WHERE created_at < ?", (before,))
