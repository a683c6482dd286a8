"""Who may call the scheduler over the network: tokens are created, listed and revoked here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.kernel.actions.recording import origin_of
from wakeful.scheduler.core import Core

if TYPE_CHECKING:
    from wakeful.kernel.views.records import Token


class AccessApi(Core):
    """Actions on tokens. Every user who can open the store may do all of them."""

    async def create_token(self, name: str, role: str) -> str:
        """Create a token for the HTTP server and return it; it is not shown again.

        Roles: viewer, operator, admin, agent.

        >>> token = await scheduler.create_token("grafana", "viewer")
        """
        from wakeful.kernel.actions import tokens

        secret = tokens.new_secret()
        await self._store.write(lambda tx: tokens.create(tx, name, role, secret, self._kinds.apart()))
        return secret

    async def list_tokens(self, *, revoked: bool = False) -> list[Token]:
        """The valid tokens by name; on request also the revoked ones.

        >>> token = await scheduler.create_token("grafana", "viewer")
        >>> await scheduler.list_tokens()
        [<Token grafana viewer>]
        """
        from wakeful.kernel.views.records import token_view

        return await self._store.read(lambda tx: [token_view(row) for row in tx.access.tokens(revoked=revoked)])

    async def revoke_token(self, name: str) -> None:
        """Revoke the token of that name: it is rejected from now on.

        >>> token = await scheduler.create_token("grafana", "viewer")
        >>> await scheduler.revoke_token("grafana")
        >>> await scheduler.list_tokens()
        []
        """
        from wakeful.kernel.actions import tokens

        await self.transact(lambda tx, context: tokens.revoke(tx, name, origin_of(context)), wakes=False)
