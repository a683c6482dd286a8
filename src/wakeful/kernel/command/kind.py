"""The handler of command jobs, and the end of what an earlier process left of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from wakeful import ids
from wakeful.kernel.command.leftovers import RUN_ID, kill_leftover
from wakeful.kernel.command.result import CommandResult, CommandTimedOut
from wakeful.kernel.command.run import run_command
from wakeful.kernel.command.spec import CommandSpec
from wakeful.kernel.long_output import log_path
from wakeful.kernel.models import Run
from wakeful.kernel.outcome import Failed, Output


def command_handler(folder: Callable[[], Path]) -> Callable[[Run], Awaitable[Output]]:
    """The handler, writing logs below `folder()`."""

    async def execute(run: Run) -> Output:
        spec = CommandSpec.from_payload(run.payload)
        slot = run.slot
        env = {
            RUN_ID: run.id,
            "WAKEFUL_JOB": run.job,
            "WAKEFUL_SLOT": slot.isoformat() if slot is not None else "",
            "WAKEFUL_ATTEMPT": str(run.attempt),
            "WAKEFUL_REASON": run.reason,
        }
        try:
            result = await run_command(spec, run_env=env, log_path=log_path(folder(), run.id))
        except CommandTimedOut as error:
            raise Failed(str(error), _output(error.result), "timeout") from None
        problem = result.error()
        if problem is not None:
            raise Failed(problem, _output(result))
        return _output(result)

    return execute


async def end_leftovers(folder: Path, run_ids: list[int]) -> int:
    """End commands that outlived the process that started them; how many there were."""
    ended = 0
    for run_id in run_ids:
        path = log_path(folder, ids.run_text(run_id))
        ended += await asyncio.get_running_loop().run_in_executor(None, kill_leftover, path)
    return ended


def _output(result: CommandResult) -> Output:
    data: dict[str, Any] = {"exit_code": result.exit_code, "output": result.output}
    if result.truncated:
        data["output_bytes"] = result.output_bytes
    if result.notes:
        data["notes"] = list(result.notes)
    return Output(data, str(result.log_file) if result.log_file is not None else None)
