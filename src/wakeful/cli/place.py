"""Which store a command works on.

`--db`, else WAKEFUL_DB, else the `store` of the nearest `wakeful.yaml` upward from here, else the nearest `.wakeful/`
directory, else one per user. Nothing here creates anything: a place may well have no store yet.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from wakeful.cli.failures import WrongUse

FOLDER = ".wakeful"
FILE = "wakeful.db"
CONFIG = "wakeful.yaml"

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="The store: a file, sqlite:///file.db or postgresql://user@host/database. "
        "Else $WAKEFUL_DB, the store of wakeful.yaml, the nearest .wakeful/, or yours.",
        show_default=False,
    ),
]

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file; the nearest wakeful.yaml from here upward unless given.",
        show_default=False,
    ),
]


class Place(NamedTuple):
    """Where a store is, or would be; `path` is its file, or None where it is not a file.

    `config` is the configuration that goes with it: its defaults are those of jobs made from here.
    """

    url: str
    path: Path | None
    config: Path | None = None

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else _without_password(self.url)

    @property
    def exists(self) -> bool:
        """Whether there is anything to read. An empty file is not a store yet, and reading must not make it one."""
        return self.path is None or (self.path.exists() and (self.path.is_dir() or self.path.stat().st_size > 0))


def chosen(ctx: typer.Context, db: str | None, config: Path | None = None) -> Place:
    """The place a command was told to use, before or after its name, or finds by itself."""
    given = db if db is not None else (ctx.obj or {}).get("db")
    return find_place(given, os.environ, Path.cwd(), config)


def find_place(given: str | None, environ: Mapping[str, str], here: Path, config: Path | None = None) -> Place:
    """The rule above, as a function of what was said and where; `config` is a file named instead of found."""
    said = given if given is not None else environ.get("WAKEFUL_DB") or None
    if said is not None:
        return _read(said, here)
    file = config if config is not None else nearest_config(here)
    if file is not None and (configured := _store_in(file, environ)) is not None:
        return _read(configured, here / file.parent)._replace(config=file)
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return _file(folder / FOLDER / FILE)._replace(config=file)
    return _file(_per_user(environ) / FILE)._replace(config=file)


def nearest_config(here: Path) -> Path | None:
    """The nearest configuration file from here upward, or None."""
    return next((folder / CONFIG for folder in (here, *here.parents) if (folder / CONFIG).is_file()), None)


def _store_in(file: Path, environ: Mapping[str, str]) -> str | None:
    from wakeful.config.reading import store_in  # only where there is a file: it brings a parser with it

    return store_in(file, environ)


def _read(said: str, here: Path) -> Place:
    if not said.strip() or "\0" in said:
        raise WrongUse("--db needs the address of a store: a file, sqlite:///file.db or postgresql://user@host/db.")
    if not said.startswith("sqlite:"):
        return Place(said, None) if "://" in said else _file(here / Path(said).expanduser())
    rest = said.removeprefix("sqlite:").removeprefix("//")
    if rest in ("", "/", ":memory:", "/:memory:"):
        raise WrongUse("A store in memory ends with the command that made it: name a file, such as --db wakeful.db.")
    if not rest.startswith("/") or not said.startswith("sqlite://"):
        raise WrongUse(f"{said!r} is not a store's address: write sqlite:///file.db, or sqlite:////absolute/file.db.")
    return _file(here / Path(rest[1:]).expanduser())


def _without_password(url: str) -> str:
    """The address as it may be shown: all between the user and the last @ is left out, and a password after the ?."""
    scheme, _, rest = url.partition("://")
    account, at, server = rest.rpartition("@")
    server = re.sub(r"([?&])password=[^&]*&?", r"\1", server).rstrip("?&")
    return f"{scheme}://{account.partition(':')[0]}{at}{server}"


def _file(path: Path) -> Place:
    path = Path(os.path.normpath(path))
    return Place(f"sqlite:///{path}", path)


def _per_user(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "wakeful"
    data = environ.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else home / ".local" / "share") / "wakeful"
