"""Who may ask the scheduler over the network: tokens are made, listed and revoked here."""

from __future__ import annotations

from wakeful.kernel.actions import tokens
from wakeful.scheduler.core import Core
from wakeful.store.records import Token


class AccessApi(Core):
    """What can be done with tokens. Everyone who can open the store can do all of it."""

    async def create_token(self, name: str, role: str) -> str:
        """A new token under a free name; the only time it is seen. Roles: viewer, operator, admin, agent."""
        secret = tokens.new_secret()
        await self._store.write(lambda tx: tokens.create(tx, name, role, secret))
        return secret

    async def list_tokens(self, *, revoked: bool = False) -> list[Token]:
        """The valid tokens by name; on request also the revoked ones."""
        return await self._store.read(lambda tx: tx.access.tokens(revoked=revoked))

    async def revoke_token(self, name: str) -> None:
        """The token of that name opens nothing from here on."""
        await self._store.write(lambda tx: tokens.revoke(tx, name))
