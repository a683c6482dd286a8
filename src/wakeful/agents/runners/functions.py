"""The runner `python`: a function of the turn, in a file beside the configuration or in a module that is installed.

A file is loaded by its path under a private name, so that two files of one name do not meet, and anew when it changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.agents.runners.spec import DEFAULT_TIMEOUT_MS
from wakeful.agents.runners.turn import Answered, Ending, Reply, Surroundings, Turn, Wrong, usable_session
from wakeful.errors import InvalidJob

_loaded: dict[str, tuple[int, Any]] = {}


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


def load_function(reference: str) -> Any:
    """What `module:function` or `/path/file.py:function` names; InvalidJob where there is no such function."""
    place, _, name = reference.rpartition(":")
    module = _from_file(Path(place)) if place.endswith(".py") else _installed(place)
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidJob(f"{place} has no function {name!r}.")
    return function


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidJob(f"The module {name!r} cannot be imported: {error}.") from None


def _from_file(path: Path) -> Any:
    try:
        changed = path.stat().st_mtime_ns
    except OSError as error:
        raise InvalidJob(f"{path} cannot be read ({error.strerror}).") from None
    known = _loaded.get(str(path))
    if known is not None and known[0] == changed:
        return known[1]
    private = f"_wakeful_agent_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(private, path)
    if spec is None or spec.loader is None:
        raise InvalidJob(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[private] = module  # dataclasses and pickles look themselves up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(private, None)
        raise InvalidJob(f"{path} cannot be loaded: {type(error).__name__}: {error}.") from error
    _loaded[str(path)] = (changed, module)
    return module
