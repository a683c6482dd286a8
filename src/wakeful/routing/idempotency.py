"""`Idempotency-Key`: a request that is sent again is answered again, and done once.

The answer is kept by the transaction that does the work (see `kernel.actions.idempotency`). This module
says how a request is recognised and how an answer is put together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from fastapi import Depends, Header, Request
from pydantic import WithJsonSchema
from starlette.responses import Response

from wakeful.errors import SchedulerError
from wakeful.ids import run_text
from wakeful.kernel.actions.idempotency import IdempotentRequest, Replayed, run_idempotent
from wakeful.routing.auth import Anyone
from wakeful.routing.problems import ApiError
from wakeful.routing.wiring import Sched

if TYPE_CHECKING:
    from wakeful.kernel.context import Context, Rights
    from wakeful.store.interface import Transaction

T = TypeVar("T")
MAX_KEY = 200
JSON_TYPE = "application/json"
ACTION_HEADER = "Wakeful-Action"

KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="The same key with the same request is done once within 24 hours, and answered the same.",
    ),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"}),
]


class StoredAnswer(NamedTuple):
    """What a request is answered with. Kept for one that is sent again, it is one text."""

    status: int
    headers: dict[str, str]
    body: str

    def to_text(self) -> str:
        return json.dumps(self)

    @classmethod
    def from_text(cls, text: str) -> StoredAnswer:
        return cls(*json.loads(text))


def answer(status: int, body: Any, **headers: str) -> StoredAnswer:
    """An answer with a JSON body. In ASCII: what a handler said may hold half of a surrogate pair."""
    return StoredAnswer(status, headers, json.dumps(body, separators=(",", ":")))


def respond(said: StoredAnswer, **headers: str) -> Response:
    return Response(said.body, said.status, {**said.headers, **headers}, media_type=JSON_TYPE)


class Keyed(NamedTuple):
    """A request, and the key it carries, if any."""

    caller: str
    key: str | None
    method: str
    path: str
    body_hash: str

    async def do(
        self, work: Callable[[IdempotentRequest | None], Awaitable[T]], render: Callable[[T], StoredAnswer]
    ) -> Response:
        """Do the work, unless it was done before; the answer either way."""
        once = None
        if self.key is not None:
            request = f"{self.method} {self.path}"
            once = IdempotentRequest(self.caller, self.key, request, self.body_hash, lambda found: _kept(render, found))
        try:
            return respond(render(await work(once)))
        except Replayed as replayed:
            return respond(StoredAnswer.from_text(replayed.answer), **{"Idempotent-Replayed": "true"})

    async def transact(
        self,
        scheduler: Sched,
        work: Callable[[Transaction, Context], T],
        render: Callable[[T], StoredAnswer],
        *,
        rights: Rights | None = None,
    ) -> Response:
        """Do the work in one transaction. `render` may refuse; what the work stored, such as a count, stays."""
        return await self.do(
            lambda once: scheduler.transact(
                lambda tx, context: run_idempotent(tx, once, lambda: work(tx, context)), rights=rights
            ),
            render,
        )


def _kept(render: Callable[[T], StoredAnswer], found: T) -> str | None:
    """The answer as it is kept; None for a refusal, which is raised again after the transaction."""
    try:
        return render(found).to_text()
    except SchedulerError:
        return None


async def keyed(request: Request, caller: Anyone, key: KeyHeader = None) -> Keyed:
    """The key of a request, and what it must be the same with."""
    if key is not None and not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        sentence = f"Idempotency-Key is a text of 1 to {MAX_KEY} printable ASCII characters."
        raise ApiError(400, "invalid_key", sentence)
    body = await request.body()
    try:
        body = json.dumps(json.loads(body), sort_keys=True).encode() if body else b""
    except ValueError:  # answered elsewhere; here it only has to differ from others
        body = b"not JSON: " + body
    who = caller.name if caller.run is None else run_text(caller.run)  # what runs write may follow from outside text
    return Keyed(who, key, request.method, request.url.path, hashlib.sha256(body).hexdigest())


Key = Annotated[Keyed, Depends(keyed)]
"""What a route that creates or runs asks for, to be done once."""


def undoable(action: str | None) -> dict[str, str]:
    """The header that says by which id a request can be undone; none where it changed nothing."""
    return {ACTION_HEADER: action} if action is not None else {}
