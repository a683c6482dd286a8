"""How a run ends, and how a handler reports it.

A handler that returns has succeeded, and what it returned is the run's output. To say more it raises or returns one
of `Skip`, `Noop`, `Defer`, `Wait` and `ApprovalNeeded`. `TransientError` says that the same thing may well work in a
minute. Any other exception is an error.

The life of a run has these states, and these are the only arrows between them:

    queued ──claim──▶ active ──settle──▶ done
      │ ▲               │                  ▲
      │ └───release─────┤                  │
      │               wait                 │
      │                 ▼                  │
      │              waiting ───settle─────┤
      └───────────────cancel───────────────┘

`queued` has been asked for, or was claimed and released before its handler was called; `active` has a handler on
some node; `waiting` has none and holds no lane; `done` has an outcome. A run that died with its process is settled as
crashed by the next start; what continues it is a new run.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.errors import SchedulerError
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import to_ms

OUTCOMES = ("success", "noop", "skipped", "deferred", "error", "timeout", "crashed", "cancelled", "unknown")
#: Only these count toward backoff and auto-disable.
FAILURES = frozenset({"error", "timeout"})
MAX_ERROR_CHARS = 4_000
MAX_TRACE_CHARS = 16_000
_OURS = f"{Path(__file__).parents[2]}/"
MAX_OUTPUT = 256 * 1024  # characters of JSON in the row
MAX_QUESTION = 2_000
APPROVAL = "approval"  # the phase of a run that waits for a person
#: The phases of an active run that was asked to end and does not: why it was asked.
GOES_ON = {
    "timeout": "is past its limit",
    "cancelled": "was cancelled",
    "stopping": "was still running when the scheduler stopped",
}


class Skip(Exception):
    """Nothing was done, on purpose: `Skip("market closed")`."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = str(why)


class Noop(Exception):
    """Looked, and there was nothing to do: `Noop("nothing new")`."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = str(why)


class Defer(Exception):
    """Not now: run again at `until` (an aware datetime). Neither an error nor a success."""

    def __init__(self, until: datetime, why: str = "", *, kept: Output | None = None) -> None:
        """`kept`: the usage and the log file of a run that did something before it was deferred."""
        super().__init__(why)
        self.until_ms = to_ms(until, "until")
        self.why = str(why)
        self.kept = kept


class Wait(Exception):
    """The work continues elsewhere: the run waits, holding nothing, until it is completed or `until` has passed."""

    def __init__(self, until: datetime | None = None, why: str = "") -> None:
        super().__init__(why)
        self.until_ms = to_ms(until, "until") if until is not None else None
        self.why = str(why)


class ApprovalNeeded(Wait):
    """The run needs a person's approval first: `ApprovalNeeded("Deploy to production?")`.

    The run can wait for days and across restarts. When it is approved, the handler is called again with
    `run.approved_by` set; rejected, or not approved before `until`, the run is cancelled.
    """

    def __init__(self, question: str = "", until: datetime | None = None) -> None:
        super().__init__(until, clean(_bounded(str(question), MAX_QUESTION)) or "Go on?")
        self.about: Any = None  # JSON: what a kind of job keeps with the question


class TransientError(Exception):
    """A failure that is likely to pass by itself: a network that is down, a service that is busy."""


class TryAgain(TransientError):
    """An error, after which the same slot is to be tried again at `until`, instead of by the job's own retries."""

    def __init__(self, until: datetime, why: str) -> None:
        super().__init__(why)
        self.until_ms = to_ms(until, "until")


class Output:
    """What a handler returns when its output is more than a JSON value: the value, and where the full text lies."""

    __slots__ = ("log_file", "usage", "value")

    def __init__(self, value: Any, log_file: str | None = None, usage: Mapping[str, Any] | None = None) -> None:
        """`usage`: what the run used, such as tokens, as JSON values."""
        self.value = value
        self.log_file = log_file
        self.usage = usage


