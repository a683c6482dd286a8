"""What a function of a handler forgot, found when it has returned: an `await`, or to return the state it changed."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
#: What comes of using a coroutine as if it were the value it has not got yet.
MISTAKEN = (TypeError, AttributeError)
#: The functions that are given the state, or return it.
GIVEN_STATE = ("producer", "prepare", "next")


class Begun:
    """The calls of `ctx` that a function has begun."""

    def __init__(self) -> None:
        self._calls: list[_ContextCall] = []
        self._waits: Counter[str] = Counter()  # how many of each name have not got as far as to do something

    def enter(self, name: str) -> None:
        """A call does something now."""
        self._waits[name] -= 1

    def is_lost(self, name: str) -> bool:
        """Whether a call of that name was cancelled before it had begun, once the function has ended."""
        return self._waits[name] > 0

    def add(self, name: str, call: Coroutine[Any, Any, T], code: FrameType) -> Coroutine[Any, Any, T]:
        """Note a call, and the line that made it; those before it that are over are forgotten."""
        while self._calls and self._calls[-1].is_over():
            self._calls.pop()
        self._waits[name] += 1
        self._calls.append(_ContextCall(name, call, code.f_code.co_filename, code.f_lineno))
        return call

    def wrap(self, around: Coroutine[Any, Any, T], code: FrameType) -> Coroutine[Any, Any, T]:
        """The last call is awaited by that coroutine, and was made by that code, on behalf of which it was noted."""
        self._calls[-1] = self._calls[-1]._replace(around=around, file=code.f_code.co_filename, line=code.f_lineno)
        return around

    def end(self, label: str, error: BaseException | None) -> str | None:
        """What is wrong with the calls of a function that has ended now, with that error or none."""
        left = [call for call in self._calls if not call.is_over()]
        never = [call for call in left if not call.is_begun()]
        for call in never:
            call.close()
            self._waits[call.name] -= 1
        self._calls.clear()
        if never and (error is None or isinstance(error, MISTAKEN)):
            return f"{label} called {never[0]} without await: write `await ctx.{never[0].name}(...)`."
        if left and error is None:
            return f"{label} returned before {left[0]} had ended: await the task that runs it."
        return None


class _ContextCall(NamedTuple):
    """A call of `ctx`, and the line that made it."""

    name: str
    coroutine: Coroutine[Any, Any, Any]
    file: str
    line: int
    around: Coroutine[Any, Any, Any] | None = None  # what awaits it

    def close(self) -> None:
        """It is not awaited any more."""
        self.coroutine.close()
        if self.around is not None:
            self.around.close()

    def is_begun(self) -> bool:
        return inspect.getcoroutinestate(self.coroutine) != inspect.CORO_CREATED

    def is_over(self) -> bool:
        return inspect.getcoroutinestate(self.coroutine) == inspect.CORO_CLOSED

    def __str__(self) -> str:
        return f"ctx.{self.name} ({Path(self.file).name}, line {self.line})"


class _Begins(Protocol):
    begun: Begun

    def late(self, what: str) -> Exception | None: ...


S = TypeVar("S", bound=_Begins)


def awaited(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method of `ctx` that the function which calls it must await."""

    @functools.wraps(method)
    def begin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        self.late(method.__name__)  # nobody may await it
        return self.begun.add(method.__name__, method(self, *args, **kwargs), sys._getframe(1))  # noqa: SLF001 - a line for the message

    return begin


class StateCheck:
    """The state that a function is given, and whether the function lost what it made of it."""

    def __init__(self, phase: str, state: Any) -> None:
        self._phase = phase
        self._state = state
        # A copy takes time, and many handlers have no state.
        self._before = copy.deepcopy(state) if state and phase in GIVEN_STATE else type(state)()

    def mistake(self, label: str, value: Any) -> str | None:
        """What is wrong with the value that the function returned."""
        if inspect.iscoroutine(value):
            value.close()
            return f"{label} returned a coroutine: write `return await ...`."
        if self._phase in ("producer", "next"):
            if value is not None and not isinstance(value, dict):
                return (
                    f"{label} returns its state, an object such as {{'cursor': 17}}, or None to keep it, "
                    f"not {value!r:.80}."
                )
            odd = [key for key in _keys(value) if not isinstance(key, str)]
            if odd:
                return (
                    f"{label} returns a state with the key {odd[0]!r:.80}, which would come back as a text: "
                    "write texts as keys."
                )
            if value is None and self._state != self._before:
                return f"{label} changed its state and did not return it: write `return state`."
        if self._phase == "prepare" and self._state != self._before:
            return f"{label} changed the state, and that is not stored: return the new state from next."
        return None


def _keys(value: Any) -> Iterator[Any]:
    """All keys of the objects in a value; of what contains itself those that were seen before it did again."""
    ahead, seen = [value], set[int]()
    while ahead:
        one = ahead.pop()
        if not isinstance(one, dict | list | tuple) or id(one) in seen:
            continue
        seen.add(id(one))
        yield from one if isinstance(one, dict) else ()
        ahead.extend(one.values() if isinstance(one, dict) else one)
