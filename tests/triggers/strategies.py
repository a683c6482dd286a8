"""Random cron expressions, zones, and moments near the changes of their clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",  # winter is the exception there
    "Australia/Lord_Howe",  # half an hour
    "Pacific/Chatham",  # at 02:45
    "America/Havana",  # at midnight
    "America/Santiago",
    "Asia/Beirut",
    "America/St_Johns",
    "Africa/Casablanca",
    "Antarctica/Troll",  # two hours
    "Pacific/Apia",  # a day left out in 2011
    "Asia/Pyongyang",  # for good, by half an hour
    "America/Caracas",
    "Asia/Kathmandu",
]
CHANGES = {
    "Pacific/Apia": datetime(2011, 12, 30, 10, tzinfo=UTC),
    "Asia/Pyongyang": datetime(2018, 5, 4, 15, tzinfo=UTC),
    "America/Caracas": datetime(2016, 5, 1, 7, tzinfo=UTC),
}


def changes(zone: str, year: int) -> list[datetime]:
    """The moments of a year at which the offset changes, to the hour below."""
    place = ZoneInfo(zone)
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(366 * 24)]
    offsets = [hour.astimezone(place).utcoffset() for hour in hours]
    return [hours[n] for n in range(len(hours) - 1) if offsets[n] != offsets[n + 1]]


NEAR = {zone: [*changes(zone, 2024), *([CHANGES[zone]] if zone in CHANGES else [])] for zone in ZONES}


@st.composite
def places(draw):
    """A zone and a whole minute, mostly near a change of its clock."""
    zone = draw(st.sampled_from(ZONES))
    if NEAR[zone] and draw(st.integers(0, 9)):
        start = draw(st.sampled_from(NEAR[zone])) - timedelta(hours=30)
        return zone, start + timedelta(minutes=draw(st.integers(0, 60 * 60)))
    return zone, datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=draw(st.integers(0, 60 * 24 * 400)))


def items(low, high):
    number = st.integers(low, high)
    spans = st.tuples(number, number).map(sorted)
    return st.one_of(
        number.map(str),
        number.map(str),
        spans.map(lambda s: f"{s[0]}-{s[1]}"),
        st.tuples(spans, st.integers(1, 4)).map(lambda x: f"{x[0][0]}-{x[0][1]}/{min(x[1], x[0][1] - x[0][0] + 1)}"),
        st.tuples(number, st.integers(1, 9)).map(lambda x: f"{x[0]}/{min(x[1], high - x[0] + 1)}"),
    )


def field(low, high):
    return st.one_of(
        st.just("*"),
        st.integers(2, (high - low + 1) // 2).map(lambda n: f"*/{n}"),
        st.lists(items(low, high), min_size=1, max_size=3).map(",".join),
    )


HOURS = st.one_of(field(0, 23), st.sampled_from(["0", "1", "2", "3", "23", "0-3", "1-2", "*/2", "2,3", "*"]))
MONTH_DAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    field(1, 31),
    st.just("?"),
    st.lists(
        st.one_of(st.sampled_from(["L", "LW", "L-3", "L-30"]), st.integers(1, 31).map(lambda n: f"{n}W"), items(1, 31)),
        min_size=1,
        max_size=2,
    ).map(",".join),
)
WEEK_DAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    field(0, 6),
    st.just("?"),
    st.sampled_from(["5-7", "0-7", "1-7/2", "7", "6,7"]),
    st.lists(
        st.one_of(
            st.integers(0, 7).map(lambda n: f"{n}L"),
            st.tuples(st.integers(0, 7), st.integers(1, 5)).map(lambda x: f"{x[0]}#{x[1]}"),
            items(0, 6),
        ),
        min_size=1,
        max_size=2,
    ).map(",".join),
)
EXPRESSIONS = st.tuples(field(0, 59), HOURS, MONTH_DAYS, field(1, 12), WEEK_DAYS).map(" ".join)
OFTEN = st.tuples(
    field(0, 59), HOURS, st.sampled_from(["*", "*", "?", "1-28", "L", "*/3"]), st.just("*"), WEEK_DAYS
).map(" ".join)
