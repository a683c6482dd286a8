"""The command line's front: what holds for every command, and how commands are grouped in the help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wakeful import __version__
from wakeful.cli.place import Db
from wakeful.cli.saying import say, say_trusted

JOBS, RUNS, TIME, SERVER = "Jobs", "Runs", "Time", "Server and store"
ORDER = (
    *("add", "edit", "list", "show", "pause", "resume", "remove"),
    *("run", "runs", "logs", "cancel", "retry", "approvals", "approve", "reject"),
    *("next", "explain"),
    *("serve", "status", "doctor", "alert", "node", "copy", "token", "check", "plan", "apply", "schema", "demo"),
    "completion",
)

app = typer.Typer(
    name="wakeful",
    help="A durable scheduler: jobs at the right time, once, and why.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the parser calls it
    if asked:
        say(f"wakeful {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def front(
    ctx: typer.Context,
    *,
    db: Db = None,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A durable scheduler: jobs at the right time, once, and why."""
    ctx.obj = {"db": db}
    if ctx.invoked_subcommand is None:
        say_trusted(ctx.get_help())


class WithCommand(TyperCommand):
    """A command that is given another one after `--`, word for word: `wakeful add NAME --every 5m -- ls -l`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Cut at the first `--`, so that a forgotten name is never taken from the command."""
        ctx.meta["argv"] = None
        if "--" in args:
            cut = args.index("--")
            args, ctx.meta["argv"] = args[:cut], args[cut + 1 :]
        return super().parse_args(ctx, list(_plain_flags(args)))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


_SAID = {"yes": "--approval", "no": "--no-approval", "none": "--no-approval"}


def _plain_flags(args: list[str]) -> Iterator[str]:
    """`--approval yes` and `--approval=no` mean the flags `--approval` and `--no-approval`."""
    words = iter(args)
    for word in words:
        if word == "--approval":
            after = next(words, None)
            yield _SAID.get(after or "", word)
            if after is not None and after not in _SAID:
                yield after
        else:
            flag, _, value = word.partition("=")
            yield _SAID.get(value, word) if flag == "--approval" else word
