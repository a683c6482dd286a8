"""One call of an agent: its prompt, and its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")


class Turn(NamedTuple):
    """The input of an agent in one run. `session` is None where a new one begins."""

    prompt: str
    session: str | None
    agent: str
    run: Run
    schedule: str = ""


class Reply(NamedTuple):
    """What an agent answered; None if not reported. `tokens_in` and `tokens_out` are those of this run alone."""

    text: str
    session: str | None = None
    cost: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class ProgramInfo(NamedTuple):
    """The program of a call: when it was started, its version where that is known, and what it was not allowed."""

    started_at: int
    version: str | None = None
    denied: tuple[str, ...] = ()

    def shown(self) -> dict[str, Any]:
        found = {"started_at": iso(self.started_at), "version": self.version, "denied": list(self.denied)}
        return {key: value for key, value in found.items() if value}


class Answered(NamedTuple):
    """The agent answered."""

    reply: Reply
    log_file: str | None = None
    tool: ProgramInfo | None = None


class Limited(NamedTuple):
    """The account's rate limit is reached; `until` (epoch milliseconds) where the tool names it.

    `confirmed`: the tool itself names that time, not what it happened to print. `is_quota`: what was bought or allotted
    is used up.
    """

    why: str
    until: int | None = None
    log_file: str | None = None
    confirmed: bool = False
    reply: Reply | None = None
    is_quota: bool = False
    tool: ProgramInfo | None = None


class Gone(NamedTuple):
    """The session no longer exists: a new one may work."""

    why: str
    log_file: str | None = None
    reply: Reply | None = None
    tool: ProgramInfo | None = None


class Overloaded(NamedTuple):
    """The service is not available now: the same call is likely to work later."""

    why: str
    log_file: str | None = None
    reply: Reply | None = None
    tool: ProgramInfo | None = None


class CallFailed(NamedTuple):
    """The call failed; `outcome` is error or timeout. Not `started`: there was none, and nothing was used.

    `is_prompt`: there was none because this prompt cannot be given to the program.
    """

    why: str
    log_file: str | None = None
    outcome: str = "error"
    reply: Reply | None = None
    tool: ProgramInfo | None = None
    started: bool = True
    is_prompt: bool = False


Ending = Answered | Limited | Gone | Overloaded | CallFailed
"""How a call ended; `reply` has what it used, where the tool reported that."""


class Surroundings(NamedTuple):
    """The context of a call: the folder for its log, its environment, and who is notified of its session."""

    folder: Path
    environment: dict[str, str]
    now: Callable[[], int]
    on_session: Callable[[str], None]
    inline: bool = False  # in virtual time, where there are no threads


def usable_session(value: Any) -> str | None:
    """A session's id as it may be given to a program again, or None."""
    return value if isinstance(value, str) and SESSION_ID.fullmatch(value) else None
