"""Tokens, people who are signed in to the dashboard, and stored answers to requests that must not be done twice."""

from __future__ import annotations

from wakeful.store.records import KeptAnswer, PageCode, PageSession, TokenRow
from wakeful.store.rows import Rows, Verbs

# The columns of the schema, in the order of the record; `method`, `status` and `headers` are not separate any more.
_ANSWER_COLUMNS = ("caller", "key", "path", "body_hash", "body", "created_at")


class Access(Verbs):
    """Verbs on tokens and kept answers; each call is part of the transaction it was made in."""

    _tokens = Rows("tokens", TokenRow)
    _codes = Rows("page_codes", PageCode)
    _sessions = Rows("page_sessions", PageSession)
    _answers = Rows("idempotency", KeptAnswer, _ANSWER_COLUMNS)

    # -- tokens -------------------------------------------------------------------------------------------------------

    def add_token(self, token: TokenRow) -> bool:
        """Store a token; False when one of that name is valid already."""
        return self._tokens.add(token, on_conflict="ON CONFLICT DO NOTHING") == 1

    def token(self, token_hash: str) -> TokenRow | None:
        """The token of that hash, revoked or not."""
        return self._tokens.one("WHERE hash = ?", token_hash)

    def tokens(self, *, revoked: bool = False) -> list[TokenRow]:
        """The valid tokens by name; with `revoked` also those that were, the latest first under each name."""
        where = "" if revoked else "WHERE revoked_at IS NULL"
        order = "ORDER BY name, created_at DESC, hash"
        return self._tokens.all(f"{where} {order}")

    def was_used(self, name: str) -> bool:
        """Whether a token of that name was ever made."""
        return bool(self._session.rows("SELECT 1 FROM tokens WHERE name = ? LIMIT 1", (name,)))

    def revoke_token(self, name: str, now: int) -> bool:
        """The token of that name is worth nothing from here on; False when there is none."""
        sql = "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"
        return self._session.execute(sql, (now, name)) == 1

    def token_used(self, token_hash: str, now: int) -> None:
        self._session.execute("UPDATE tokens SET last_used_at = ? WHERE hash = ?", (now, token_hash))

    # -- people who are signed in to the dashboard ---------------------------------------------------------------------

    def add_code(self, code: PageCode) -> None:
        self._codes.add(code)

    def take_code(self, code_hash: str) -> PageCode | None:
        """The code of that hash, which is gone with this."""
        sql = f"DELETE FROM page_codes WHERE hash = ? RETURNING {self._codes.columns}"
        return next(iter(self._codes.answered(sql, code_hash)), None)

    def add_session(self, session: PageSession) -> None:
        self._sessions.add(session)

    def session(self, session_hash: str) -> PageSession | None:
        """The session of that hash, over or not."""
        return self._sessions.one("WHERE hash = ?", session_hash)

    def end_session(self, session_hash: str) -> None:
        self._session.execute("DELETE FROM page_sessions WHERE hash = ?", (session_hash,))

    def prune_sessions(self, now: int) -> None:
        """Forget codes and sessions whose time is over."""
        self._session.execute("DELETE FROM page_codes WHERE expires_at < ?", (now,))
        self._session.execute("DELETE FROM page_sessions WHERE expires_at < ?", (now,))

    # -- answers kept for a request that is made again ----------------------------------------------------------------

    def begin_answer(self, kept: KeptAnswer) -> KeptAnswer | None:
        """Take a caller's key for a request; its current holder, or None when it is ours."""
        columns, row = ("method", *_ANSWER_COLUMNS), ("", *kept)
        if self._session.insert_many("idempotency", columns, [row], "ON CONFLICT DO NOTHING") == 1:
            return None
        return self.answer(kept.caller, kept.key)

    def answer(self, caller: str, key: str) -> KeptAnswer | None:
        return self._answers.one("WHERE caller = ? AND key = ?", caller, key)

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
