"""Who may ask the scheduler over the network: tokens are made, listed, revoked and recognised here."""

from __future__ import annotations

from pathlib import Path

from wakeful.kernel.actions import tokens
from wakeful.scheduler.core import Core
from wakeful.store.records import Token


class AccessApi(Core):
    """What can be done with tokens. Whoever can open the store can do all of it."""

    async def create_token(self, name: str, role: str) -> str:
        """A new token under a free name; the only time it is seen. Roles: viewer, operator, admin, agent."""
        secret = tokens.new_secret()
        await self._store.write(lambda tx: tokens.create(tx, name, role, secret))
        return secret

    async def create_first_token(self, secret: str) -> bool:
        """Make `secret` the token of an admin if this store never had a token; whether it was."""
        return await self._store.write(lambda tx: tokens.create_first(tx, "admin", secret))

    async def list_tokens(self, *, revoked: bool = False) -> list[Token]:
        """The valid tokens by name; on request also the revoked ones."""
        return await self._store.read(lambda tx: tx.access.tokens(revoked=revoked))

    async def revoke_token(self, name: str) -> None:
        """The token of that name opens nothing from here on."""
        await self._store.write(lambda tx: tokens.revoke(tx, name))

    async def find_token(self, secret: str) -> Token | None:
        """Who presents this token, or None when nobody valid does."""
        return await self._store.read(lambda tx: tokens.find(tx, secret))

    async def note_token_use(self, token: Token) -> None:
        """Remember that a token was used now."""
        await self._store.write(lambda tx: tx.access.token_used(token.hash, tx.now))

    def token_path(self) -> Path:
        """Where the first admin's token lies, for those who may read files beside the store."""
        path = getattr(self._store, "path", None)
        return Path(f"{path}.token") if path not in (None, ":memory:") else self._store.folder / "admin.token"
