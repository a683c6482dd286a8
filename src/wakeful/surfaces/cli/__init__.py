"""The command line: `wakeful`. One module per group of commands; rules live below, in the library.

Standard output carries results, standard error everything else; `--json` makes results machine-readable.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

__all__ = ["main"]

#: The modules that hold commands, and which; groups of commands are read by the argument parser alone.
MODULES: dict[str, tuple[str, ...]] = {
    "adding": ("add", "edit"),
    "jobs": ("list", "show", "remove"),
    "pausing": ("pause", "resume"),
    "undoing": ("undo",),
    "running": ("run", "logs"),
    "runs": ("runs", "cancel", "retry"),
    "approval": ("approvals", "approve", "reject"),
    "times": ("next", "explain"),
    "ledger": ("ledger",),
    "foreseeing": ("simulate", "forecast"),
    "health": ("status",),
    "alerts": (),
    "doctor": ("doctor",),
    "serve": ("serve",),
    "service": (),
    "nodes": (),
    "copying": ("copy",),
    "backing_up": ("backup", "restore"),
    "moving": ("import", "export"),
    "tokens": (),
    "linking": ("link",),
    "mcp": ("mcp",),
    "skill": ("skill",),
    "checking": ("check", "schema"),
    "applying": ("plan", "apply"),
    "starting": ("init",),
    "demo": ("demo",),
    "completion": ("completion",),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code: 0 done, 1 failed, 2 wrong use, 3 not found, 4 refused, 5 changes are planned."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a letter shows a question mark
            stream.reconfigure(errors="replace")
    own = argv is None  # this process is the command, and of no other program
    if own:
        gc.disable()
    try:
        command = _command(list(sys.argv[1:] if argv is None else argv))
        if own:  # what was loaded stays: to search it for garbage again and again takes a fifth of a short command
            gc.freeze()
            gc.enable()
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - reported, never swallowed
        from wakeful.console.failures import report_error

        return report_error(error)
    return code if isinstance(code, int) else 0


def _command(argv: list[str]) -> Callable[[], Any]:
    """What these words ask for, with all that it needs loaded."""
    if argv == ["--version"]:
        from wakeful.console.output import say
        from wakeful.version import __version__

        return lambda: say(f"wakeful {__version__}")
    if os.environ.get("WAKEFUL_TOKEN"):
        from wakeful.console.remote import refuse_other

        refuse_other(argv)
    if argv[:1] == ["_complete"]:
        from wakeful.surfaces.cli.completing import answer

        return lambda: answer(argv[1:])
    from wakeful.surfaces.cli.fast_parse import read_plainly

    call = read_plainly(argv, {name: module for module, names in MODULES.items() for name in names})
    if call is not None:
        return call.run
    tree = command_tree()
    return lambda: tree.main(argv, prog_name="wakeful", standalone_mode=False)


@cache
def command_tree() -> Any:
    """All commands, as the argument parser has them."""
    from importlib import import_module

    from typer.main import get_command

    from wakeful.domains import domains
    from wakeful.kernel.domain import load

    for name in MODULES:
        import_module(f"wakeful.surfaces.cli.{name}")
    front = import_module("wakeful.surfaces.cli.app")
    for domain in domains():
        groups = {domain.name: domain.commands} if isinstance(domain.commands, str) else domain.commands or {}
        for name, group in groups.items():
            front.app.add_typer(load(group), name=name, rich_help_panel=domain.name.capitalize())
    command: Any = get_command(front.app)
    import_module("wakeful.surfaces.cli.help").give_help(command)
    # In the order of the help; a command that is missing there comes last rather than not at all.
    order = {name: place for place, name in enumerate(front.ORDER)}
    command.commands = dict(sorted(command.commands.items(), key=lambda item: order.get(item[0], len(order))))
    return command
