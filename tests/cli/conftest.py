"""A command line to type at: in this process where that will do, in processes of their own where it will not."""

from __future__ import annotations

import contextlib
import io
import shutil

import pytest

from tests.cli.terminal import Answer, Terminal
from wakeful.console import humanize
from wakeful.surfaces.cli import main


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a store of its own to be, and a home that is not ours."""
    (tmp_path / ".wakeful").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    for name in ("WAKEFUL_DB", "XDG_DATA_HOME", "COLUMNS", "WAKEFUL_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    humanize._system_zone.cache_clear()
    yield tmp_path
    humanize._system_zone.cache_clear()


@pytest.fixture
def wakeful(here, capsys):
    """Type a command: `wakeful("list", "--json")`."""

    def run(*argv: str) -> Answer:
        code = main([str(part) for part in argv])
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return run


@pytest.fixture
def store(here):
    return here / ".wakeful" / "wakeful.db"


@pytest.fixture(scope="module")
def _stock(tmp_path_factory):
    """A store with two jobs, made by the command line itself, with the tables of the domains that are known by then."""
    folder = tmp_path_factory.mktemp("stock")
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        patch.setenv("WAKEFUL_DB", str(folder / "wakeful.db"))
        patch.chdir(folder)
        options = ["--jitter", "5", "--until", "2999-01-01", "--lane", "gpu=1", "--timeout", "1m", "--env", "A=1"]
        main(["add", "other", "--every", "1h", "--", "true"])
        main(["add", "job", "--cron", "0 9 * * *", "--tz", "Europe/Berlin", *options, "--", "echo", "old"])
    return folder / "wakeful.db"


@pytest.fixture
def stocked(store, _stock):
    """The store, with `other` (every hour) and `job` (a bit of everything) in it."""
    shutil.copy(_stock, store)
    return store
