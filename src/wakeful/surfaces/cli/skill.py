"""`skill`: a file that teaches an agent the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wakeful.console.failures import say_note
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

    An earlier one is replaced, and kept beside it where it was another; any other file of that name is left alone.
    """
    path = (folder if folder is not None else DEFAULT) / NAME
    kept = _write(path, SOURCE.read_text(encoding="utf-8"))
    if as_json:
        print_json({"file": str(path)})
    else:
        say(f"Wrote {path}.")
    if kept is not None:
        say_note(f"the one before was an older one, or was edited: it is now {kept}")


def _write(path: Path, text: str) -> Path | None:
    """Where an earlier one was put that was not the same."""
    begin = text.partition("description:")[0]
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if before is not None and not before.startswith(begin):
            raise AlreadyExists(f"{path} is another skill, and is left as it is: name another directory.")
        kept = path.with_name(f"{NAME}.before") if before not in (None, text) else None
        if kept is not None:
            path.replace(kept)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InvalidSetting(f"{path} cannot be written ({why}).") from None
    return kept
