"""How a tool prints, as data: what lies where in its output, and what was understood of it."""

from __future__ import annotations

from typing import Any, NamedTuple

Matches = tuple[tuple[str, Any], ...]  # paths, and the values found there
LIMIT, OVERLOAD = "rate_limit", "overload"  # what a field of an error may mean
BUSY, SERVER_ERROR = 429, 500  # statuses of HTTP


class OutputForm(NamedTuple):
    """How a tool prints: `text`, `json` (one object or list) or `jsonl` (one object per line), and what lies where."""

    format: str = "text"
    reply: str | None = None
    session: str | None = None
    cost: str | None = None
    tokens: tuple[str, ...] = ()  # those that went in, and those that came out last
    error: tuple[str, ...] = ()
    match: Matches = ()  # all of these: a line with the reply
    resets_at: str | None = None  # of a rate limit
    limited: Matches = ()  # lines that report a reached limit; others only mention one
    fails: Matches = ()  # only a line with one of these has the call's error; any line where none is given
    wrong: Matches = ()  # a line with one of these failed, whatever else it says
    sums: bool = False  # cost and tokens of all lines count together
    ends: Matches = ()  # a line with one of these is the last that counts
    joined: bool = False  # replies that follow each other directly are one
    done: Matches = ()  # all of these: the turn ended well, with a reply or without
    own_cost: str | None = None  # where there is one, that of the run alone: it counts instead of `cost`
    own_tokens: tuple[str, ...] = ()  # so do these instead of `tokens`
    thoughts: tuple[str, ...] = ()  # tokens that came out besides the last of `tokens`
    total: str | None = None  # all tokens: what did not go in came out
    status: str | None = None  # of HTTP, in an error
    means: tuple[tuple[str, Any, str], ...] = ()  # fields of an error that say what it is, before its status
    complains: Matches = ()  # a line with one of these only complains: the tool may continue
    complaint: str | None = None  # what such a line says
    complaint_status: str | None = None
    opens: Matches = ()  # lines that are printed before anything is done
    denied: str | None = None  # the tools that were not allowed
    version: str | None = None
    apology: str | None = None  # a reply in which this is found is an error
    said: str | None = None  # of text: where the reply is, the first group; all of it where no pattern is given
    trouble: str | None = None  # of text: what went wrong if there is no reply, the last match
    counted: str | None = (
        None  # of text: groups `cost`, `tokens_in` and `tokens_out`; the last cost and all tokens count
    )
    document: OutputForm | None = None  # one object that may be printed instead of lines

    @property
    def reports_cost(self) -> bool:
        return self.cost is not None or "<cost>" in (self.counted or "")

    @property
    def reports_tokens(self) -> bool:
        return bool(self.tokens) or "<tokens_" in (self.counted or "")


class Printed(NamedTuple):
    """What was understood of it."""

    reply: str | None = None
    has_result: bool = False
    session: str | None = None
    cost: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: str | None = None
    resets_at: Any = None
    is_own: bool = False  # the error is a field of its own, not the reply of a call that failed
    meaning: str | None = None  # of the error: LIMIT or OVERLOAD, where a field says so
    recovered: bool = False  # a reply came after the error
    complaint: str | None = None  # the last line that complained, unless another followed
    complaint_meaning: str | None = None
    acted: bool = False  # it printed more than how it begins
    stray: str = ""  # lines that are no JSON
    denied: tuple[str, ...] = ()
    version: str | None = None


def meaning_of(status: Any) -> str | None:
    """What a status of HTTP says about a failed call, as far as it does."""
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    if status == BUSY:
        return LIMIT
    return OVERLOAD if status >= SERVER_ERROR else None
