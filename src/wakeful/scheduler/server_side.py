"""What a server needs of its scheduler beyond what users of the library do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.kernel.actions import run_tokens, tokens
from wakeful.kernel.actions.authorization import Rights
from wakeful.kernel.actions.recording import acknowledge, origin_of
from wakeful.kernel.views.statistics import Figures, figures
from wakeful.scheduler.callbacks import Callbacks
from wakeful.scheduler.requests import Requests
from wakeful.store.records import Token

if TYPE_CHECKING:
    from wakeful.kernel.actions.run_tokens import RunToken
    from wakeful.store.records import Alert, EventGroup


class ServerSide(Requests, Callbacks):
    """Requests within rights, reports from elsewhere, tokens, figures and stored events: what HTTP answers with."""

    # -- tokens -------------------------------------------------------------------------------------------------------

    async def create_first_token(self, secret: str) -> bool:
        """Make `secret` the token of an admin if this store never had a token; whether it was."""
        return await self._store.write(lambda tx: tokens.create_first(tx, "admin", secret))

    async def find_token(self, secret: str) -> Token | RunToken | None:
        """The caller with this token, or None when it is not valid."""
        return await self._store.read(lambda tx: run_tokens.find(tx, secret) or tokens.find(tx, secret))

    async def note_token_use(self, token: Token) -> None:
        """Remember that a token was used now."""
        await self._store.write(lambda tx: tx.access.token_used(token.hash, tx.now))

    def token_path(self) -> Path:
        """The file of the first admin's token, for users who may read files beside the store."""
        path = getattr(self._store, "path", None)
        return Path(f"{path}.token") if path not in (None, ":memory:") else self._store.folder / "admin.token"

    # -- the whole ----------------------------------------------------------------------------------------------------

    async def get_figures(self) -> Figures:
        return await self._store.read(lambda tx: figures(tx, self.hidden_kinds))

    async def ack_alert(self, alert_id: int, rights: Rights) -> tuple[Alert, str | None]:
        """Acknowledge an alert; it stays open until the incident is over. Also returns the action, if it is new."""
        return await self._ask(lambda tx, context: acknowledge(tx, alert_id, origin_of(context, rights)))

    # -- events -------------------------------------------------------------------------------------------------------

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every transaction of this process that emitted an event; for as long as both live."""
        self._store.on_events(lambda _: listener())

    async def read_events(self, after: int, streams: Sequence[str] | None, limit: int) -> list[EventGroup]:
        """What any process stored after that group, in order."""
        return await self._store.read(lambda tx: tx.journal.events_of(after, streams, limit))

    async def event_ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        return await self._store.read(lambda tx: tx.journal.event_ids())
