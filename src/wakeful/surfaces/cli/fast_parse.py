"""The short way to a command: only its own module is loaded, and plain words are read without the argument parser.

The parser costs as much as many commands take altogether. What is read here means exactly what it means to the parser;
everything else (an abbreviation, `-n3`, `--help`, a word too many or too few, a wrong value) is left to the
parser, with its answers and complaints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import ArgumentInfo, OptionInfo

from wakeful.surfaces.cli.app import WithCommand, app

#: What an option may say about itself here: more than this is the parser's business.
_PLAIN = {"default", "param_decls", "metavar", "help", "show_default", "rich_help_panel", "min", "max"}


class NotPlain(Exception):
    """These words are for the parser."""


class FastContext:
    """What commands ask their context for."""

    def __init__(self, db: str | None, argv: list[str] | None) -> None:
        self.obj = {"db": db}
        self.meta = {"argv": argv}


class ParsedCommand(NamedTuple):
    """A command with its arguments."""

    function: Callable[..., Any]
    values: dict[str, Any]

    def run(self) -> int:
        """Its exit code."""
        try:
            self.function(**self.values)
        except typer.Exit as end:
            return end.exit_code
        return 0


def read_plainly(argv: Sequence[str], modules: Mapping[str, str]) -> ParsedCommand | None:
    """The command these words mean, found in the module that `modules` names; None where the parser must read them."""
    try:
        return _read(argv, modules)
    except NotPlain:
        return None


def _read(argv: Sequence[str], modules: Mapping[str, str]) -> ParsedCommand:
    words = iter(argv)
    name, db = next(words, ""), None
    if name == "--db":
        db, name = _value(words), next(words, "")
    if name not in modules:
        raise NotPlain
    import_module(f"wakeful.surfaces.cli.{modules[name]}")
    command = next((info for info in app.registered_commands if info.name == name), None)
    if command is None or command.callback is None or command.cls not in (None, TyperCommand, WithCommand):
        raise NotPlain
    rest, given = list(words), None
    if "--" in rest:
        if command.cls is not WithCommand:
            raise NotPlain
        cut = rest.index("--")
        rest, given = rest[:cut], rest[cut + 1 :]
    return ParsedCommand(command.callback, _values(command.callback, rest, FastContext(db, given)))


def _values(function: Callable[..., Any], words: Sequence[str], context: FastContext) -> dict[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    values: dict[str, Any] = {}
    options: dict[str, tuple[str, Any, OptionInfo]] = {}
    arguments: list[tuple[Parameter, Any]] = []
    for name, parameter in signature(function).parameters.items():
        kind, *about = get_args(hints[name]) or (hints[name],)
        if kind is typer.Context:
            values[name] = context
        elif about and isinstance(about[0], OptionInfo):
            # Next to a type, typer takes the first flag for the default until it builds its parser.
            flags = (str(about[0].default), *(about[0].param_decls or ()))
            options |= dict.fromkeys(flags, (name, kind, about[0]))
        elif about and isinstance(about[0], ArgumentInfo):
            arguments.append((parameter, kind))
        else:
            raise NotPlain
        if parameter.default is not Parameter.empty:
            values[name] = parameter.default
    found, places = _sort_words(words, options)
    values.update(found)
    values.update(_places(arguments, places))
    if len(values) < len(hints) - ("return" in hints):  # something that is needed was not said
        raise NotPlain
    return values


def _sort_words(
    words: Sequence[str], options: Mapping[str, tuple[str, Any, OptionInfo]]
) -> tuple[dict[str, Any], list[str]]:
    """What options say, by name, and the words that belong to none."""
    found: dict[str, Any] = {}
    places: list[str] = []
    ahead = iter(words)
    for word in ahead:
        if not word.startswith("-"):
            places.append(word)
            continue
        flag, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
        name, kind, about = options.get(flag) or _give_up()
        if name in found:
            raise NotPlain
        if _only(kind) is bool:
            found[name] = True if not equals else _give_up()
        else:
            found[name] = _read_value(text if equals else _value(ahead), kind, about)
    return found, places


def _value(words: Iterator[str]) -> str:
    word = next(words, "-")
    return word if not word.startswith("-") else _give_up()


def _read_value(text: str, kind: Any, about: OptionInfo) -> str | int:
    if not _PLAIN.issuperset(key for key, value in vars(about).items() if value != getattr(OptionInfo(), key)):
        raise NotPlain
    meant = _only(kind)
    if meant is str:
        return text
    if meant is not int or not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise NotPlain
    number = int(text)
    too_small = about.min is not None and number < about.min
    return number if not too_small and (about.max is None or number <= about.max) else _give_up()


def _places(arguments: Sequence[tuple[Parameter, Any]], words: list[str]) -> dict[str, Any]:
    """Words by the argument in whose place they are; a list takes all that are left."""
    found: dict[str, Any] = {}
    for parameter, kind in arguments:
        meant = _only(kind)
        if meant == list[str] and words:
            found[parameter.name], words = words, []
        elif meant is str and words:
            found[parameter.name], *words = words
        elif words:
            raise NotPlain
    return found if not words else _give_up()


def _only(kind: Any) -> Any:
    """The type that a value has, if there is one."""
    if get_origin(kind) in (Union, UnionType):
        meant = [part for part in get_args(kind) if part is not NoneType]
        return meant[0] if len(meant) == 1 else None
    return kind


def _give_up() -> Any:
    raise NotPlain
