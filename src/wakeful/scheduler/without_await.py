"""The parts of `wakeful.sync.Scheduler`: its agents, workflows and connectors, without `await`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from wakeful.scheduler.agents import Agents as AsyncAgents
from wakeful.scheduler.delivery import Connectors as AsyncConnectors
from wakeful.scheduler.loop_thread import LoopThread
from wakeful.scheduler.workflows import Workflows as AsyncWorkflows

P = ParamSpec("P")
T = TypeVar("T")


def documented(call: Callable[..., Any], method: Callable[..., Any]) -> None:
    """Give a call the name, signature and docstring of the async method it waits for."""
    functools.update_wrapper(call, method)
    call.__doc__ = (method.__doc__ or "").replace("await ", "")


class SyncConnectors:
    """The connectors of one scheduler."""

    def __init__(self, inner: AsyncConnectors, ask: Callable[[Callable[[], Any]], Any], thread: LoopThread) -> None:
        self._inner = inner
        self._ask = ask
        self._thread = thread

    def register(self, name: str, send: Callable[[Any], Any]) -> Callable[[], None]:
        """Send what is delivered to `name` with a function or a connector; call the answer to end that."""
        unregister = self._ask(lambda: self._inner.register(name, send))
        return lambda: self._ask(unregister)

    def touch(self, name: str, sender: str, agent: str | None = None) -> None:
        """Record that a person wrote through a connector: `last` routes there from now on."""

        async def write() -> None:
            await self._inner.touch(name, sender, agent)

        self._thread.call(write())


class SyncAgents:
    """The agents of one scheduler."""

    def __init__(self, inner: AsyncAgents, thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread

    def apply(self, agents: Mapping[str, Any], *, folder: Path | None = None) -> dict[str, list[str]]:
        """Make the agents of this program what the mapping says, as the section `agents` of wakeful.yaml would."""
        return self._thread.call(self._inner.apply(agents, folder=folder))

    def request_wake(self, agent: str, reason: str = "manual") -> dict[str, Any]:
        """Wake an agent; requests within 250 ms become one run."""
        return self._thread.call(self._inner.request_wake(agent, reason))

    def ask(self, agent: str, prompt: str, *, deliver: str | None = None) -> dict[str, Any]:
        """Ask an agent now: the run that asks, whose output has the reply. All questions share a session."""
        return self._thread.call(self._inner.ask(agent, prompt, deliver=deliver))

    def add_event(
        self, agent: str, text: str, *, source: str | None = None, context_key: str | None = None, wake: bool = False
    ) -> dict[str, Any]:
        """Add an event that the agent gets when it is next woken; one with the same key replaces the older one."""
        event = self._inner.add_event(agent, text, source=source, context_key=context_key, wake=wake)
        return self._thread.call(event)

    def get(self, agent: str) -> dict[str, Any]:
        """An agent with its schedules, sessions and events."""
        return self._thread.call(self._inner.get(agent))

    def all(self) -> list[dict[str, Any]]:
        """All agents, by name."""
        return self._thread.call(self._inner.list())

    def pause(self, agent: str) -> dict[str, Any]:
        """Pause all jobs of an agent."""
        return self._thread.call(self._inner.pause(agent))

    def resume(self, agent: str) -> dict[str, Any]:
        """Resume all jobs of an agent."""
        return self._thread.call(self._inner.resume(agent))

    def reset_session(self, agent: str) -> int:
        """Forget the sessions of an agent, so that new ones begin; how many there were."""
        return self._thread.call(self._inner.reset_session(agent))

    def rate_limits(self) -> list[dict[str, Any]]:
        """The accounts that are at their rate limit: account, until, since, why, and the agents that wait."""
        return self._thread.call(self._inner.rate_limits())

    def clear_rate_limit(self, account: str) -> dict[str, Any]:
        """End the rate limit of an account, so that what waits for it starts now; the limit as it was."""
        return self._thread.call(self._inner.clear_rate_limit(account))

    list = all  # noqa: A003 - the name it has on the other scheduler; as a method it would hide the type above


def _waiting(
    method: Callable[Concatenate[AsyncWorkflows, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """An async method of the scheduler's workflows, as one that returns when it is done."""

    def call(self: SyncWorkflows, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._inner, method.__name__)(*args, **kwargs)
        return self._thread.call(work)

    documented(call, method)
    return call


class SyncWorkflows:
    """The workflows of one scheduler."""

    def __init__(self, inner: AsyncWorkflows, thread: LoopThread) -> None:
        self._inner = inner
        self._thread = thread

    get = _waiting(AsyncWorkflows.get)
    list = _waiting(AsyncWorkflows.list)
    runs = _waiting(AsyncWorkflows.runs)
    events = _waiting(AsyncWorkflows.events)
    inputs = _waiting(AsyncWorkflows.inputs)
    publish = _waiting(AsyncWorkflows.publish)
    run = _waiting(AsyncWorkflows.run)
    pause = _waiting(AsyncWorkflows.pause)
    resume = _waiting(AsyncWorkflows.resume)
    drain = _waiting(AsyncWorkflows.drain)
    settle = _waiting(AsyncWorkflows.settle)
    approve = _waiting(AsyncWorkflows.approve)
    reject = _waiting(AsyncWorkflows.reject)
    skip = _waiting(AsyncWorkflows.skip)
    rerun = _waiting(AsyncWorkflows.rerun)
    replay = _waiting(AsyncWorkflows.replay)
