"""Asking a person at a terminal before something is done."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wakeful.console.humanize import plain

Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]


def ask_before(question: str, *, yes: bool) -> None:
    """End the command unless the answer is yes. Programs are not asked."""
    if not yes and sys.stdin.isatty():
        typer.confirm(plain(question), abort=True)


def ask_before_final(what: str, *, yes: bool) -> None:
    """The same before something that cannot be undone."""
    ask_before(f"{what} It cannot be undone. Go on?", yes=yes)
