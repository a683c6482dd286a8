"""Moments: aware datetimes outside, whole milliseconds since 1970 (UTC) inside.

Nothing here asks the time. A datetime without a zone is refused: it would mean another moment on every machine.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from wakeful.errors import InvalidTrigger

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WALL = EPOCH.replace(tzinfo=None)

DAY = 86_400
FIRST_SECOND = -62_135_424_000  # 0001-01-03: every zone's local date can still be written from here …
LAST_SECOND = 253_370_764_800  # 9999-01-01: … up to here; beyond it there are no slots
LAST_MS = LAST_SECOND * 1000


def to_ms(moment: datetime, field: str = "now") -> int:
    """The moment in whole milliseconds since 1970; refuses what is not an aware datetime."""
    try:
        delta = moment - EPOCH
        return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000
    except (TypeError, AttributeError):
        pass
    if isinstance(moment, datetime):
        raise InvalidTrigger(
            f"{field} {moment.isoformat()} has no time zone: give an aware datetime, "
            "for example datetime(2026, 1, 1, 9, tzinfo=timezone.utc).",
            field,
        )
    raise InvalidTrigger(f"{field} must be an aware datetime, not {type(moment).__name__}.", field)


def from_ms(ms: int) -> datetime:
    """The aware datetime (UTC) of a moment."""
    return EPOCH + timedelta(0, 0, 0, ms)


def read_moment(value: object, field: str) -> int:
    """Milliseconds of an aware datetime or of an ISO 8601 text with an offset."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidTrigger(
                f'{field} "{value[:60]}" is not a time: expected ISO 8601 with an offset, '
                'for example "2026-01-01T09:00:00+01:00" or "2026-01-01T08:00:00Z".',
                field,
            ) from None
        if moment.tzinfo is None:
            raise InvalidTrigger(
                f'{field} "{value[:60]}" has no time zone: add an offset such as "+01:00", or "Z" for UTC.', field
            )
    else:
        moment = value  # type: ignore[assignment]  # to_ms refuses what is not an aware datetime
    ms = to_ms(moment, field)
    if not FIRST_SECOND * 1000 <= ms < LAST_MS:
        raise InvalidTrigger(f"{field} {moment.isoformat()} is out of reach: use the years 2 to 9998.", field)
    return ms


def iso(ms: int) -> str:
    """ISO 8601 with `Z`, to the second where that is exact, else to the millisecond."""
    moment = _EPOCH_WALL + timedelta(0, 0, 0, ms)  # without a zone, whose offset would be asked for and cut off again
    return f"{moment.isoformat(timespec='milliseconds') if ms % 1000 else moment.isoformat()}Z"


def spoken(ms: int, zone: tzinfo | None = None, *, exact: bool = False, fine: bool = False) -> str:
    """The moment as people read it: "2026-01-01 09:00 UTC", or "2026-01-01 09:00 CET (08:00 UTC)".

    Seconds are left out where there are none, unless it is to be `exact`; milliseconds are left out unless `fine`.
    """
    local = from_ms(ms) if zone is None else from_ms(ms).astimezone(zone)
    clock = clock_text(local, exact=exact, fine=fine)
    return f"{local.date()} {clock} {zone_text(local)}{utc_beside(local, exact=exact, fine=fine)}"


def clock_text(local: datetime, *, exact: bool = False, fine: bool = False) -> str:
    """What a clock there shows, with seconds where there are some."""
    if fine and local.microsecond:
        return local.time().isoformat("milliseconds")
    return f"{local:%H:%M:%S}" if local.second or exact else f"{local:%H:%M}"


def zone_text(local: datetime) -> str:
    """The short name of its zone, or the offset where it has none."""
    name = local.tzname() or ""
    return name if name[:1].isalpha() else f"UTC{name}"


def utc_beside(local: datetime, *, exact: bool = False, fine: bool = False) -> str:
    """The same moment in UTC, to be put behind it: " (08:00 UTC)", with the date where that differs."""
    if not local.utcoffset():
        return ""
    there = local.astimezone(UTC)
    day = "" if there.date() == local.date() else f"{there.date()} "
    return f" ({day}{clock_text(there, exact=exact, fine=fine)} UTC)"
