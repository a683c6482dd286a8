"""The end of work that continues elsewhere: who may report it, and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.errors import WrongCallbackToken
from wakeful.kernel.actions import callbacks, lookup
from wakeful.kernel.rules.outcome import MAX_OUTPUT, from_return, reported
from wakeful.scheduler.core import Wiring

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


class Callbacks:
    """Reports about runs, from the systems that do their work."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._store = wiring.store

    async def callback_token(self, id: str) -> str:  # noqa: A002
        """The token with which the end of this run, and of no other, may be reported."""
        number = lookup.require_run(id)
        return await self._wiring.write(lambda tx: callbacks.callback_token(tx, number))

    async def check_callback(self, id: str, token: str) -> bool:  # noqa: A002
        """Whether this is the token with which the end of this run may be reported."""
        number = lookup.run_number(id)
        return number is not None and await self._store.read(lambda tx: callbacks.verify(tx, number, token))

    async def report_run(
        self,
        id: str,  # noqa: A002
        output: Any = None,
        *,
        error: str | None = None,
        token: str | None = None,
    ) -> bool:
        """Report how the work of a run ended that continues elsewhere; as `complete_run`, but it may also come early.

        With a `token` it must be that run's own (WrongCallbackToken else). True when the run is settled now, False when
        it is not waiting yet and the report is kept for it.
        """
        number, context = lookup.run_number(id), self._wiring.identify()
        result = reported(error) if error is not None else from_return(output)

        def admit(tx: Transaction) -> int:
            if token is not None and (number is None or not callbacks.verify(tx, number, token)):
                raise WrongCallbackToken
            return lookup.require_run(id)

        if result.output is not None and len(result.output) > MAX_OUTPUT:
            # A file is written only for a caller that may report, and for a run that takes the report now.
            waiting = await self._wiring.write(lambda tx: callbacks.waiting_for(tx, admit(tx), result))
            if waiting is not None:
                result = self._wiring.engine.shorten(ids.run_text(waiting), result)
        return await self._wiring.write(lambda tx: callbacks.report_end(tx, context, admit(tx), result))