class Failed(SchedulerError):
    """An error that still has output to keep; `outcome` is error or timeout.

    With `until` the same slot is tried again then, as after `TryAgain`. One that is likely to pass is also a
    `TransientError`.
    """

    def __init__(self, message: str, output: Output, outcome: str = "error", *, until: datetime | None = None) -> None:
        super().__init__(message)
        self.output = output
        self.outcome = outcome
        self.until_ms = to_ms(until, "until") if until is not None else None


TRANSIENT = (TransientError, ConnectionError, TimeoutError)


class Outgoing(NamedTuple):
    """A message that a handler asked to send with the end of its run."""

    text: str
    to: str
    title: str | None = None


def kept_messages(messages: Sequence[Outgoing]) -> str:
    """Messages as they are stored with a run that waits."""
    return json.dumps(messages)


def read_messages(text: str) -> tuple[Outgoing, ...]:
    """The same again."""
    return tuple(Outgoing(*item) for item in json.loads(text))


class Result(NamedTuple):
    """What became of a run, as plain data."""

    outcome: str
    output: str | None = None  # JSON
    error_type: str | None = None
    error: str | None = None
    trace: str | None = None
    transient: bool = False
    until: int | None = None  # deferred, or an error with a time: when again; waiting: the deadline
    log_file: str | None = None
    interrupted: bool = False  # cut off by our own shutdown: the slot is run again at the next start
    phase: str | None = None  # waiting: for what
    about: Any = None  # waiting for approval: what is kept with the question
    approved: bool = False  # a person said yes: the same slot continues at once, before other starts of the job
    messages: tuple[Outgoing, ...] = ()  # sent only where the run ends as success or noop
    usage: str | None = None  # JSON: what it used, as its kind counts it
    blamed: bool = False  # crashed, and nothing that ran alongside it can have ended the process


SUCCESS = Result("success")
WAITING = "waiting"  # not an outcome: the run is not done


def from_return(value: Any) -> Result:
    """What a handler's return value says."""
    if value is None:
        return SUCCESS
    if isinstance(value, (Skip, Noop, Defer, Wait)):
        return from_exception(value)
    if isinstance(value, Output):
        usage = json.dumps(dict(value.usage)) if value.usage is not None else None
        return from_return(value.value)._replace(log_file=value.log_file, usage=usage)
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except Exception as error:  # noqa: BLE001 - an object may do anything while it is being read
        why = f"The handler returned a {type(value).__name__} that is not JSON: {message_of(error)}"
        return Result("error", error_type="TypeError", error=clean(_bounded(why, MAX_ERROR_CHARS)))
    return Result("success", output=text)


def from_exception(error: BaseException) -> Result:
    """What an exception out of a handler says."""
    if isinstance(error, Skip):
        return Result("skipped", output=_said(error.why))
    if isinstance(error, Noop):
        return Result("noop", output=_said(error.why))
    if isinstance(error, Defer):
        kept = from_return(error.kept)
        return kept._replace(outcome="deferred", output=_said(error.why), until=error.until_ms)
    if isinstance(error, ApprovalNeeded):
        return Result(WAITING, output=_said(error.why), until=error.until_ms, phase=APPROVAL, about=error.about)
    if isinstance(error, Wait):
        return Result(WAITING, output=_said(error.why), until=error.until_ms)
    if isinstance(error, Failed):
        kept = from_return(error.output)
        said = clean(_bounded(message_of(error), MAX_ERROR_CHARS))
        return kept._replace(
            outcome=error.outcome,
            error_type=type(error).__name__,
            error=said,
            transient=isinstance(error, TRANSIENT),
            until=error.until_ms,
        )
    return Result(
        "error",
        error_type=type(error).__name__,
        error=clean(_bounded(message_of(error), MAX_ERROR_CHARS)),
        trace=_kept_trace(error),
        transient=isinstance(error, TRANSIENT),
        until=error.until_ms if isinstance(error, TryAgain) else None,
    )


