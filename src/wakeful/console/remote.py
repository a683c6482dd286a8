"""Commands under WAKEFUL_TOKEN, as in a run of an agent: they ask the server at WAKEFUL_URL, and never open a store."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from wakeful.console.store_location import TOKEN, URL
from wakeful.errors import SchedulerError
from wakeful.kernel.views.explain import Explanation
from wakeful.threads import room

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler

#: Commands that work over a server; a group with those of its commands.
OFFERED: dict[str, tuple[str, ...]] = {
    "agent": ("list", "show", "wake", "event"),
    "list": (),
    "show": (),
    "runs": (),
    "explain": (),
    "mcp": (),
}
ALWAYS = ("-h", "--help", "--version")  # answered without a store
PATIENCE_S = 30.0
LARGEST = 16 * 1024 * 1024
EXIT_CODES = {400: 2, 404: 3, 422: 2, 401: 4, 403: 4, 409: 4, 412: 4, 413: 4, 429: 4}


class ServerRefused(SchedulerError):
    """What a server answered, or that it did not."""

    exit_code = 4
    code = "server_refused"


def refuse_other(argv: Sequence[str]) -> None:
    """ServerRefused for a command that would need the store."""
    if any(word == "--db" or word.startswith("--db=") for word in argv):
        raise ServerRefused(f"--db names a store, and under {TOKEN} wakeful asks the server at {URL}: leave it out.")
    words = [word for word in argv if not word.startswith("-")]
    if not words or any(word in ALWAYS for word in argv):
        return
    offered = OFFERED.get(words[0])
    if offered is not None and (not offered or not words[1:] or words[1] in offered):
        return
    named = [f"{group} {name}" for group, names in OFFERED.items() for name in names or ("",)]
    known = f"{', '.join(name.strip() for name in named[:-1])} and {named[-1].strip()}"
    raise ServerRefused(
        f"wakeful {words[0]} needs the store, and under {TOKEN} wakeful asks the server at {URL}: there are {known}."
    )


def server_at(url: str) -> Scheduler:
    """A server, with the methods of a scheduler that work over HTTP."""
    return cast("Scheduler", asked_server(url))


def asked_server(url: str) -> RemoteServer:
    """A server that is called with the token of the environment."""
    return RemoteServer(url, os.environ[TOKEN])


class RemoteServer:
    """A server that is called over the network."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self.agents = ServerAgents(self)

    async def explain(self, ref: str) -> Explanation:
        kind = "runs" if ref.startswith("run_") else "jobs"
        found = await self.ask("GET", f"/api/{kind}/{quote(ref, safe='')}/explain")
        return Explanation(found["subject"], found["sentences"], found["facts"])

    async def get_run(self, ref: str) -> Any:
        return SimpleNamespace(**await self.ask("GET", f"/api/runs/{quote(ref, safe='')}"))

    def engine_holder(self) -> dict[str, Any]:
        """The server that answers."""
        return {"node": self._url}

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """What the server answers; ServerRefused with its own sentence where it refuses."""
        return await room("requests").call(self._ask, method, path, body)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, headers, method=method)  # noqa: S310 - http or https, checked
        try:
            with build_opener(ProxyHandler({}), _NoRedirect()).open(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read(LARGEST))
        except HTTPError as error:
            with error:
                self._refuse(error.code, error.read(LARGEST))
        except (URLError, OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise ServerRefused(f"The server at {self._url} ({URL}) gives no answer: {why}.") from None

    def _refuse(self, status: int, body: bytes) -> NoReturn:
        try:
            said = json.loads(body)["error"]
        except (ValueError, TypeError, KeyError):
            said = f"The server at {self._url} ({URL}) answered {status}."
        refusal = ServerRefused(str(said))
        refusal.exit_code = EXIT_CODES.get(status, 1)
        raise refusal


class ServerAgents:
    """The agents of a server."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server

    async def list(self) -> list[dict[str, Any]]:
        return list((await self._server.ask("GET", "/api/agents"))["items"])

    async def get(self, agent: str) -> Any:
        return await self._server.ask("GET", _path(agent))

    async def request_wake(self, agent: str, reason: str = "manual") -> Any:
        return await self._server.ask("POST", f"{_path(agent)}/wake", {"reason": reason})

    async def add_event(
        self, agent: str, text: str, *, source: str | None = None, context_key: str | None = None, wake: bool = False
    ) -> Any:
        body = {"text": text, "source": source, "context_key": context_key, "wake": wake}
        return await self._server.ask("POST", f"{_path(agent)}/events", body)


class _NoRedirect(HTTPRedirectHandler):
    """A token goes to the server it is for and nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _path(agent: str) -> str:
    return f"/api/agents/{quote(agent, safe='')}"
