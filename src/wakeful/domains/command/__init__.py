"""The built-in job kind `command`: a program in a process group of its own, with a clean environment.

What must stay true:
- there is no shell: the argument list reaches the program as it is written;
- the program sees a short list of variables and what the job names, nothing else of ours;
- nothing of a command outlives its run: background children are killed when it ends, and the whole group when the run
  is cancelled, runs out of time or the scheduler stops. A child that left the group on purpose (setsid) lives on, but
  no process reads from it any more;
- we never signal a process we did not start. The leader stays unreaped until its group has been killed, because as
  long as it holds the number no other group can get it;
- what a killed scheduler left running is found again by `kill_leftover`, before the slot runs again. A domain may
  ask for more: that also what left the group is found, by its environment, and ended (`kill_strays`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.domains.command.result import CommandResult
    from wakeful.domains.command.run import Streams
    from wakeful.domains.command.spec import CommandSpec
    from wakeful.kernel.model.run import Run

__all__ = [
    "COMMAND",
    "ArgumentsRefused",
    "CommandFailed",
    "CommandResult",
    "CommandSpec",
    "CommandTimedOut",
    "Streams",
    "domain",
]

COMMAND = "command"
HIDDEN = "***"

_OFFERED = {
    "ArgumentsRefused": "result",
    "CommandFailed": "result",
    "CommandResult": "result",
    "CommandSpec": "spec",
    "CommandTimedOut": "result",
    "Streams": "run",
}


def __getattr__(name: str) -> Any:
    """What other domains use to run a program; loaded when it is."""
    if name in _OFFERED:
        return getattr(import_module(f"wakeful.domains.command.{_OFFERED[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


async def run_program(
    spec: CommandSpec, streams: Streams, *, run_env: Mapping[str, str], log_path: Path, secrets: Collection[str] = ()
) -> CommandResult:
    """Run a program for another domain as commands are run: in a group of its own, with nothing left behind."""
    from wakeful.domains.command.run import run_command

    return await run_command(spec, run_env=run_env, log_path=log_path, secrets=secrets, streams=streams)


async def end_programs(folder: Path, run_ids: list[str], variable: str) -> None:
    """End what a killed process left running of these runs, also what left their process groups.

    `variable` is one that all programs of the domain have in their environment besides the run's id.
    """
    from wakeful.domains.command.kind import end_leftovers

    await end_leftovers(folder, run_ids, variable)


def _check(payload: Any) -> None:
    from wakeful.domains.command.spec import CommandSpec  # loaded when a command is used

    CommandSpec.from_payload(payload)


def _redact(payload: Any) -> Any:
    """Values of variables may be secrets; their names are not."""
    if not isinstance(payload, dict) or not payload.get("env"):
        return payload
    return {**payload, "env": dict.fromkeys(payload["env"], HIDDEN)}


async def _execute(run: Run, folder: Path) -> Any:
    from wakeful.domains.command.kind import execute  # loaded with the first command

    return await execute(run, folder)


async def _end_leftovers(folder: Path, run_ids: list[str]) -> None:
    from wakeful.domains.command.kind import end_leftovers

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
            fields="wakeful.domains.command.fields:FIELDS",
            finish="wakeful.domains.command.fields:finish",
        ),
    ),
    obstacles={COMMAND: "wakeful.domains.command.launch:obstacles_of_payload"},
    run_here={COMMAND: "wakeful.console.running_here:adopt_what_it_refers_to"},
)
