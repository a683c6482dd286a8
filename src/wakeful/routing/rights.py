"""What each caller may do, as rights of the kernel; and which callers may change anything."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from wakeful import ids
from wakeful.domains import domains
from wakeful.kernel.actions.authorization import PayloadCheck, Rights
from wakeful.kernel.hooks import Writer
from wakeful.routing.auth import Anyone, Caller
from wakeful.routing.problems import ApiError
from wakeful.routing.settings import ServerSettings
from wakeful.routing.wiring import Sched, Settings
from wakeful.store.interface import Transaction
from wakeful.store.owners import Owned
from wakeful.store.records import JobDef


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
