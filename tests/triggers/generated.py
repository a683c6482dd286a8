"""Triggers of every kind with every modifier, in every zone there is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import available_timezones

from hypothesis import strategies as st

from tests.triggers.strategies import EXPRESSIONS, ZONES, field
from wakeful.triggers import After, Chat, Cron, Every, Interval, Manual, Once, Ping, Webhook

PLACES = sorted(name for name in available_timezones() if not name.startswith(("posix", "right", "localtime")))
TZ = st.one_of(st.none(), st.just("UTC"), st.just("local"), st.sampled_from(ZONES), st.sampled_from(PLACES))

COMMON = [
    "* * * * *", "*/5 * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "15 */2 * * *", "0 */6 * * *", "0 */5 * * *",
    "0 9-17 * * 1-5", "*/10 8-18 * * *", "*/20 8,12,18 * * *", "0 9 * * MON-FRI", "@daily", "@weekly", "@yearly",
    "0 8-20/2 * * *", "0 0,2,4,6,8,10,12,14,16,18,20,22 * * *", "0 0-23 * * *", "*/15 * * * * *", "30 */5 * * * *",
    "*/10 30 9 * * *", "1-5 * * * * *", "0 9 1 * 0-6", "0 9 1-31 * 1", "0 9 */31 * 5L,2#2", "0 9 */2 * MON,5L",
    "0 9 13 * */7,5", "* * * * * *", "0-59/10 8-18 * * *", "10/20 9-17 * * *", "0 9 *,L * FRIL", "5 4 * * 1#1,1#3",
]  # fmt: skip
SECONDS = st.tuples(field(0, 59), EXPRESSIONS).map(" ".join)
CRONS = st.one_of(EXPRESSIONS, EXPRESSIONS, SECONDS, st.sampled_from(COMMON))

DURATIONS = st.one_of(
    st.sampled_from(["1s", "90s", "1m", "5m", "20m", "1h", "90m", "6h", "1d", "36h", "7d", "2w", "365d"]),
    st.integers(1, 10_000).map(lambda ms: ms / 1000),
    st.integers(1, 36_500 * 86_400_000).map(lambda ms: timedelta(milliseconds=ms)),
)
ANY = (datetime(2, 1, 1), datetime(9998, 12, 31))  # noqa: DTZ001 - made aware below
SOON = (datetime(2026, 1, 1), datetime(2027, 12, 31))  # noqa: DTZ001
MOMENTS = st.one_of(
    st.datetimes(*ANY),
    st.datetimes(*SOON),
    st.datetimes(*SOON).map(lambda moment: moment.replace(minute=30, second=0, microsecond=0)),
).map(lambda moment: moment.replace(tzinfo=UTC))
DATES = st.one_of(
    st.lists(st.dates(date(2, 1, 1), date(9998, 1, 1)), max_size=5),
    st.tuples(st.dates(date(2026, 1, 1), date(2026, 12, 1)), st.integers(1, 9)).map(
        lambda x: [x[0] + timedelta(n) for n in range(x[1])]
    ),
)
CLOCKS = st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda x: f"{x[0]:02}:{x[1]:02}")


@st.composite
def hours(draw):
    start = draw(CLOCKS)
    end = draw(st.one_of(CLOCKS, st.just("24:00")).filter(lambda end: end != start))
    return {"start": start, "end": end, "timezone": draw(TZ)}


@st.composite
def modifiers(draw):
    """Some modifiers; `until` never lies before `start`."""
    found = {"tz": draw(TZ)}
    said = draw(st.sets(st.sampled_from(["jitter", "stagger", "hours", "start", "until", "max_runs", "except"])))
    if "jitter" in said:
        found["jitter"] = draw(st.one_of(st.integers(1, 10), st.floats(0, 10)))
    if "stagger" in said:
        found["stagger"] = draw(DURATIONS)
    if "hours" in said:
        found["active_hours"] = draw(hours())
    bounds = sorted([draw(MOMENTS), draw(MOMENTS)])
    found |= {name: moment for name, moment in zip(("start", "until"), bounds, strict=True) if name in said}
    if "max_runs" in said:
        found["max_runs"] = draw(st.integers(1, 10**9))
    if "except" in said:
        found["except_dates"] = draw(DATES)
    return found


@st.composite
def timed(draw):
    """A trigger with times of its own."""
    options = draw(st.one_of(st.just({}), modifiers()))
    kind = draw(st.sampled_from(["cron", "cron", "every", "interval", "once"]))
    if kind == "cron":
        return Cron(draw(CRONS), **options)
    if kind == "once":
        return Once(draw(MOMENTS), **options)
    if kind == "interval":
        return Interval(draw(DURATIONS), **options)
    return Every(draw(DURATIONS), draw(st.one_of(st.none(), MOMENTS)), **options)


def _can_be_expected(trigger):
    return not isinstance(trigger, Once) and trigger.max_runs is None


NAMES = st.one_of(
    st.sampled_from(["backup", "job_17", "nightly report", "the 1st fails", "5", 'a "b"', " a  b", "x\ny", "e\u2003e"]),
    st.text(min_size=1, max_size=20).filter(lambda name: name.strip()),
)
TRIGGERS = st.one_of(
    timed(),
    timed(),
    timed(),
    timed(),
    st.builds(After, NAMES, on=st.sampled_from(["success", "failure", "any"])),
    st.sampled_from([Webhook(), Chat(), Manual()]),
    st.builds(Ping, st.one_of(st.none(), timed().filter(_can_be_expected)), DURATIONS),
)
