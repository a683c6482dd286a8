"""What `--help` prints: usage, one line for each command, argument and option, in groups. Plain text that fits."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wakeful.console.failures import has_colours

WIDEST = 100
NAMES_MOST = 30  # columns; a longer name has its text on the next line
OTHER_OPTIONS = "Options"
OTHER_COMMANDS = "Commands"


def give_help(command: Any) -> None:
    """Let a command and those below it print their help this way."""
    command.format_help = lambda ctx, formatter: formatter.write(help_text(ctx))
    for below in getattr(command, "commands", {}).values():
        give_help(below)


def help_text(ctx: Any, width: int | None = None) -> str:
    """The help of the command that `ctx` belongs to."""
    columns = width if width is not None else min(shutil.get_terminal_size().columns, WIDEST)
    command = ctx.command
    parts = [_usage(ctx), *_about(command.help or "", columns)]
    parameters = [one for one in command.get_params(ctx) if not getattr(one, "hidden", False)]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    parts += _sections(
        {"Arguments": [(_place(one), one.help or "") for one in arguments]} if arguments else {}, columns
    )
    parts += _sections(_commands(command), columns)
    parts += _sections(_options(one for one in parameters if one.param_type_name == "option"), columns)
    return "\n\n".join(parts) + "\n"


def summary(text: str) -> str:
    """The first sentence, for a list of commands."""
    return " ".join(text.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."


def _usage(ctx: Any) -> str:
    words = [piece for piece in ctx.command.collect_usage_pieces(ctx) if piece.startswith("-- ")]
    below = ["COMMAND [ARGS]..."] if getattr(ctx.command, "commands", None) else []
    arguments = [_place(one) for one in ctx.command.get_params(ctx) if one.param_type_name == "argument"]
    return " ".join([f"{_bold('Usage:')} {ctx.command_path}", *arguments, "[OPTIONS]", *below, *words])


def _place(argument: Any) -> str:
    """An argument as it stands in the usage: NAME, [NAME], NAME... or [NAME...]."""
    name = str(argument.metavar or argument.name.upper()).strip("[]").removesuffix("...")
    shown = f"{name}..." if argument.nargs == -1 else name
    return shown if argument.required else f"[{shown}]"


def _about(text: str, width: int) -> Iterator[str]:
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        yield "\n".join(textwrap.wrap(" ".join(paragraph.split()), width, break_on_hyphens=False))


def _commands(command: Any) -> dict[str, list[tuple[str, str]]]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            group = getattr(one, "rich_help_panel", None)
            groups.setdefault(group if isinstance(group, str) else OTHER_COMMANDS, []).append(
                (name, summary(one.help or ""))
            )
    return groups


def _options(options: Iterable[Any]) -> dict[str, list[tuple[str, str]]]:
    """By group, in the order of declaration; commands without a group come last."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for one in options:
        group = getattr(one, "rich_help_panel", None)
        groups.setdefault(group if isinstance(group, str) else OTHER_OPTIONS, []).append((_flags(one), _meaning(one)))
    last = groups.pop(OTHER_OPTIONS, [])
    return {**groups, OTHER_OPTIONS: last} if last else groups


def _flags(option: Any) -> str:
    flags = ", ".join(
        sorted([*option.opts, *option.secondary_opts], key=lambda flag: (len(flag) > 2, option.opts != [flag]))
    )
    return flags if option.is_flag else f"{flags} {option.metavar or option.name.upper()}"


def _meaning(option: Any) -> str:
    text = str(option.help or "")
    known = option.default
    if option.show_default is False or option.is_flag or not isinstance(known, str | int) or "default" in text:
        return text if not option.required else f"{text.rstrip('.')} (required)."
    return f"{text.rstrip('.')} (default: {known})."


def _sections(groups: Mapping[str, list[tuple[str, str]]], width: int) -> Iterator[str]:
    for title, rows in groups.items():
        widest = min(max(len(name) for name, _ in rows), NAMES_MOST)
        lines = [line for name, text in rows for line in _row(name, text, widest, width)]
        yield "\n".join([_bold(f"{title}:"), *lines])


def _row(name: str, text: str, widest: int, width: int) -> Iterator[str]:
    indent = " " * (widest + 4)
    wrapped = textwrap.wrap(text, max(width - len(indent), 20), break_on_hyphens=False) or [""]
    if len(name) > widest:
        yield f"  {name}"
        name = ""
    yield f"  {name:<{widest}}  {wrapped[0]}".rstrip()
    yield from (f"{indent}{line}" for line in wrapped[1:])


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if has_colours(sys.stdout) else text
