"""The runner `python`: a function of the turn, in a file beside the configuration or in a module that is installed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from wakeful.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.agents.runners.turn import Answered, Ending, Reply, Surroundings, Turn, Wrong, usable_session
from wakeful.callables import load_function


async def ask_function(runner: Mapping[str, Any], turn: Turn, around: Surroundings) -> Ending:
    """Call the function; what it raises is the run's error."""
    function = load_function(runner["python"])
    seconds = runner.get("timeout", DEFAULT_TIMEOUT_MS) / 1000
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(function):
                answer = await function(turn)
            else:
                answer = await asyncio.to_thread(function, turn)
    except TimeoutError:
        return Wrong(f"stopped after its limit of {seconds:g} s", outcome="timeout")
    if isinstance(answer, str) or answer is None:
        return Answered(Reply(answer or "", turn.session))
    if not isinstance(answer, Reply):
        return Wrong(f"{runner['python']} returned a {type(answer).__name__}: return a text or a Reply")
    if answer.session is not None and usable_session(answer.session) is None:
        return Wrong(f"{runner['python']} returned a session that cannot be used as an id")
    if answer.session is not None:
        around.on_session(answer.session)
    return Answered(answer)
