"""The agents of a scheduler. The rules are in their domain."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import Any, Protocol, cast

from wakeful.domains import load_part
from wakeful.scheduler.core import Core


class Agents(Protocol):
    """The agents of one scheduler. From its first use on, the scheduler can run them."""

    url: str | None
    """Where this server can be reached by what its agents run."""

    callback_url: str | None
    """Where this server can be reached by the session servers that its agents live on; None asks for no calls."""

    async def apply(self, agents: Mapping[str, Any], *, folder: Path | None = None) -> dict[str, list[str]]:
        """Make the agents of this program what the mapping says: the same as the section `agents` of wakeful.yaml.

        Agents that an earlier call made and this one does not name are removed; those of files are left alone. The
        names of the jobs that were stored, and of those that were removed.
        """

    async def limit(
        self,
        *,
        runs_per_day: int | EllipsisType | None = ...,
        cost_per_day: float | None = 20.0,
        tokens_per_day: int | None = None,
    ) -> None:
        """Set what all agents together may use in a day; None is no limit. It holds for every process on this store.

        Where `runs_per_day` is not given, each agent whose budget does not say how many may run 100 times.
        """

    async def request_wake(self, agent: str, reason: str = "manual") -> dict[str, Any]:
        """Wake an agent; requests within 250 ms become one run. When, why, and whether it joined another request."""

    async def ask(self, agent: str, prompt: str, *, deliver: str | None = None) -> dict[str, Any]:
        """Ask an agent now: the run that asks, whose output has the reply. All questions share a session.

        The reply is delivered as the agent's others are, unless `deliver` says where to.
        """

    async def add_event(
        self, agent: str, text: str, *, source: str | None = None, context_key: str | None = None, wake: bool = False
    ) -> dict[str, Any]:
        """Add an event that the agent gets when it is next woken; one with the same key replaces the older one."""

    async def get(self, agent: str) -> dict[str, Any]:
        """An agent with its schedules, sessions and events."""

    async def list(self) -> list[dict[str, Any]]:
        """All agents, by name."""

    async def pause(self, agent: str) -> dict[str, Any]:
        """Pause all jobs of an agent."""

    async def resume(self, agent: str) -> dict[str, Any]:
        """Resume all jobs of an agent."""

    async def reset_session(self, agent: str) -> int:
        """Forget the sessions of an agent, so that new ones begin; how many there were."""

    async def rate_limits(self) -> builtins.list[dict[str, Any]]:
        """The accounts that are at their rate limit: account, until, since, why, and the agents that wait."""

    async def clear_rate_limit(self, account: str) -> dict[str, Any]:
        """End the rate limit of an account, so that what waits for it starts now; the limit as it was."""


class AgentsApi(Core):
    """Agents, if the program has any."""

    @cached_property
    def agents(self) -> Agents:
        """Agents: apply, limit, request_wake, ask, add_event, get, list, pause, resume, reset_session,
        rate_limits, clear_rate_limit.

        >>> await scheduler.agents.list()
        []
        """
        return cast("Agents", load_part("agents")(self))
