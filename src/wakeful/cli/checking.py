"""`check` and `schema`: is the configuration file right, and what may be in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.app import SERVER, app
from wakeful.cli.failures import WrongUse, say_error
from wakeful.cli.place import nearest_config
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.cli.words import count


@app.command("check", rich_help_panel=SERVER)
def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Default: the nearest wakeful.yaml upward.", show_default=False),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Validate a configuration file and report every mistake. Nothing is changed."""
    from wakeful.config.loading import load_config
    from wakeful.config.reading import ConfigError

    found = file if file is not None else nearest_config(Path.cwd())
    if found is None:
        raise WrongUse(f"There is no wakeful.yaml in {Path.cwd()} or above it: name a file, wakeful check FILE.")
    try:
        load_config(found)
    except ConfigError as error:
        if as_json:
            faults = [
                {"file": one.file, "line": one.line, "key": one.key, "message": one.message} for one in error.faults
            ]
            print_json({"file": str(found), "ok": False, "faults": faults})
        else:
            for fault in error.faults:
                say_error(str(fault))
            say(f"{found}: {count(len(error.faults), 'mistake')}")
        raise typer.Exit(1) from None
    if as_json:
        print_json({"file": str(found), "ok": True, "faults": []})
    else:
        say(f"{found}: all right")


@app.command("schema", rich_help_panel=SERVER)
def schema() -> None:
    """Print the JSON Schema of wakeful.yaml, for editors."""
    from wakeful.config.loading import json_schema

    print_json(json_schema())
