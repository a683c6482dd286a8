"""The source of functions, and what stands for it where there is none: then their compiled code is compared.

That is the same in every process. The text that Python shows for code is not: it has addresses, and the order of a set.
"""

from __future__ import annotations

import functools
import inspect
import tokenize
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

PLAIN = (str, bytes, int, float, complex, bool, type(None), type(...))


def source_text(function: Callable[..., Any]) -> str | None:
    """The source as it was written; None where it cannot be read, as of what was typed at a prompt."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return None


def source_or_code(function: Callable[..., Any]) -> str:
    """A text that another function does not have, and that is the same in every process."""
    return source_text(function) or repr(_parts_of(function))


def _parts_of(given: Any) -> Any:
    """What tells a function from others, in values that each process writes alike."""
    if isinstance(given, functools.partial):
        return "partial", source_or_code(given.func), _value(given.args), _value(given.keywords)
    if isinstance(given, MethodType):
        return _parts_of(given.__func__)
    if isinstance(given, FunctionType):
        return _code(given.__code__), _value(given.__defaults__), _value(given.__kwdefaults__)
    called = next((vars(one)["__call__"] for one in type(given).__mro__ if "__call__" in vars(one)), None)
    how = source_or_code(called) if isinstance(called, FunctionType) else getattr(given, "__name__", "")
    return _name_of(type(given)), how


def _code(code: CodeType) -> Any:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_name, code.co_code, names, _value(code.co_consts)


def _value(given: Any) -> Any:
    """A constant, an argument or a default; of what has no plain text only its type."""
    if isinstance(given, CodeType):
        return _code(given)
    if isinstance(given, tuple | list):
        return [_value(one) for one in given]
    if isinstance(given, frozenset | set):
        return "set", sorted(repr(_value(one)) for one in given)
    if isinstance(given, dict):
        return [(_value(key), _value(one)) for key, one in given.items()]
    if isinstance(given, FunctionType | functools.partial | MethodType):
        return source_or_code(given)
    return repr(given) if type(given) in PLAIN else _name_of(type(given))


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
