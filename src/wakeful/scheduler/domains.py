"""What domains built on the scheduler need beside what users do: transactions of their own, and a life beside its own.

A domain keeps its rules in functions of a transaction, as the kernel does, and registers handlers for its kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wakeful import ids
from wakeful.errors import WrongCallbackToken
from wakeful.kernel.actions import callbacks, lookup
from wakeful.kernel.rules.outcome import MAX_OUTPUT, from_return, reported
from wakeful.scheduler.core import Core

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.actions.drafts import Draft, NewJob
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

T = TypeVar("T")


class Companion(Protocol):
    """Something that lives beside the engine."""

    def begin(self) -> None:
        """The engine runs."""

    async def end(self) -> None:
        """The engine is about to stop; nothing more of this may go on when it returns."""


class Domains(Core):
    """The seam for what is built on jobs and runs."""

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def handled_kinds(self) -> frozenset[str]:
        """The kinds of job this scheduler has a handler for."""
        return self._kinds.handled()

    @property
    def node_id(self) -> int:
        """Which node this is while the engine runs."""
        return self._engine.context.id

    @property
    def default_zone(self) -> str:
        """The zone of whatever names none."""
        return self._default_zone()

    @property
    def job_defaults(self) -> Mapping[str, Any]:
        """The options of whatever has none of its own."""
        return self._job_defaults

    def drafted(self, new: NewJob, source: str, defaults: Mapping[str, Any]) -> Draft:
        """A job as it can be stored, or InvalidJob; `defaults` are the options it does not give itself."""
        return self._draft(new, source, defaults)

    async def transact(self, work: Callable[[Transaction, Context], T]) -> T:
        """Run `work` in one durable transaction; the engine looks at what it changed at once."""
        context = self._engine.identify()
        return await self._write(lambda tx: work(tx, context))

    async def look(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot; it must not write."""
        return await self._store.read(work)

    def accompany(self, companion: Companion) -> None:
        """Let something begin and end with the engine."""
        self._companions.append(companion)
        if self._status == "running":
            companion.begin()

    async def callback_token(self, id: str) -> str:  # noqa: A002
        """The token with which the end of this run, and of no other, may be reported."""
        number = lookup.require_run(id)
        return await self._write(lambda tx: callbacks.callback_token(tx, number))

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
        """Report how the work of a run ended that goes on elsewhere; as `complete_run`, but it may also come early.

        With a `token` it must be that run's own (WrongCallbackToken else). True when the run is settled now, False when
        it is not waiting yet and the report is kept for it.
        """
        number, context = lookup.run_number(id), self._engine.identify()
        result = reported(error) if error is not None else from_return(output)

        def admit(tx: Transaction) -> int:
            if token is not None and (number is None or not callbacks.verify(tx, number, token)):
                raise WrongCallbackToken
            return lookup.require_run(id)

        if result.output is not None and len(result.output) > MAX_OUTPUT:
            # A file is written only for who may report, and for a run that takes the report now.
            waiting = await self._write(lambda tx: callbacks.waiting_for(tx, admit(tx), result))
            if waiting is not None:
                result = self._engine.shorten(ids.run_text(waiting), result)
        return await self._write(lambda tx: callbacks.report_end(tx, context, admit(tx), result))
