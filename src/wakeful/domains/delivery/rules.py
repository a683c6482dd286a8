"""The rules of sending, as pure functions: the ladder, the rate, what an attempt means, which results are sent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from wakeful.errors import InvalidSetting, SchedulerError
from wakeful.kernel.rules.outcome import FAILURES
from wakeful.triggers.active_hours import ActiveHours, hours_of
from wakeful.triggers.durations import format_interval, interval_ms

LADDER = (5_000, 25_000, 120_000, 600_000)
ATTEMPTS = 5
SEND_LIMIT_S = 30.0
BUDGET_MS = 60_000  # how long one run sends before others have their turn; also the budget after a start
ERROR_MOST = 500
_RATE = re.compile(r"([1-9][0-9]{0,5})\s*/\s*([smh])", re.ASCII)
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000}


class Rate(NamedTuple):
    """At most so many in any such span of milliseconds."""

    times: int
    span: int


class QuietHours(NamedTuple):
    """Hours of the day in which messages wait."""

    hours: ActiveHours
    digest: bool


class Rules(NamedTuple):
    """How a connector sends."""

    attempts: int = ATTEMPTS
    rate: Rate | None = None
    quiet: QuietHours | None = None
    max_age: int | None = None


def read_rules(given: Mapping[str, Any]) -> Rules:
    """Rules as a file writes them, or as they are stored; InvalidSetting says what is wrong."""
    attempts = given.get("attempts")
    if attempts is not None and (
        isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= 100
    ):
        raise InvalidSetting("attempts must be a whole number from 1 to 100")
    rate, quiet, age = given.get("rate"), given.get("quiet_hours"), given.get("max_age")
    return Rules(
        ATTEMPTS if attempts is None else attempts,
        None if rate is None else read_rate(rate),
        None if quiet is None else read_quiet(quiet),
        None if age is None else read_age(age),
    )


def read_rate(value: object) -> Rate:
    found = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise InvalidSetting("rate must be a number per second, minute or hour, such as 20/m")
    return Rate(int(found[1]), _UNITS[found[2]])


def read_quiet(value: object) -> QuietHours:
    value = hours_of(value)
    if not isinstance(value, Mapping) or set(value) - {"start", "end", "timezone", "digest"}:
        raise InvalidSetting(
            'quiet_hours must be hours such as 22:00-07:00, or {start: "22:00", end: "07:00"}, also with timezone and '
            "digest"
        )
    digest = value.get("digest", True)
    if not isinstance(digest, bool):
        raise InvalidSetting("quiet_hours.digest must be true or false")
    try:
        hours = ActiveHours.read({key: item for key, item in value.items() if key != "digest" and item is not None})
    except SchedulerError as error:
        raise InvalidSetting(str(error).replace("active_hours", "quiet_hours").rstrip(".")) from None
    return QuietHours(hours, digest)


def read_age(value: object) -> int:
    try:
        found = interval_ms(value)  # type: ignore[arg-type]
    except (SchedulerError, TypeError, ValueError):
        raise InvalidSetting("max_age must be a duration such as 24h") from None
    if found <= 0:
        raise InvalidSetting("max_age must be longer than 0")
    return found


def rules_data(rules: Rules, zone: str) -> dict[str, Any]:
    """The rules as they are stored and shown; quiet hours in their zone."""
    data: dict[str, Any] = {"attempts": rules.attempts, "rate": None, "quiet_hours": None, "max_age": None}
    if rules.rate is not None:
        unit = next(letter for letter, span in _UNITS.items() if span == rules.rate.span)
        data["rate"] = f"{rules.rate.times}/{unit}"
    if rules.quiet is not None:
        data["quiet_hours"] = {**rules.quiet.hours.resolved(zone).to_data(), "digest": rules.quiet.digest}
    if rules.max_age is not None:
        data["max_age"] = rules.max_age / 1000 if rules.max_age % 1000 else format_interval(rules.max_age)
    return data


def rules_of(text: str) -> Rules:
    """The rules behind what is stored."""
    return read_rules(json.loads(text))


def quiet_until(rules: Rules, now: int) -> int | None:
    """The end of the quiet hours that `now` lies in; None outside them."""
    if rules.quiet is None or not rules.quiet.hours.is_open(now):
        return None
    return rules.quiet.hours.closes(now)


class Tried(NamedTuple):
    """How an attempt ended."""

    ok: bool
    error: str | None = None
    permanent: bool = False  # no further attempt can help
    retry_after: int | None = None  # milliseconds that the target asked for
    unclear: bool = False  # it may have arrived all the same
    cut_off: bool = False  # the process ended in the middle of it


class AttemptResult(NamedTuple):
    """What an attempt means for its delivery."""

    status: str
    next_at: int | None = None


def after_attempt(
    tried: Tried, attempts: int, rules: Rules, now: int, *, spared: bool = False, regular_at: int | None = None
) -> AttemptResult:
    """What is next after attempt number `attempts`; Retry-After may lengthen a delay, never shorten it.

    `spared`: the attempt just made is none of them. One that was made before its time leaves that as it was.
    """
    if tried.ok:
        return AttemptResult("sent")
    if tried.permanent or (attempts >= rules.attempts and not spared):
        return AttemptResult("failed")
    at = now + LADDER[min(max(attempts, 1), len(LADDER)) - 1]
    at = at if regular_at is None else min(at, regular_at)  # later only where the clock was set back since
    return AttemptResult("unknown" if tried.unclear else "pending", max(at, now + (tried.retry_after or 0)))


def gap_after(first: int, last: int) -> int:
    """How long after its last attempt a message may be tried before its time: longer, the longer its target is down."""
    return max(LADDER[0], (last - first) // 4)


def wanted(on: str, outcome: str, *, last: bool) -> bool:
    """Whether a result is one that is sent, changes aside; a failure that is tried again is not a result yet."""
    if outcome == "success":
        return on != "failure"
    if outcome in FAILURES or outcome in ("crashed", "unknown"):
        return on != "success" and last
    return False


def changed(before: tuple[str, str] | None, outcome: str, output_hash: str) -> bool:
    """Whether a result differs from the one before it, in outcome or output. A first success is no change."""
    if before is None:
        return outcome != "success"
    return before != (outcome, output_hash)
