"""Which steps a handler's code still calls, as far as its code says: to tell a step that was removed from one to come.

Names of steps are looked for among the texts in the code of the handler, and of the functions of its module that it
uses. A name that is put together, such as f"send-{n}", is known by how it begins.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

MOST_FUNCTIONS = 200
MOST_TEXTS = 1_000  # in a list of names
LEAST_BEGINNING = 2  # characters, the last of which is no letter or digit


def calls_step(function: Callable[..., Any], name: str) -> bool:
    """Whether the code may call for a step of that name."""
    texts = _texts(_own(function))
    return name in texts or any(name.startswith(text) for text in texts if _is_beginning(text))


def _is_beginning(text: str) -> bool:
    return len(text) >= LEAST_BEGINNING and not text[-1].isalnum() and text[0].isalnum()


def _own(function: Any) -> Any:
    """The author's function behind decorators and partials."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return getattr(function, "__func__", function)


@functools.lru_cache(maxsize=256)
def _texts(function: Any) -> frozenset[str]:
    seen: set[int] = set()
    ahead, found = [function], set[str]()
    while ahead and len(seen) < MOST_FUNCTIONS:
        one = _own(ahead.pop())
        if not isinstance(one, FunctionType) or id(one) in seen:
            continue
        seen.add(id(one))
        for code in _codes(one.__code__):
            found.update(_constants(code.co_consts))
            for value in _used(one, code):
                found.update(_constants([value]))
                ahead.append(value)
    return frozenset(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _constants(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | frozenset | list | set | dict) and len(value) <= MOST_TEXTS:
            yield from _constants(value)


def _used(function: FunctionType, code: CodeType) -> Iterator[Any]:
    """What the code refers to: functions and texts of its module, and what it has from around it."""
    for name in code.co_names:
        value = function.__globals__.get(name)
        if not isinstance(value, FunctionType) or value.__module__ == function.__module__:
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not set yet
            continue
