"""`skill`: a file that teaches an agent the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wakeful.console.output import say
from wakeful.console.tables import Json, print_json
from wakeful.errors import AlreadyExists, InvalidSetting
from wakeful.surfaces.cli.app import SERVER, app

NAME = "SKILL.md"
SOURCE = Path(__file__).with_name(NAME)

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="[DIR]", help="Where to write it (default: .claude/skills/wakeful).", show_default=False),
]
DEFAULT = Path(".claude/skills/wakeful")


@app.command("skill", rich_help_panel=SERVER)
def skill(folder: Folder = None, *, as_json: Json = False) -> None:
    """Write SKILL.md, which teaches an agent the command line.

    An earlier one is replaced; any other file of that name is left alone.
    """
    path = (folder if folder is not None else DEFAULT) / NAME
    _write(path, SOURCE.read_text(encoding="utf-8"))
    if as_json:
        print_json({"file": str(path)})
    else:
        say(f"Wrote {path}.")


def _write(path: Path, text: str) -> None:
    begin = text.partition("description:")[0]
    try:
        if path.exists() and not path.read_text(encoding="utf-8").startswith(begin):
            raise AlreadyExists(f"{path} is another skill, and is left as it is: name another directory.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidSetting(f"{path} cannot be written ({why}).") from None
