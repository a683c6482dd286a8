"""The handler of command jobs, and the end of what an earlier process left of them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from wakeful.domains.command.leftovers import RUN_ID, has_note, kill_leftover, kill_strays
from wakeful.domains.command.result import CommandResult, CommandTimedOut
from wakeful.domains.command.run import run_command
from wakeful.domains.command.spec import CommandSpec, looked_up
from wakeful.kernel.engine.long_output import log_path
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.outcome import Failed, Output, clean
from wakeful.private_files import open_unlinked
from wakeful.threads import room

KEPT_OF_CANCELLED = 64 * 1024


async def execute(run: Run, folder: Path) -> Output:
    """Run the command in the job's payload, logging below `folder`."""
    spec = looked_up(CommandSpec.from_payload(run.payload), os.environ)
    path = log_path(folder, run.id)
    try:
        result = await run_command(spec, run_env=_environment(run), log_path=path)
    except CommandTimedOut as error:
        raise Failed(str(error), _output(error.result), "timeout") from None
    except asyncio.CancelledError:
        said = _said_so_far(path)
        if said is None:
            raise
        # The reason for the cancel decides the outcome; what was printed until then is kept with it.
        raise Failed("it was ended before it finished", said) from None
    problem = result.error()
    if problem is not None:
        raise Failed(problem, _output(result))
    return _output(result)


def _environment(run: Run) -> dict[str, str]:
    slot = run.slot
    return {
        RUN_ID: run.id,
        "WAKEFUL_JOB": run.job,
        "WAKEFUL_SLOT": slot.isoformat() if slot is not None else "",
        "WAKEFUL_ATTEMPT": str(run.attempt),
        "WAKEFUL_REASON": run.reason,
    }


def _said_so_far(path: Path) -> Output | None:
    """The end of what a cancelled command has printed; None when that is nothing."""
    try:
        with open_unlinked(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - KEPT_OF_CANCELLED))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    return Output({"exit_code": None, "output": clean(text)}, str(path))


async def end_leftovers(folder: Path, run_ids: list[str], variable: str | None = None) -> int:
    """End commands that outlived the process that started them; how many there were.

    With a `variable` also what left their groups. The note goes last, with the group: cut off, it is all done again.
    """
    ended = 0
    for run_id in run_ids:
        path = log_path(folder, run_id)
        if not has_note(path):
            continue
        if variable is not None:
            await room("processes").call(kill_strays, run_id, variable)
        ended += await room("processes").call(kill_leftover, path)
    return ended


def _output(result: CommandResult) -> Output:
    data: dict[str, Any] = {"exit_code": result.exit_code, "output": result.output}
    if result.truncated:
        data["output_bytes"] = result.output_bytes
    if result.notes:
        data["notes"] = list(result.notes)
    return Output(data, str(result.log_file) if result.log_file is not None else None)
