"""A real `wakeful serve` on a port of its own, and clients that talk HTTP to it."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.agents.session_server import SessionServer
from tests.api.making import new_name
from tests.cli.terminal import PATIENCE, Terminal


class Server:
    """A running server: where it is, its admin's token, and the terminal beside it."""

    def __init__(self, terminal: Terminal, *argv: str) -> None:
        self.terminal = terminal
        self.process = terminal.start("serve", "--port", "0", "--node", "here", *argv)
        self.url = re.search(r"http://\S+:\d+", self.process.until("listening on"))[0]
        self.port = int(self.url.rpartition(":")[2])
        self.token_file = terminal.folder / ".wakeful" / "wakeful.db.token"
        self.token = self.token_file.read_text().strip() if self.token_file.exists() else None

    @property
    def folder(self) -> Path:
        return self.terminal.folder

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """A client with a token, or with none."""
        given = {"Authorization": f"Bearer {token}", **headers} if token is not None else headers
        return httpx.Client(base_url=self.url, headers=given, timeout=PATIENCE, trust_env=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the tests of a module; they share its store."""
    terminal = Terminal(tmp_path_factory.mktemp("server"))
    yield Server(terminal)
    terminal.close()


@pytest.fixture(scope="module")
def sessions():
    """A session server beside the server of a module."""
    with SessionServer() as running:
        yield running


@pytest.fixture
def client(server):
    """An admin's client."""
    with server.client(server.token) as client:
        yield client


@pytest.fixture(scope="module")
def token_for(server):
    """`token_for("viewer")`: a token of that role, named like it; `token_for("agent", "fox")`: of another name."""
    made: dict[tuple[str, str], str] = {}

    def get(role: str, name: str | None = None) -> str:
        key = (role, name or f"{role}-token")
        if key not in made:
            answer = server.terminal.ask("token", "create", key[1], "--role", role)
            assert answer.code == 0, answer.err
            made[key] = answer.out.strip()
        return made[key]

    return get


@pytest.fixture
def client_for(server, token_for):
    """`client_for("viewer")`: a client with a token of that role."""
    opened: list[httpx.Client] = []

    def get(role: str, name: str | None = None) -> httpx.Client:
        opened.append(server.client(token_for(role, name)))
        return opened[-1]

    yield get
    for client in opened:
        client.close()


@pytest.fixture
def slug(request):
    """A name of this test's own, for a schedule."""
    return re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:80].strip("-")


@pytest.fixture
def name():
    """A name that no job has had yet."""
    return new_name()
