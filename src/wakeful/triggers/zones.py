"""Time zones as integer segments: spans of constant offset, found once and remembered.

A segment is `(start, end, offset, mark)`: for UTC seconds in [start, end) the local clock reads `second + offset`.
`mark` is how far the local clock had already come when the segment began. It lies below `start + offset` where the
clock was moved forward (the difference is the gap) and above it where it was moved back (the overlap).

zoneinfo decides; it cannot list its changes of offset, so they are found by probing and halving.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from wakeful.errors import InvalidTrigger
from wakeful.triggers.moments import DAY, FIRST_SECOND, LAST_SECOND

Segment = tuple[int, int, int, int]

LOCAL = "local"
_CHUNK = 25  # segments are found for 2**25 s (388 days) at a time
_PROBE = 1 << 18  # 3.03 days: no zone has ever kept an offset for less than 3.9
_CALM = 4_102_444_800  # 2100: from here on zones have at most one rule for spring and one for autumn, months apart …
_CALM_PROBE = 1 << 21  # … so that 24 days will do
_MARGIN = 2 * DAY  # more than any clock was ever moved (24 h, across the date line)
_MOST_CHUNKS = 512
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/")
_LOCALTIME = "/etc/localtime"
_NOT_PLACES = ("posix/", "right/", "posixrules", "localtime", "leapseconds")


class Zone:
    """One IANA zone. Caches inside, a value outside: the same question always has the same answer."""

    __slots__ = ("_chunks", "_info", "_last", "name")

    def __init__(self, name: str, info: tzinfo) -> None:
        self.name = name
        self._info = info
        self._chunks: dict[int, list[Segment]] = {}
        self._last: Segment = (0, 0, 0, 0)
        if info is UTC:
            self._last = (FIRST_SECOND, LAST_SECOND, 0, FIRST_SECOND)

    def segment(self, second: int) -> Segment:
        """The segment that holds a UTC second in [FIRST_SECOND, LAST_SECOND)."""
        last = self._last
        if last[0] <= second < last[1]:
            return last
        chunk = self._chunks.get(second >> _CHUNK)
        if chunk is None:
            if len(self._chunks) >= _MOST_CHUNKS:
                self._chunks.clear()
            chunk = self._chunks[second >> _CHUNK] = self._find(second >> _CHUNK)
        for segment in chunk:
            if second < segment[1]:
                self._last = segment
                break
        return segment

    def when(self, ms: int, wait: Callable[[int], int | None]) -> int:
        """The first moment at or after `ms` at which `wait` is 0.

        `wait` gets a local second and says how many more it would take if the clock were never moved; None: forever.
        """
        second = max(ms // 1000, FIRST_SECOND)
        while second < LAST_SECOND:
            _, end, offset, _ = self.segment(second)
            seconds = wait(second + offset)
            if seconds is None:
                break
            if second + seconds < end:
                return (second + seconds) * 1000 if seconds or second * 1000 > ms else ms
            second = max(end, second + seconds - _MARGIN)
        return LAST_SECOND * 1000

    def _find(self, index: int) -> list[Segment]:
        begin = max(index << _CHUNK, FIRST_SECOND)
        finish = min(index + 1 << _CHUNK, LAST_SECOND)
        # Starting a little earlier gives the mark of what reaches into this chunk.
        second = start = max(begin - _MARGIN, FIRST_SECOND)
        offset = self._offset(second)
        mark = start + offset
        segments: list[Segment] = []
        while second < finish:
            probe = min(second + (_PROBE if second < _CALM else _CALM_PROBE), finish)
            if self._offset(probe) == offset:
                second = probe
                continue
            second = self._change(second, probe, offset)
            segments.append((start, second, offset, mark))
            mark = max(mark, second + offset)
            start, offset = second, self._offset(second)
        if start < finish:
            segments.append((start, finish, offset, mark))
        return [s if s[0] >= begin else (begin, s[1], s[2], max(s[3], begin + s[2])) for s in segments if s[1] > begin]

    def _change(self, low: int, high: int, offset: int) -> int:
        """The first second in (low, high] with another offset."""
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == offset:
                low = middle
            else:
                high = middle
        return high

    def _offset(self, second: int) -> int:
        delta = datetime.fromtimestamp(second, self._info).utcoffset()
        return delta.days * DAY + delta.seconds if delta is not None else 0


@lru_cache(maxsize=1024)
def zone(name: str) -> Zone:
    """The zone of an IANA name; InvalidTrigger names the nearest right one for a wrong name."""
    if name in {"UTC", "Etc/UTC"}:
        return Zone(name, UTC)
    from zoneinfo import ZoneInfo  # costs more than all of this package; UTC does without it

    if _plausible(name):
        try:
            return Zone(name, ZoneInfo(name))
        except (LookupError, ValueError, OSError):
            pass
    raise InvalidTrigger(f'Unknown time zone "{str(name)[:60]}"{_nearest(name)}', "tz")


def zone_name(value: object) -> str | None:
    """A zone as given (an IANA name, "local", a ZoneInfo, None) as its checked name."""
    if value is None or value == LOCAL:
        return value
    if isinstance(value, tzinfo):
        value = "UTC" if value is UTC else getattr(value, "key", None)
    if not isinstance(value, str):
        raise InvalidTrigger('A time zone is an IANA name such as "Europe/Berlin", or "local".', "tz")
    return zone(value).name


def settled_zone(name: str | None, default: str) -> str:
    """The name to store: the default where none was given, the system's own for "local"."""
    return default if name is None else system_zone() if name == LOCAL else name


