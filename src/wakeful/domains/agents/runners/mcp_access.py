"""The MCP endpoint for the program of one run: in the form that the program needs, and gone with the run.

A configuration file lies in a private folder. The token is in that file or in the environment, never in an argument,
which every user of the machine could read.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.errors import InvalidJob
from wakeful.private_files import open_private

SERVER = "wakeful"
FILE = "WAKEFUL_MCP_CONFIG"  # the variable that names the file, for every program
URL, TOKEN = "WAKEFUL_URL", "WAKEFUL_TOKEN"
CONFIG = "mcp.json"
BRIDGE = f"{sys.executable} -m wakeful.cli mcp"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PREFIX = "wakeful-mcp-"


class McpForm(NamedTuple):
    """How a program is told of an MCP server for one run.

    `{file}` stands for the path of a file with `config`, `{config}` for its text, `{url}` for the endpoint, `{bridge}`
    for a command that speaks MCP over stdio.
    """

    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    section: str = "mcpServers"
    entry: tuple[tuple[str, Any], ...] = (("type", "http"), ("url", "{url}"))


class McpAccess(NamedTuple):
    """What a run adds to the call of its program."""

    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


@contextmanager
def mcp_access(form: McpForm | None, environment: Mapping[str, str]) -> Iterator[McpAccess]:
    """The endpoint for one call; `form` is None for a program that is not known, which is given the file's name."""
    url, token = environment.get(URL), environment.get(TOKEN)
    if not url or not token:
        raise InvalidJob("mcp: true needs a server (wakeful serve): no server is running that its program could ask.")
    form = form if form is not None else McpForm()
    _remove_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # for its owner alone
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        fcntl.flock(held.enter_context(_opened(folder)), fcntl.LOCK_EX)  # until this process ends, however it does
        text = json.dumps(_config(form, f"{url}/mcp", token))
        file = folder / CONFIG
        with os.fdopen(open_private(file, _NEW), "w", encoding="utf-8") as opened:
            opened.write(text)
        given = {"{file}": str(file), "{config}": text, "{url}": f"{url}/mcp", "{bridge}": BRIDGE}
        variables = {name: _filled(value, given) for name, value in form.env}
        yield McpAccess(tuple(_filled(item, given) for item in form.args), {FILE: str(file), **variables})


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, _FOLDER)
    try:
        yield fd
    finally:
        os.close(fd)


def _remove_left_behind() -> None:
    """Remove the folders of servers that were killed: those that nobody holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _opened(folder) as fd:
            if os.fstat(fd).st_uid != os.geteuid():
                continue
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / CONFIG).exists():  # else its owner is about to hold it
                shutil.rmtree(folder, ignore_errors=True)


def _config(form: McpForm, url: str, token: str) -> dict[str, Any]:
    entry = {name: url if value == "{url}" else value for name, value in form.entry}
    return {form.section: {SERVER: {**entry, "headers": {"Authorization": f"Bearer {token}"}}}}


def _filled(text: str, given: Mapping[str, str]) -> str:
    for place, value in given.items():
        text = text.replace(place, value)
    return text
