"""Asking for a correction: a Python function, or a program with JSON on its standard input and output."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.child_processes import EnvironmentList, run_beside
from wakeful.threads import room

LIMIT_S = 600.0
MAX_BYTES = 5_000_000
MAX_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class FixRequest:
    """What a hook for corrections is given: the run that failed, the trace through its code, and the source.

    `files` maps the names of files, relative to `folder`, to their text. A workflow made in code has one entry for
    each of its functions. `attempt` counts from 1 to 3.
    """

    workflow: str
    handler: str
    run: str
    phase: str
    attempt: int
    version: str
    error: str
    traceback: str
    files: Mapping[str, str]
    folder: str | None = None


class HookAnswer(NamedTuple):
    """What a hook answered: files with their new text or a whole `Workflow`, and a remark. Both None: nothing."""

    files: dict[str, str] | None = None
    workflow: Any = None
    note: str | None = None


class NoAnswer(Exception):
    """A hook for corrections that failed, or answered what cannot be used."""


Hook = Callable[[FixRequest], Any] | Sequence[str]


async def ask(
    hook: Hook, request: FixRequest, env: Sequence[str] = (), *, home: Path | None, inline: bool
) -> HookAnswer:
    """Ask the hook; NoAnswer where it fails, says nonsense or takes longer than ten minutes.

    `env` lists what a program gets besides ordinary variables: NAME or NAME=value.
    """
    asked = (
        _call(hook, request, inline=inline)
        if callable(hook)
        else _run(hook, request, home, EnvironmentList.read(env).environment())
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            found = await asked
    except TimeoutError:
        raise NoAnswer("the hook took longer than 10 minutes") from None
    return read_answer(found)


async def _call(hook: Callable[[FixRequest], Any], request: FixRequest, *, inline: bool) -> Any:
    try:
        if inline or inspect.iscoroutinefunction(hook):
            found = hook(request)
        else:
            found = await room("corrections of workflows").call(hook, request)
        return await _awaited(found) if inspect.isawaitable(found) else found
    except NoAnswer:
        raise
    except Exception as error:  # whatever it raises is why there is no correction
        raise NoAnswer(f"the hook failed: {type(error).__name__}: {error}") from error


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


async def _run(argv: Sequence[str], request: FixRequest, home: Path | None, env: Mapping[str, str]) -> Any:
    given = json.dumps(asdict(request), ensure_ascii=False).encode() + b"\n"
    try:
        ended = await run_beside(argv, env=env, cwd=home, stdin=given, keep=MAX_BYTES)
    except OSError as error:
        raise NoAnswer(f"{argv[0]} cannot be started ({error.strerror})") from None
    if ended.exit_code:
        last = ended.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NoAnswer(f"{argv[0]} ended with exit code {ended.exit_code}" + "".join(f": {line}" for line in last))
    return _parsed(ended.output)


def _parsed(said: bytes) -> Any:
    if len(said) > MAX_BYTES:
        raise NoAnswer(f"the answer has more than {MAX_BYTES} bytes")
    if not said.strip():
        return None
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        raise NoAnswer('the answer is not JSON: {"files": {"NAME.py": "TEXT"}, "note": "TEXT"}') from None


def read_answer(found: Any) -> HookAnswer:
    """What was answered: nothing, a workflow, or files by name, also as `{"files": …, "note": …}`."""
    from wakeful.domains.workflows.authoring import Workflow

    if found is None:
        return HookAnswer()
    if isinstance(found, Workflow):
        return HookAnswer(workflow=found)
    if not isinstance(found, Mapping):
        raise NoAnswer(f"the answer is neither files nor a workflow: {found!r:.80}")
    files = found.get("files") if set(found) <= {"files", "note"} else found
    note = found.get("note") if set(found) <= {"files", "note"} else None
    if not files:
        return HookAnswer(note=_note(note))
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for pair in files.items() for text in pair):
        raise NoAnswer("the files of the answer are not texts by name")
    for name in files:
        _check_name(name)
    return HookAnswer(dict(files), note=_note(note))


def _check_name(name: str) -> None:
    """A file next to the workflow's own, and nothing elsewhere."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or path.suffix != ".py" or "\0" in name or path.parts[0] == "~":
        raise NoAnswer(f"the answer names {name!r:.80}, which is no Python file in the workflow's folder")


def _note(note: Any) -> str | None:
    return note[:MAX_NOTE] if isinstance(note, str) and note.strip() else None
