"""Which trace the code that runs now is part of, as W3C Trace Context writes it, for what is started and asked outside.

The traces themselves are made by `wakeful.tracing`; nothing of that is needed here.
"""

from __future__ import annotations

from contextvars import ContextVar

_PARENT: ContextVar[str | None] = ContextVar("wakeful_traceparent", default=None)


def enter(traceparent: str) -> None:
    """The rest of this task, and what it begins, is part of that trace."""
    _PARENT.set(traceparent)


def is_traced() -> bool:
    """Whether this code is part of a trace."""
    return _PARENT.get() is not None


def trace_variables() -> dict[str, str]:
    """What a program is given to continue the trace; nothing where there is none."""
    parent = _PARENT.get()
    return {} if parent is None else {"TRACEPARENT": parent}


def trace_headers() -> dict[str, str]:
    """What a request carries to continue the trace; nothing where there is none."""
    parent = _PARENT.get()
    return {} if parent is None else {"traceparent": parent}
