"""The runner `python`: a function of the turn, in a file next to the configuration or in a module that is installed.

A plain function runs in a thread. Nothing can stop it: past its time limit, or when its run is cancelled, it works on,
and its run keeps its place until it returns. The threads are the runners' own, so that nothing else waits for them.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wakeful.callables import load_function
from wakeful.domains.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Ending, Reply, Surroundings, Turn, usable_session
from wakeful.kernel.loop.handlers import unstoppable, was_asked_to_end
from wakeful.threads import Pool

MAX_THREADS = 64
_POOL = Pool("wakeful-runner")
_BEGINNING = threading.Lock()


class PastLimit(Exception):
    """The function took longer than it may, or no thread was free for it."""


async def ask_function(runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    """Call the function; what it raises is the run's error."""
    function = load_function(runner["python"])
    limit_ms = runner.get("timeout", DEFAULT_TIMEOUT_MS)
    try:
        if inspect.iscoroutinefunction(function):
            answer = await _within(limit_ms, function(turn))
        elif around.inline:
            answer = function(turn)
        else:
            answer = await _FunctionCall(function, turn).result(limit_ms)
    except PastLimit:
        return CallFailed(f"stopped after its limit of {limit_ms / 1000:g} s", outcome="timeout")
    return _ending(runner["python"], answer, turn, around)


async def _within(limit_ms: int, work: Awaitable[Any]) -> Any:
    """What is awaited, or PastLimit; a TimeoutError of its own is not about the limit."""
    try:
        async with asyncio.timeout(limit_ms / 1000) as limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise PastLimit from None
        raise


def _ending(name: str, answer: Any, turn: Turn, around: Surroundings) -> Ending:
    if isinstance(answer, str) or answer is None:
        return Answered(Reply(answer or "", turn.session))
    if not isinstance(answer, Reply):
        return CallFailed(f"{name} returned a {type(answer).__name__}: return a text or a Reply")
    if answer.session is not None and usable_session(answer.session) is None:
        return CallFailed(f"{name} returned a session that cannot be used as an id")
    if answer.session is not None:
        around.on_session(answer.session)
    return Answered(answer)


class _FunctionCall:
    """A function that is called in a thread, once there is one."""

    def __init__(self, function: Callable[[Turn], Any], turn: Turn) -> None:
        self._function = function
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._begun: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()
        self._state = "waits"

    async def result(self, limit_ms: int) -> Any:
        """What the function returns or raises. Where no engine keeps its place, it is left behind at its limit."""
        _POOL.put(self._work, MAX_THREADS)
        try:
            await _within(limit_ms, self._begun)
        except (PastLimit, asyncio.CancelledError) as ended:
            is_shutdown = isinstance(ended, asyncio.CancelledError) and not was_asked_to_end()
            if self._move("waits", "left") or is_shutdown:
                raise  # else a thread has begun it just now
        with unstoppable(limit_ms) as is_watched:
            answer, error = await (self._answer if is_watched else _within(limit_ms, asyncio.shield(self._answer)))
        if error is not None:
            raise error
        return answer

    def _work(self) -> None:
        if not self._move("waits", "works"):
            return
        self._notify(self._begun, None)
        try:
            answer, raised = self._function(self._turn), None
        except BaseException as error:  # noqa: BLE001 - carried to the loop, where it is the run's error
            answer, raised = None, error
        self._notify(self._answer, (answer, raised))

    def _move(self, before: str, after: str) -> bool:
        with _BEGINNING:
            moved = self._state == before
            self._state = after if moved else self._state
        return moved

    def _notify(self, future: asyncio.Future[Any], value: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_finish, future, value)


def _finish(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
