"""What a server needs of its scheduler beyond what users of the library do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.kernel.actions import run_tokens, sign_in, tokens
from wakeful.kernel.actions.authorization import Rights
from wakeful.kernel.actions.recording import acknowledge, note_other, origin_of
from wakeful.kernel.cluster.nodes import Node, Seen, drain_node
from wakeful.kernel.views.statistics import Figures, figures
from wakeful.scheduler.callbacks import Callbacks
from wakeful.scheduler.measuring import Measuring
from wakeful.scheduler.requests import Requests
from wakeful.store.records import PageSession, TokenRow

if TYPE_CHECKING:
    from wakeful.kernel.actions.run_tokens import RunToken
    from wakeful.kernel.context import Context
    from wakeful.kernel.loop.handlers import Drive
    from wakeful.store.interface import Transaction
    from wakeful.store.records import AlertRow, EventGroup


class ServerLimits(NamedTuple):
    """What bounds this server's jobs."""

    max_running: int | None
    min_interval: int | None  # milliseconds
    labels: frozenset[str]


class ServerSide(Requests, Callbacks):
    """Requests within rights, reports from elsewhere, tokens, figures and stored events: what HTTP answers with."""

    def limits(self) -> ServerLimits:
        """What bounds this server's jobs, as it was started."""
        context = self._wiring.identify()
        return ServerLimits(context.max_running, context.min_interval, context.labels)

    # -- tokens -------------------------------------------------------------------------------------------------------

    async def create_first_token(self, secret: str) -> bool:
        """Make `secret` the token of an admin if this store never had a token; whether it was."""
        return await self._store.write(lambda tx: tokens.create_first(tx, "admin", secret))

    async def find_token(self, secret: str) -> TokenRow | RunToken | PageSession | None:
        """The caller with this token or cookie, or None when it is not valid."""
        finders = (sign_in.find, run_tokens.find, tokens.find)
        return await self._store.read(lambda tx: next((one for find in finders if (one := find(tx, secret))), None))

    async def note_token_use(self, token: TokenRow) -> None:
        """Remember that a token was used now."""
        await self._store.write(lambda tx: tx.access.token_used(token.hash, tx.now))

    def token_path(self) -> Path:
        """The file of the first admin's token, for users who may read files beside the store."""
        path = getattr(self._store, "path", None)
        return Path(f"{path}.token") if path not in (None, ":memory:") else self._store.folder / "admin.token"

    # -- people on pages ----------------------------------------------------------------------------------------------

    async def create_link_code(self, name: str, role: str) -> str:
        """A one-time code that signs `name` in to the dashboard with that role within ten minutes."""
        code = sign_in.new_code()
        await self._store.write(lambda tx: sign_in.store_code(tx, code, name, role))
        return code

    async def redeem_code(self, code: str) -> str | None:
        """The cookie of a new session, for a code that is valid and now used up; None for any other."""
        secret = sign_in.new_session()
        opened = await self._store.write(lambda tx: sign_in.redeem(tx, code, secret))
        return secret if opened is not None else None

    async def sign_in(self, token: str) -> str | None:
        """The cookie of a new session, for a valid token of a person; None for any other."""
        secret = sign_in.new_session()

        def work(tx: Transaction) -> bool:
            found = tokens.find(tx, token)
            return found is not None and sign_in.open_with_token(tx, found, secret) is not None

        return secret if await self._store.write(work) else None

    async def sign_out(self, secret: str) -> None:
        """End a session, on every node."""
        await self._store.write(lambda tx: sign_in.sign_out(tx, secret))

    # -- the whole ----------------------------------------------------------------------------------------------------

    async def get_figures(self) -> Figures:
        return await self._store.read(lambda tx: figures(tx, self.hidden_kinds))

    def measuring(self, per_job: int = 0) -> Measuring:
        """Counts what this process does from here on, for `/metrics`; with the names of so many jobs."""
        return Measuring(self._wiring, per_job)

    def drive_with(self, drive: Drive) -> None:
        """Run handlers with this from here on, such as within a span of a trace."""
        self._wiring.engine.drive = drive

    async def ack_alert(self, alert_id: int, rights: Rights) -> tuple[AlertRow, str | None]:
        """Acknowledge an alert; it stays open until the incident is over. Also returns the action, if it is new."""
        return await self._ask(lambda tx, context: acknowledge(tx, alert_id, origin_of(context, rights)))

    async def drain_node(self, name: str, rights: Rights, *, drain: bool = True) -> Node:
        """Ask a live node to start no new runs, or to go on; who did is on record."""
        seen = Seen(times=self._wiring.viewpoint().seen.times)

        def work(tx: Transaction, context: Context) -> Node:
            node = drain_node(tx, name, seen, drain=drain)
            what, number = "drain" if drain else "undrain", ids.number_of("node", node.id) or 0
            note_other(tx, origin_of(context, rights), what, number, node.name)
            return node

        return await self._ask(work)

    async def revoke_token(self, name: str, rights: Rights) -> None:
        """Revoke a token; who did is on record."""
        await self._ask(lambda tx, context: tokens.revoke(tx, name, origin_of(context, rights)))

    # -- events -------------------------------------------------------------------------------------------------------

    def on_commit(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every transaction of this process that emitted an event; for as long as both live."""
        self._store.on_events(lambda _: listener())

    async def read_events(self, after: int, streams: Sequence[str] | None, limit: int) -> list[EventGroup]:
        """What any process stored after that group, in order."""
        return await self._store.read(lambda tx: tx.events.after(after, streams, limit))

    async def event_ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        return await self._store.read(lambda tx: tx.events.ids())