def past_limit(limit_ms: int) -> Result:
    """The verdict on a run that took longer than it may."""
    return Result("timeout", error_type="Timeout", error=f"still running after {format_interval(limit_ms)}")


def reported(error: str) -> Result:
    """An error that was reported from outside."""
    return Result("error", error_type="Reported", error=clean(_bounded(error, MAX_ERROR_CHARS)))


def shortened(result: Result, file: str | None) -> Result:
    """A result whose output is too long for its row: the beginning stays, the whole is in `file` where there is one."""
    text = result.output or ""
    kept = {"truncated": True, "length": len(text), "beginning": text[: MAX_OUTPUT // 4]}
    return result._replace(output=json.dumps(kept), log_file=file or result.log_file)


def clean(text: str) -> str:
    """Text every database takes: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def beginning(text: str, most: int) -> str:
    """The text, or as much of its beginning as fits with a mark that it continues."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def message_of(error: BaseException) -> str:
    """What an error says; with its type where that is only a value, as after `KeyError('subject')`."""
    kind = type(error).__name__
    try:
        text = str(error)
        is_value = len(error.args) == 1 and text == repr(error.args[0])
    except Exception:  # noqa: BLE001 - an error that cannot be shown is still an error
        return f"{kind}, whose message cannot be shown"
    return with_type(kind, text) if is_value else text or kind


def with_type(kind: str | None, message: str) -> str:
    """The message after the type of its error, unless it says that itself."""
    return message if kind is None or message.startswith(kind) else f"{kind}: {message}"


def _kept_trace(error: BaseException) -> str | None:
    """The trace that a run keeps: none where the message says it all, and another one where the error brings it."""
    traced = getattr(error, "traced", True)
    if traced is False:
        return None
    return clean((traced if isinstance(traced, str) else _trace(error))[-MAX_TRACE_CHARS:])


def _trace(error: BaseException) -> str:
    """The trace through the author's code: what lies in Wakeful is left out, unless there is nothing else."""
    try:
        return "".join(_without_ours(traceback.TracebackException.from_exception(error)).format())
    except Exception:  # noqa: BLE001 - see above
        return f"{type(error).__name__}, whose trace cannot be shown"


def _without_ours(shown: traceback.TracebackException) -> traceback.TracebackException:
    chain: traceback.TracebackException | None = shown
    while chain is not None:
        own = [frame for frame in chain.stack if not frame.filename.startswith(_OURS)]
        if own:
            chain.stack = traceback.StackSummary.from_list(own)
        chain = chain.__cause__ or chain.__context__
    return shown


def _said(why: str) -> str | None:
    return json.dumps(why) if why else None


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({counted(len(text) - limit, 'more character')})"


RUN_STATES = ("queued", "active", "waiting", "done")

#: verb -> (from, to)
TRANSITIONS: dict[str, tuple[frozenset[str], str]] = {
    "claim": (frozenset({"queued"}), "active"),
    "wait": (frozenset({"active"}), "waiting"),
    "settle": (frozenset({"active", "waiting"}), "done"),
    "cancel": (frozenset({"queued"}), "done"),
    "release": (frozenset({"active"}), "queued"),
}


class ImpossibleTransition(SchedulerError):
    """A transition that the run's state does not allow."""


#: (from, to) of every arrow.
ARROWS = frozenset((start, end) for starts, end in TRANSITIONS.values() for start in starts)


def check_transition(start: str, end: str, run_id: int) -> None:
    """ImpossibleTransition unless there is an arrow between the two states."""
    if (start, end) not in ARROWS:
        message = f"{ids.run_text(run_id)} is {start}; it cannot become {end}."
        raise ImpossibleTransition(message)


def after(verb: str, state: str, run: str) -> str:
    """The state that follows, or ImpossibleTransition naming the run, its state and the verb."""
    allowed, result = TRANSITIONS[verb]
    if state not in allowed:
        message = f"{run} is {state}; it cannot {verb}."
        raise ImpossibleTransition(message)
    return result
