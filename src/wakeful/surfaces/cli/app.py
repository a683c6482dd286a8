"""The command line's front: what holds for every command, and how commands are grouped in the help."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wakeful import __version__
from wakeful.console.failures import WrongUse
from wakeful.console.output import say, say_trusted
from wakeful.console.store_location import Db

JOBS, RUNS, TIME, SERVER = "Jobs", "Runs", "Time", "Server and store"
ORDER = (
    *("add", "edit", "list", "show", "pause", "resume", "remove", "undo"),
    *("run", "runs", "logs", "cancel", "retry", "approvals", "approve", "reject"),
    *("next", "explain", "ledger", "simulate", "forecast"),
    "workflow",
    *(
        "serve",
        "status",
        "doctor",
        "service",
        "alert",
        "node",
        "copy",
        "backup",
        "restore",
        "import",
        "export",
        "token",
        "mcp",
        "skill",
        "init",
        "check",
        "plan",
        "apply",
        "schema",
        "demo",
    ),
    "completion",
)

app = typer.Typer(
    name="wakeful",
    help="A durable scheduler: it runs jobs on time and explains what it did.",
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
    """A durable scheduler: it runs jobs on time and explains what it did."""
    ctx.obj = {"db": db}
    if ctx.invoked_subcommand is None:
        say_trusted(ctx.get_help())


WHEN = {"--cron", "--every", "--interval", "--at", "--after"}


class WithCommand(TyperCommand):
    """A command that takes another one after `--`, unchanged: `wakeful add NAME --every 5m -- ls -l`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Cut at the first `--`, so that a forgotten name is never taken from the command."""
        ctx.meta["argv"] = None
        if "--" in args:
            cut = args.index("--")
            args, ctx.meta["argv"] = args[:cut], args[cut + 1 :]
        given = list(args)
        try:
            return super().parse_args(ctx, list(_plain_flags(args)))
        except Exception as error:
            right = self._with_dashes(given) if hasattr(error, "format_message") else None
            if right is not None and (word := _not_yes_or_no(given, whole=ctx.meta["argv"] is not None)):
                raise WrongUse(_YES_OR_NO.format(word)) from None
            if right is None or ctx.meta["argv"] is not None:
                raise
            raise WrongUse(f"The command to run goes after --: {ctx.command_path} {shlex.join(right)}") from None

    def _with_dashes(self, words: list[str]) -> list[str] | None:
        """The words with `--` where the command begins: at the second that belongs to no option.

        None without one, and after an option that there is not: then that is what is wrong.
        """
        takes = {flag: not getattr(each, "is_flag", False) for each in self.params for flag in each.opts}
        takes |= {flag: False for each in self.params for flag in each.secondary_opts}
        options, places, left = list[str](), list[str](), list(words)
        while left and len(places) < 2:
            word = left.pop(0)
            if not word.startswith("-"):
                places.append(word)
                continue
            if word.partition("=")[0] not in takes:
                return None
            options.append(word)
            if takes.get(word) and left:
                options.append(left.pop(0))
        if len(places) < 2:
            return None
        command = [places[1]]
        while left:  # an option of ours that comes late, such as the schedule, was meant for us where none came before
            word = left.pop(0)
            late = takes.get(word) and left and not WHEN & set(options)
            command += [] if late else [word]
            options += [word, left.pop(0)] if late else []
        return [places[0], *options, "--", *command]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


_SAID = {"yes": "--approval", "no": "--no-approval", "none": "--no-approval"}
_YES_OR_NO = "--approval {!r}: write yes or no, or --approval alone for yes."


def _not_yes_or_no(args: list[str], *, whole: bool) -> str | None:
    """The word after `--approval` that is neither; `whole`: all words are ours, else it must be the last."""
    place = args.index("--approval") + 1 if "--approval" in args else len(args)
    word = args[place] if place < len(args) else "-"
    return word if not word.startswith("-") and word not in _SAID and (whole or place == len(args) - 1) else None


def _plain_flags(args: list[str]) -> Iterator[str]:
    """`--approval yes` and `--approval=no` mean the flags `--approval` and `--no-approval`."""
    words = iter(args)
    for word in words:
        flag, given, value = word.partition("=")
        if word == "--approval":
            after = next(words, None)
            yield _SAID.get(after or "", word)
            if after is not None and after not in _SAID:
                yield after
        elif flag == "--approval" and given and value not in _SAID:
            raise WrongUse(_YES_OR_NO.format(value))
        else:
            yield _SAID[value] if flag == "--approval" else word
