"""Authentication: a route names the role it needs, and gets the caller.

    async def pause(caller: Operator, …)        # operators and admins
    async def read(caller: Anyone, …)           # every valid token; `caller.is_agent` sees and changes only its own

Roles: `viewer` reads; `operator` also starts, stops and edits what executes no commands; `admin` has full access;
`agent` is apart from them: it may read and edit what it owns (the owner is its token's name) and nothing else.
`Viewer`, `Operator` and `Admin` therefore refuse agents; routes that know about owners take `Anyone`. The token of a
run (`caller.run`) is an agent's that changes no jobs; routes it may use besides reading take `OperatorOrRun`.

A valid token is never refused because of other requests from the same address: a proxy has one address for all. Wrong
ones are: after a few of them an address must wait (429), in a table that cannot grow without bound.

What each caller may do is given to the kernel as rights.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, NamedTuple

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from wakeful import ids
from wakeful.clock import Clock, SystemClock
from wakeful.domains import domains
from wakeful.errors import SchedulerError, WrongCallbackToken
from wakeful.kernel.actions.run_tokens import RunToken
from wakeful.kernel.context import PayloadCheck, Rights
from wakeful.kernel.hooks import Writer
from wakeful.routing.problems import ApiError
from wakeful.routing.settings import ServerSettings
from wakeful.routing.wiring import Sched, Settings
from wakeful.scheduler import Scheduler
from wakeful.store.interface import Transaction
from wakeful.store.owners import Owned
from wakeful.store.records import JobDef, PageSession, TokenRow

log = logging.getLogger("wakeful.api")

RANK = {"agent": 0, "viewer": 1, "operator": 2, "admin": 3}
USE_NOTED_MS = 60_000
FREE_FAILURES = 10  # wrong tokens an address may present …
WINDOW_MS = 60_000  # … within this time before further wrong ones must wait for the rest of it
MOST_ADDRESSES = 1_000
MOST_TOKENS = 10_000
COOKIE = "wakeful"

_scheme = HTTPBearer(auto_error=False, description="A token: wakeful token create NAME --role ROLE")


class Caller(NamedTuple):
    """The caller: a token's name and role."""

    name: str
    role: str
    run: int | None = None  # the run in progress whose token this is
    kind: str | None = None  # the kind of that run's job

    @property
    def is_agent(self) -> bool:
        """Whether it may only see and change what it owns."""
        return self.role == "agent"

    def may(self, role: str) -> bool:
        """Whether this caller may do what `role` may."""
        return RANK[self.role] >= RANK[role]


class Failures:
    """Wrong tokens per address, the oldest forgotten first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()  # address -> since when, how many

    def wait(self, address: str) -> int:
        """Seconds until this address may guess again; 0 at once."""
        since, times = self._seen.get(address, (0, 0))
        left = since + WINDOW_MS - self._clock.boot()
        return 0 if times < FREE_FAILURES or left <= 0 else -(-left // 1000)

    def refusal(self, address: str, otherwise: SchedulerError) -> SchedulerError:
        """Count a wrong token; what to answer to it: to wait, once there were too many, or else what is wrong."""
        seconds = self.wait(address)
        if seconds > 0:
            sentence = f"Too many wrong tokens from this address: wait {seconds} s."
            return ApiError(429, "too_many_failures", sentence, headers={"Retry-After": str(seconds)})
        self.count(address)
        return otherwise

    def count(self, address: str) -> None:
        now = self._clock.boot()
        since, times = self._seen.pop(address, (now, 0))
        self._seen[address] = (since, times + 1) if now - since < WINDOW_MS else (now, 1)
        while len(self._seen) > MOST_ADDRESSES:
            self._seen.popitem(last=False)


class Gate:
    """Recognises tokens for one server."""

    def __init__(self, scheduler: Scheduler, clock: Clock | None = None) -> None:
        self.clock = clock if clock is not None else SystemClock()
        self._server = scheduler.server_side
        self.failures = Failures(self.clock)
        self._noted: dict[str, int] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def recognise(self, secret: str | None, address: str) -> Caller:
        """The caller, or the refusal: 401, or 429 for a wrong token from an address that guesses."""
        if secret is None:
            raise _unknown("This needs a token: send it as Authorization: Bearer wk_….")
        token = await self._server.find_token(secret)
        if token is None:
            wrong = _unknown("This token is not valid: it does not exist or was revoked.")
            raise self.failures.refusal(address, wrong)
        if isinstance(token, RunToken):
            return Caller(token.name, token.role, token.run_id, token.kind)
        if isinstance(token, PageSession):
            return Caller(token.name, token.role)
        self._note_use(token)
        return Caller(token.name, token.role)

    async def admit_report(self, run: str, token: str, address: str) -> None:
        """Let through a caller with the run's own token; WrongCallbackToken, or 429 for an address that guesses."""
        if not await self._server.check_callback(run, token):
            raise self.failures.refusal(address, WrongCallbackToken())

    async def still_valid(self, secret: str | None) -> bool:
        """Whether a token that was recognised before is valid now. Asked by us, so a no counts as no guess."""
        return secret is not None and await self._server.find_token(secret) is not None

    def _note_use(self, token: TokenRow) -> None:
        """Store that the token was used, at most once a minute, and after the answer is on its way."""
        now = self.clock.boot()
        if now - self._noted.get(token.hash, -USE_NOTED_MS) < USE_NOTED_MS:
            return
        if len(self._noted) >= MOST_TOKENS:
            self._noted.clear()
        self._noted[token.hash] = now
        task = asyncio.get_running_loop().create_task(self._write_use(token))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def _write_use(self, token: TokenRow) -> None:
        try:
            await self._server.note_token_use(token)
        except SchedulerError as error:
            log.warning("cannot record the use of token %s: %s", token.name, error)

    async def finish(self) -> None:
        """Wait for what is still being noted."""
        if self._notes:
            await asyncio.wait(set(self._notes))


