"""Which store a command works on.

`--db`, else WAKEFUL_DB, else the `store` of the nearest `wakeful.yaml` upward from here, else the nearest `.wakeful/`
directory, else one per user. All but the first two must be trusted (`trust.py`); who names a store vouches for it.
Nothing here creates anything: a place may have no store yet. Under WAKEFUL_TOKEN, as in a run of an agent, the place is
the server at WAKEFUL_URL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from wakeful.console.failures import WrongUse, say_note
from wakeful.errors import StoreUnusable
from wakeful.store.address import not_an_address, refuse_keywords, shown_url
from wakeful.trust import distrust, distrust_below

FOLDER = ".wakeful"
FILE = "wakeful.db"
CONFIG = "wakeful.yaml"
TOKEN, URL = "WAKEFUL_TOKEN", "WAKEFUL_URL"

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="The store: a file or an address. Else $WAKEFUL_DB, the store of wakeful.yaml, the nearest .wakeful/, "
        "or your own.",
        show_default=False,
    ),
]

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file (default: the nearest wakeful.yaml upward).",
        show_default=False,
    ),
]


class StoreLocation(NamedTuple):
    """Where a store is, or would be; `path` is its file, or None where it is not a file.

    `config` is the configuration that goes with it: its defaults are those of jobs made from here. `timezone` is the
    one it gives, as it is written there.
    """

    url: str
    path: Path | None
    config: Path | None = None
    timezone: str | None = None
    server: bool = False  # no store: a server that is called over the network

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else shown_url(self.url)

    @property
    def exists(self) -> bool:
        """Whether there is anything to read. An empty file is not a store yet, and reading must not make it one."""
        return self.path is None or (self.path.exists() and (self.path.is_dir() or self.path.stat().st_size > 0))


def chosen(ctx: typer.Context, db: str | None) -> StoreLocation:
    """The place given before or after the command's name, or found by itself."""
    if os.environ.get(TOKEN):
        return server_place(given_store(ctx, db), os.environ)
    return find_place(given_store(ctx, db), os.environ, Path.cwd())


def server_place(given: str | None, environ: Mapping[str, str]) -> StoreLocation:
    """The server that WAKEFUL_URL names: with a token of its own a command never opens a store."""
    if given is not None:
        raise WrongUse(f"--db names a store, and under {TOKEN} wakeful asks the server at {URL}: leave it out.")
    url = environ.get(URL, "")
    if not url.startswith(("http://", "https://")):
        said = "is not set" if not url else f"is {url!r:.80}, which is no web address"
        raise WrongUse(f"Under {TOKEN} wakeful asks the server at {URL}, and that {said}.")
    return StoreLocation(url.rstrip("/"), None, server=True)


def given_store(ctx: typer.Context, db: str | None) -> str | None:
    """What --db says, before or after the command's name."""
    return db if db is not None else (ctx.obj or {}).get("db")


def find_place(given: str | None, environ: Mapping[str, str], here: Path) -> StoreLocation:
    """The rule above, as a function of the options and the directory."""
    is_named = given is not None or bool(environ.get("WAKEFUL_DB"))
    return place_beside(None if is_named else nearest_config(here), given, environ, here)


def place_beside(file: Path | None, given: str | None, environ: Mapping[str, str], here: Path) -> StoreLocation:
    """The same where it is settled already which configuration file counts, if any."""
    said = given if given is not None else environ.get("WAKEFUL_DB") or None
    if said is not None:
        return _read(said, here)
    store, zone = _basics_in(file, environ) if file is not None else (None, None)
    if file is not None and store is not None:
        return _trusted(_read(store, here / file.parent), named_by=file)._replace(config=file, timezone=zone)
    folder = _nearest_trusted(FOLDER, here, Path.is_dir, "--db")
    if folder is not None:
        return _file(folder / FILE)._replace(config=file, timezone=zone)
    home, folder = _per_user(environ)
    return _trusted(_file(folder / FILE), home)._replace(config=file, timezone=zone)


def _trusted(place: StoreLocation, top: Path | None = None, *, named_by: Path | None = None) -> StoreLocation:
    """The same place; StoreUnusable where another user may have put the store there, or can change it."""
    reason = None if place.path is None else distrust_below(place.path, top, named_by=named_by)
    if reason is not None:
        raise StoreUnusable(f"The store {place} is not used because {reason}; if you trust it, name it with --db.")
    return place


def nearest_config(here: Path) -> Path | None:
    """The nearest configuration file from here upward, or None."""
    return _nearest_trusted(CONFIG, here, Path.is_file, "--config")


def _nearest_trusted(name: str, here: Path, fits: Callable[[Path], bool], option: str) -> Path | None:
    """The nearest file of that name from here upward; untrusted ones are skipped with a warning."""
    for place in (folder / name for folder in (here, *here.parents)):
        if not _is_there(place, fits):
            continue
        reason = distrust(place, here)
        if reason is None and name == FOLDER:
            reason = distrust(place / FILE, place)
        if reason is None:
            return place
        say_note(f"{place} is ignored because {reason}; if you trust it, name it with {option}.")
    return None


def _is_there(place: Path, fits: Callable[[Path], bool]) -> bool:
    try:
        return fits(place)
    except OSError:  # a directory above that may not be entered
        return False


def _basics_in(file: Path, environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    from wakeful.config.reading import basics_in  # only where there is a file: it brings a parser with it

    return basics_in(file, environ)


def _read(said: str, here: Path) -> StoreLocation:
    if not said.strip() or "\0" in said:
        raise WrongUse("--db needs the address of a store: a file, sqlite:///file.db or postgresql://user@host/db.")
    if not said.startswith("sqlite:"):
        try:
            refuse_keywords(said)
        except StoreUnusable as error:
            raise WrongUse(str(error)) from None
        if "://" not in said:
            return _file(here / Path(said).expanduser())
        if not said.startswith(("postgresql://", "postgres://")):
            raise WrongUse(not_an_address(said))
        return StoreLocation(said, None)
    rest = said.removeprefix("sqlite:").removeprefix("//")
    if rest in ("", "/", ":memory:", "/:memory:"):
        raise WrongUse("A store in memory ends with the command that made it: name a file, such as --db wakeful.db.")
    if not rest.startswith("/") or not said.startswith("sqlite://"):
        raise WrongUse(f"{said!r} is not a store's address: write sqlite:///file.db, or sqlite:////absolute/file.db.")
    return _file(here / Path(rest[1:]).expanduser())


def _file(path: Path) -> StoreLocation:
    path = Path(os.path.normpath(path))
    return StoreLocation(f"sqlite:///{path}", path)


def _per_user(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """The folder of a user's own store, and the one above it that must be the user's, too."""
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home, home / "Library" / "Application Support" / "wakeful"
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):
        return Path(data), Path(data) / "wakeful"
    return home, home / ".local" / "share" / "wakeful"
