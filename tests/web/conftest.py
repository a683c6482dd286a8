"""A real server, and people who are signed in to its pages."""

from __future__ import annotations

import httpx
import pytest

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from tests.web.fleet import populate

PAGE = {"Accept": "text/html"}


class Visitor:
    """A browser without script: cookies, and no token."""

    def __init__(self, server: Server, role: str | None = None) -> None:
        self.server = server
        self.client = httpx.Client(base_url=server.url, headers=PAGE, timeout=PATIENCE, trust_env=False)
        if role is not None:
            answer = self.client.get(link(server, role))
            assert answer.status_code == 303, answer.text

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)


def link(server: Server, role: str = "admin") -> str:
    """A new link, as `wakeful link` prints it."""
    answer = server.terminal.ask("link", "--role", role)
    assert answer.code == 0, answer.err
    return answer.out.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("pages"))
    yield Server(terminal)
    terminal.close()


@pytest.fixture
def visitor(server):
    """`visitor("viewer")`: somebody who is signed in with that role; `visitor()`: somebody who is not."""
    opened: list[Visitor] = []

    def get(role: str | None = None) -> Visitor:
        opened.append(Visitor(server, role))
        return opened[-1]

    yield get
    for one in opened:
        one.client.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A server with something of everything: jobs, agents, a workflow, a question, failures and messages."""
    terminal = Terminal(tmp_path_factory.mktemp("fleet"))
    yield populate(terminal)
    terminal.close()


@pytest.fixture(scope="module")
def browsing(fleet):
    """Chromium, and people who are signed in to the server of this module."""
    from tests.web.browsing import Browsing  # loads playwright

    opened = Browsing(fleet)
    yield opened
    opened.close()