def _unknown(sentence: str) -> ApiError:
    return ApiError(401, "unauthorized", sentence, headers={"WWW-Authenticate": 'Bearer realm="wakeful"'})


def presented(request: Request) -> str | None:
    """The token a request carries, or else the cookie of a person who is signed in; None without either."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    token = secret.strip() or None if scheme.lower() == "bearer" else None
    return token if token is not None else request.cookies.get(COOKIE)


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""


_REPORT = re.compile(r"/api/runs/([^/]+)/complete")


async def admit(request: Request, gate: Gate) -> None:
    """Refuse a request without a valid token, before its body is read.

    A run's end may be reported with that run's own token; everything else that carries a body needs a caller.
    """
    report = _REPORT.fullmatch(request.scope["path"]) if request.method == "POST" else None
    token = callback_token_in(request) if report is not None else None
    if report is not None and token is not None:
        await gate.admit_report(report[1], token, address_of(request))
    else:
        request.state.caller = await gate.recognise(presented(request), address_of(request))


def callback_token_in(request: Request) -> str | None:
    """The token of a run that a request carries: in its address, or as 64 hexadecimal digits where others stand."""
    if (given := request.query_params.get("token")) is not None:
        return given
    secret = presented(request)
    return secret if secret is not None and len(secret) == 64 and set(secret) <= set("0123456789abcdef") else None


async def anyone(request: Request, _: Annotated[object, Depends(_scheme)] = None) -> Caller:
    """A caller with a valid token."""
    known: Caller | None = getattr(request.state, "caller", None)  # recognised before the body was read
    if known is not None:
        return known
    gate: Gate = request.app.state.gate
    request.state.caller = await gate.recognise(presented(request), address_of(request))
    found: Caller = request.state.caller
    return found


Anyone = Annotated[Caller, Depends(anyone)]


def at_least(role: str) -> Callable[[Caller], Awaitable[Caller]]:
    """A provider that admits this role and those above it, and no agents."""

    async def allowed(caller: Anyone) -> Caller:
        if caller.is_agent or not caller.may(role):
            sentence = f"Token {caller.name} has the role {caller.role}; this needs {role}."
            raise ApiError(403, "forbidden", sentence)
        return caller

    return allowed


def or_run(role: str) -> Callable[[Caller], Awaitable[Caller]]:
    """A provider that admits this role, those above it, and runs of agents."""
    others = at_least(role)

    async def allowed(caller: Anyone) -> Caller:
        return caller if caller.run is not None else await others(caller)

    return allowed


Viewer = Annotated[Caller, Depends(at_least("viewer"))]
Operator = Annotated[Caller, Depends(at_least("operator"))]
Admin = Annotated[Caller, Depends(at_least("admin"))]
ViewerOrRun = Annotated[Caller, Depends(or_run("viewer"))]
OperatorOrRun = Annotated[Caller, Depends(or_run("operator"))]


async def rights_of(caller: Anyone, settings: Settings, scheduler: Sched) -> Rights:
    """Agents see and change only what they own; commands and priorities are for admins; everybody obeys the limit."""
    return Rights(
        caller.name,
        owned=_owned(caller, scheduler.server_side.kinds_apart) if caller.is_agent else None,
        admin_kinds=caller.may("admin"),
        priority=caller.may("admin"),
        min_interval=settings.min_interval_ms or None,
        check=_check(caller, settings),
        max_jobs=settings.jobs_per_agent,
        max_bytes=settings.bytes_per_agent,
        run=caller.run,
    )


def _owned(caller: Caller, apart: tuple[str, ...]) -> Owned:
    """What a token was made for or has made itself; a run has the jobs of its agent."""
    return Owned(caller.name, apart=apart) if caller.run is None else Owned(caller.name, caller.kind)


def _check(caller: Caller, settings: ServerSettings) -> PayloadCheck:
    """What the kinds themselves have against what this caller writes."""
    may_send = settings.agents_request or not caller.is_agent
    writer = Writer(caller.name, caller.is_agent, settings.outbound, may_send)

    def check(tx: Transaction, kind: str, payload: str, before: JobDef | None) -> None:
        if (of_kind := _CHECKS.get(kind)) is not None:
            of_kind(tx, writer, payload, before)

    return check


_CHECKS = {kind.name: kind.check_writer for domain in domains() for kind in domain.kinds if kind.check_writer}


Allowed = Annotated[Rights, Depends(rights_of)]
"""The rights of the caller."""


async def editor(caller: Anyone) -> Caller:
    """Operators, admins, and agents within what they own; not viewers, and not a run of an agent."""
    if caller.role == "viewer":
        raise ApiError(403, "forbidden", f"Token {caller.name} has the role viewer; this needs operator.")
    if caller.run is not None:
        sentence = (
            f"{ids.run_text(caller.run)} is a run of {caller.name}: it changes and starts no jobs. "
            "It may read those of its agent, wake agents and leave them events."
        )
        raise ApiError(403, "forbidden", sentence)
    return caller


Editor = Annotated[Caller, Depends(editor)]
