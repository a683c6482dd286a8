"""Where a tool works: the scheduler, and what its caller may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.agents.naming import AGENT
from wakeful.domains.agents.self_scheduling.requesting import Requester, requester
from wakeful.errors import NotAllowed
from wakeful.kernel.engine.ending import MCP
from wakeful.routing.auth import rights_of

if TYPE_CHECKING:
    from wakeful.kernel.context import Rights
    from wakeful.kernel.hooks import Showing
    from wakeful.routing.auth import Caller
    from wakeful.routing.settings import ServerSettings
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

Progress = Callable[[float, float, str], Awaitable[None]]


async def silent(_done: float, _total: float, _message: str) -> None:
    """Nobody asked for progress."""


class ToolContext(NamedTuple):
    """One caller at one scheduler."""

    scheduler: Scheduler
    settings: ServerSettings
    caller: Caller
    rights: Rights
    progress: Progress = silent

    @property
    def is_limited(self) -> bool:
        """Whether the caller is an agent, which has schedules of its own and bounds for them."""
        return self.caller.is_agent

    @property
    def agent(self) -> str | None:
        """The agent whose run this is; None for a token."""
        return self.caller.name if self.caller.run is not None and self.caller.kind == AGENT else None

    @property
    def zone(self) -> str:
        return self.scheduler.host.default_zone

    def requester(self, tx: Transaction) -> Requester:
        return requester(tx, self.rights, self.caller.run)

    async def shows(self, jobs: Collection[int] = (), runs: Collection[int] = ()) -> None:
        """Call it before words of these jobs and runs are shown: if some are from outside, so is what the agent's run
        writes from now on.
        """

        def work(_: Transaction, showing: Showing) -> None:
            showing.jobs.update(jobs)
            showing.runs.update(runs)

        await self.scheduler.server_side.show(self.caller.run, work)

    def needs_editor(self) -> None:
        """NotAllowed for a caller that only reads, and for a run of something else than an agent."""
        if self.caller.role == "viewer":
            raise NotAllowed(
                f"{self.caller.name} has the role viewer, which only reads: use an operator's token, or wakeful mcp "
                "without --role viewer."
            )
        if self.caller.run is not None and self.agent is None:
            raise NotAllowed("Only runs of agents may change schedules, not runs of other jobs.")


async def context_of(scheduler: Scheduler, settings: ServerSettings, caller: Caller) -> ToolContext:
    """The ctx of a caller, whose rights are those of the HTTP API."""
    rights = await rights_of(caller, settings, scheduler)
    return ToolContext(scheduler, settings, caller, rights._replace(via=MCP))


Given = dict[str, Any]
Answer = dict[str, Any]
