"""Times and amounts as people read them. Pure: the present is given, in milliseconds like everywhere inside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from wakeful.counting import counted
from wakeful.triggers import from_ms, system_zone, to_ms
from wakeful.triggers.moments import clock_text, read_moment, spoken, utc_beside, zone_text

if TYPE_CHECKING:
    from wakeful.kernel.model.job import Job
    from wakeful.triggers import Trigger

_STEPS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def span(ms: int) -> str:
    """An amount of time in its two largest units: "4m 10s", "2d 3h"; below ten seconds with a decimal."""
    if ms < 10_000:
        return f"{ms}ms" if ms < 1_000 else f"{ms / 1000:.1f}s".replace(".0s", "s")
    seconds = ms // 1000
    for (unit, size), (smaller, part) in pairwise(_STEPS):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size}{unit} {rest}{smaller}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"


def relative(ms: int, now: int) -> str:
    """How far a moment is from now: "in 4m 10s", "3h ago", "now"."""
    away = ms - now
    if abs(away) < 1_000:
        return "now" if away >= 0 else "just now"
    whole = abs(away) // 1000 * 1000
    return f"in {span(whole)}" if away > 0 else f"{span(whole)} ago"


def ago(ms: int, now: int) -> str:
    """How long ago, in one unit, for where space is short: "3h ago"."""
    return relative(ms, now).replace(" ago", "").partition(" ")[0] + " ago" if ms <= now - 1_000 else "just now"


def ahead(ms: int, now: int) -> str:
    """How far a start is from now; one whose time has come is due, however long that is ago."""
    return relative(ms, now) if ms > now else "due"


def money(amount: float) -> str:
    """An amount with two places, or as many as it takes to be more than nothing."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.4f}"


def stamp(ms: int, zone: tzinfo, *, exact: bool = False) -> str:
    """A moment in full: "Mon 2026-11-16 09:00 CET (08:00 UTC)"; with seconds where it has some, or if `exact`."""
    return f"{from_ms(ms).astimezone(zone):%a} {spoken(ms, zone, exact=exact)}"


def need_seconds(times: Iterable[int | None]) -> bool:
    """Whether any of these times has seconds: then a list shows them for all, so that its times have one form."""
    return any(ms is not None and ms // 1_000 % 60 for ms in times)


def moment_words(text: str, zone: tzinfo, now: int) -> str:
    """A moment of a JSON answer, in full and as seen from now: "Mon 2026-11-16 09:00 UTC, 3h ago"."""
    ms = read_moment(text, "at")
    return f"{stamp(ms, zone)}, {relative(ms, now)}"


def brief(ms: int, zone: tzinfo, now: int, *, exact: bool = False) -> str:
    """A moment in as few words as say which one: "09:00", "Mon 09:00", "24 Dec 09:00", "2027-01-05 09:00".

    Anywhere but in UTC the zone is named, with UTC after it: "09:00 CET (08:00 UTC)". Seconds as in `stamp`.
    """
    local, today = from_ms(ms).astimezone(zone), from_ms(now).astimezone(zone)
    days, clock = (local.date() - today.date()).days, clock_text(local, exact=exact)
    if days == 0:
        text = clock
    elif -7 < days < 7:
        text = f"{local:%a} {clock}"
    elif local.year == today.year:
        text = f"{local.day} {local:%b} {clock}"
    else:
        text = f"{local:%Y-%m-%d} {clock}"
    beside = utc_beside(local, exact=exact)
    return f"{text} {zone_text(local)}{beside}" if beside else text


def zone_named(name: str | None) -> tzinfo:
    """The zone to show things in: the one named, else the system's."""
    from zoneinfo import ZoneInfo

    return ZoneInfo(name if name is not None else _system_zone())


def zone_of(job: Job, default: tzinfo) -> tzinfo:
    """The zone a job's times are shown in: its own, else the default one."""
    return zone_of_trigger(job.trigger, default)


def zone_of_trigger(trigger: Trigger, default: tzinfo) -> tzinfo:
    """The same, by the job's trigger."""
    hours = getattr(trigger, "active_hours", None)
    own = getattr(trigger, "tz", None) or (hours.timezone if hours is not None else None)
    return zone_named(own) if own is not None else default


#: Control characters (C0, DEL, C1), what turns the direction of writing, what cannot be seen, and halves of pairs.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, *, keep: str = "\n\t", escape: Callable[[str], str] | None = None) -> str:
    """The text with every control character shown as an escape sequence; `keep` names those that may stay."""

    def show(match: re.Match[str]) -> str:
        letter = match[0]
        if letter in keep:
            return letter
        return escape(letter) if escape is not None else letter.encode("unicode_escape").decode()

    return _UNSEEN.sub(show, text.replace("\r\n", "\n") if escape is None else text)


def plain(text: str) -> str:
    """The text as one line, with control characters shown."""
    return " ".join(visible(text).split())


count = counted  # as this room calls it


@cache
def _system_zone() -> str:
    return system_zone()


def next_times(job: Job, number: int) -> list[int]:
    """When the job starts next, as far as that is known: its armed start, then those after it."""
    # Later starts of an interval depend on when each run ends.
    known = 1 if job.trigger.relative else number
    return [to_ms(at) for at in job.upcoming(known)]
