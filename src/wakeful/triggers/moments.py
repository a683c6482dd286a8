"""Moments: aware datetimes outside, whole milliseconds since 1970 (UTC) inside.

Nothing here asks the time. A datetime without a zone is refused: it would mean another moment on every machine.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
        raise InvalidTrigger(f"{field} {moment.isoformat()} is out of reach: use the years 1 to 9998.", field)
    return ms


def iso(ms: int) -> str:
    """ISO 8601 with `Z`, to the second where that is exact, else to the millisecond."""
    moment = _EPOCH_WALL + timedelta(0, 0, 0, ms)  # without a zone, whose offset would be asked for and cut off again
    return f"{moment.isoformat(timespec='milliseconds') if ms % 1000 else moment.isoformat()}Z"


def spoken(ms: int) -> str:
    """The moment as people read it: "2026-01-01 09:00 UTC"."""
    moment = from_ms(ms)
    return f"{moment:%Y-%m-%d %H:%M}{f':{moment:%S}' if moment.second else ''} UTC"