def zone_in_use(name: str | None) -> Zone:
    """The zone to compute with: the system's own while none is settled."""
    return zone(system_zone() if name is None or name == LOCAL else name)


def place_named(name: str | None) -> tzinfo | None:
    """The zone to show times in, or None where none is given."""
    if name is None:
        return None
    from zoneinfo import ZoneInfo

    return ZoneInfo(zone_in_use(name).name)


def system_zone() -> str:
    """The IANA name of this machine's zone: $TZ, else /etc/localtime, else /etc/timezone, else UTC."""
    for name in (_from_environment, _from_localtime, _from_timezone_file):
        found = name()
        if found:
            try:
                return zone(found).name
            except InvalidTrigger:
                continue
    return "UTC"


def _from_environment() -> str:
    return _place(os.environ.get("TZ", "").removeprefix(":"))


def _from_localtime() -> str:
    try:
        return _place(_resolved(os.readlink(_LOCALTIME)))  # noqa: PTH115 - pathlib costs start-up time
    except OSError:  # it is missing, or no link
        return ""


@lru_cache(maxsize=4)
def _resolved(link: str) -> str:
    """Where that link of the system's zone leads: every job that is added asks, and links seldom change."""
    return os.path.realpath(os.path.join("/etc", link))  # noqa: PTH118 - pathlib costs start-up time


def _from_timezone_file() -> str:
    try:
        with open("/etc/timezone", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read(100).strip()
    except (OSError, ValueError):
        return ""


def _place(path: str) -> str:
    name = path.rpartition("zoneinfo/")[2]
    return name.removeprefix("posix/").removeprefix("right/")


def _plausible(name: object) -> bool:
    return (
        isinstance(name, str)
        and 0 < len(name) <= 64
        and _LETTERS.issuperset(name)
        and not name.startswith(("/", "-", *_NOT_PLACES))
        and "//" not in name
    )


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # only when something is wrong
    from zoneinfo import available_timezones

    if str(name).isupper() and "/" not in str(name) and len(str(name)) <= 5:  # CEST is not EST
        return ': abbreviations are ambiguous, use an IANA name such as "Europe/Berlin".'
    known = {place.lower(): place for place in available_timezones() if _plausible(place)}
    cities = {place.rpartition("/")[2]: place for place in sorted(known)}
    wanted = str(name).lower()[:64].replace(" ", "_")
    near = get_close_matches(wanted, known, 1, 0.75) or get_close_matches(wanted.rpartition("/")[2], cities, 1, 0.8)
    if not near:
        return ': use an IANA name such as "Europe/Berlin".'
    return f': did you mean "{known[cities.get(near[0], near[0])]}"?'
