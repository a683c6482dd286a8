"""Programs that handlers start through the event loop: one that outlives its call, which was cut off, is known here.

If it is a change that was cut off, it counts as a thread at work until it has ended. A program that is left behind by
a handler which returns, or fails by itself, was meant to continue.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.threads import current

WAYS = ("subprocess_exec", "subprocess_shell")


def watch_programs(loop: asyncio.AbstractEventLoop) -> None:
    """See which programs handlers start on this loop, and when they end."""
    for way in WAYS:
        original = getattr(loop, way)
        if getattr(original, "is_watched", False):
            return
        start = functools.partial(_start, original)
        start.is_watched = True  # type: ignore[attr-defined]
        try:
            setattr(loop, way, start)
        except AttributeError:
            return  # nor can its threads be seen, which is said where they are watched


async def _start(original: Callable[..., Awaitable[Any]], factory: Callable[[], Any], *given: Any, **named: Any) -> Any:
    work = current()
    if work is None:
        return await original(factory, *given, **named)
    end = work.begin_program()
    if end is None:
        message = "A program was to be started after its handler had been cut off, and was not."
        raise LogicError(message)
    try:
        transport, protocol = await original(functools.partial(_telling, factory, end), *given, **named)
    except BaseException:
        end()  # it was not started, or asyncio has ended it
        raise
    return transport, protocol


def _telling(factory: Callable[[], Any], end: Callable[[], None]) -> Any:
    """A protocol that says as well when its program has ended."""
    protocol = factory()
    exited = protocol.process_exited

    def process_exited() -> None:
        end()
        exited()

    protocol.process_exited = process_exited
    return protocol
