"""The built-in job kind `command`: a program in a process group of its own, with a clean environment.

What must stay true:
- there is no shell: the argument list reaches the program as it is written;
- the program sees a short list of variables and what the job names, nothing else of ours;
- nothing of a command outlives its run: background children are killed when it ends, and the whole group when the run
  is cancelled, runs out of time or the scheduler stops. A child that left the group on purpose (setsid) lives on, but
  no process reads from it any more;
- we never signal a process we did not start. The leader stays unreaped until its group has been killed, because as
  long as it holds the number no other group can get it;
- what a killed scheduler left running is found again by `kill_leftover`, before the slot is run once more.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind, WrittenForm

if TYPE_CHECKING:
    from wakeful.kernel.views.models import Run

COMMAND = "command"
HIDDEN = "***"


def _check(payload: Any) -> None:
    from wakeful.command.spec import CommandSpec  # loaded when a command is used

    CommandSpec.from_payload(payload)


def _redact(payload: Any) -> Any:
    """Values of variables may be secrets; their names are not."""
    if not isinstance(payload, dict) or not payload.get("env"):
        return payload
    return {**payload, "env": dict.fromkeys(payload["env"], HIDDEN)}


def _written() -> WrittenForm:
    from wakeful.command.written import FORM  # loaded with the first file

    return FORM


async def _execute(run: Run, folder: Path) -> Any:
    from wakeful.command.kind import execute  # loaded with the first command

    return await execute(run, folder)


async def _end_leftovers(folder: Path, run_ids: list[str]) -> None:
    from wakeful.command.kind import end_leftovers

    await end_leftovers(folder, run_ids)


domain = Domain(
    "command",
    kinds=(
        Kind(
            COMMAND,
            handler=_execute,
            check_payload=_check,
            admin_only=True,
            before_recovery=_end_leftovers,
            redact=_redact,
            written=_written,
        ),
    ),
)
