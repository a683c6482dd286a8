"""Which steps a handler's code still calls, as far as its code says: to tell a step that was removed from one to come.

Names of steps are what the code gives to `step`, in the handler and in the functions of its module that it uses. A name
that is put together, such as f"send-{n}", is known by how it begins. Only where the code gives `step` something else
than a text, such as a variable, any text in the code, and in what it uses, may be a name.
"""

from __future__ import annotations

import dis
import functools
import itertools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

MOST_FUNCTIONS = 200
MOST_TEXTS = 1_000  # in a list of names
LEAST_BEGINNING = 2  # characters, the last of which is no letter or digit
STEP = "step"
LOADS = ("LOAD_METHOD", "LOAD_ATTR")
PASSED_OVER = ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL")


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
    """The names given to `step`; all texts where one of them cannot be read."""
    used = list(_functions(function))
    named, is_known = set[str](), True
    for one in used:
        for code in _codes(one.__code__):
            names = list(_given_to_step(code))
            named.update(name for name in names if name is not None)
            is_known = is_known and None not in names and STEP not in code.co_consts
    if named and is_known:
        return frozenset(named)
    found = set[str]()
    for one in used:
        for code in _codes(one.__code__):
            found.update(_constants(code.co_consts))
            for value in _used(one, code):
                found.update(_constants([value]))
    return frozenset(found)


def _functions(function: Any) -> Iterator[FunctionType]:
    """The function, and those of its module that it uses."""
    seen: set[int] = set()
    ahead = [function]
    while ahead and len(seen) < MOST_FUNCTIONS:
        one = _own(ahead.pop())
        if not isinstance(one, FunctionType) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        for code in _codes(one.__code__):
            ahead.extend(_used(one, code))


def _given_to_step(code: CodeType) -> Iterator[str | None]:
    """The first text behind each `.step` in the code; None where that is no text."""
    steps = [one for one in dis.get_instructions(code) if one.opname not in PASSED_OVER]
    for one, following in itertools.pairwise(steps):
        if one.opname in LOADS and one.argval == STEP:
            is_text = following.opname == "LOAD_CONST" and isinstance(following.argval, str)
            yield following.argval if is_text else None


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
