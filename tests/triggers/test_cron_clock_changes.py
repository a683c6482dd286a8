"""What happens when the clock is moved, written out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from wakeful.triggers import Cron


def local_times(expression, zone, after, n):
    place = ZoneInfo(zone)
    moments = Cron(expression, tz=zone).upcoming(datetime.fromisoformat(after).replace(tzinfo=place), n)
    return [f"{moment.astimezone(place):%m-%d %H:%M %z}" for moment in moments]


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # Berlin, 2024-03-31: 02:00 becomes 03:00. Fixed: once, at the first moment after the gap.
        ("30 2 * * *", "Europe/Berlin", "2024-03-30T12:00", ["03-31 03:00 +0200", "04-01 02:30 +0200"]),
        ("0,30 2 * * *", "Europe/Berlin", "2024-03-30T12:00", ["03-31 03:00 +0200", "04-01 02:00 +0200"]),
        ("15 2,3 * * *", "Europe/Berlin", "2024-03-31T01:00", ["03-31 03:00 +0200", "03-31 03:15 +0200"]),
        # The first moment after the gap is a time of its own: still once.
        ("0 2-4 * * *", "Europe/Berlin", "2024-03-31T01:00", ["03-31 03:00 +0200", "03-31 04:00 +0200"]),
        # A step on the hours begins with a star: what the clock jumps over does not exist.
        ("30 */2 * * *", "Europe/Berlin", "2024-03-31T01:00", ["03-31 04:30 +0200", "03-31 06:30 +0200"]),
        ("*/30 2 * * *", "Europe/Berlin", "2024-03-31T01:00", ["04-01 02:00 +0200", "04-01 02:30 +0200"]),
        ("0 * * * *", "Europe/Berlin", "2024-03-31T01:30", ["03-31 03:00 +0200", "03-31 04:00 +0200"]),
        # The same with seconds: fixed, and not.
        ("20 30 2 * * *", "Europe/Berlin", "2024-03-30T12:00", ["03-31 03:00 +0200", "04-01 02:30 +0200"]),
        ("*/30 30 2 * * *", "Europe/Berlin", "2024-03-31T01:00", ["04-01 02:30 +0200", "04-01 02:30 +0200"]),
        # Berlin, 2024-10-27: 03:00 becomes 02:00. Fixed: the first pass only.
        ("30 2 * * *", "Europe/Berlin", "2024-10-27T01:00", ["10-27 02:30 +0200", "10-28 02:30 +0100"]),
        ("0,30 2 * * *", "Europe/Berlin", "2024-10-27T02:10", ["10-27 02:30 +0200", "10-28 02:00 +0100"]),
        # Anything else: both passes.
        ("*/30 2 * * *", "Europe/Berlin", "2024-10-27T02:10", ["10-27 02:30 +0200", "10-27 02:00 +0100"]),
        ("30 * * * *", "Europe/Berlin", "2024-10-27T02:00", ["10-27 02:30 +0200", "10-27 02:30 +0100"]),
        # Havana, 2024-03-10: midnight becomes 01:00.
        ("0 0 * * *", "America/Havana", "2024-03-09T12:00", ["03-10 01:00 -0400", "03-11 00:00 -0400"]),
        ("30 0 * * 0", "America/Havana", "2024-03-09T12:00", ["03-10 01:00 -0400", "03-17 00:30 -0400"]),
        # Lord Howe moves by half an hour.
        ("15 2 * * *", "Australia/Lord_Howe", "2024-10-05T12:00", ["10-06 02:30 +1100", "10-07 02:15 +1100"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2024-04-06T12:00", ["04-07 01:45 +1100", "04-08 01:45 +1030"]),
        # Apia left 2011-12-30 out, Kwajalein 1993-08-21: a gap of a day is a gap.
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T10:00", ["12-31 00:00 +1400", "12-31 09:00 +1400"]),
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-29T10:00", ["12-31 00:00 +1400", "12-30 09:00 +1400"]),
        ("0 */6 * * *", "Pacific/Apia", "2011-12-29T17:00", ["12-29 18:00 -1000", "12-31 00:00 +1400"]),
        ("30 12 * * *", "Pacific/Kwajalein", "1993-08-20T13:00", ["08-22 00:00 +1200", "08-22 12:30 +1200"]),
        # Pyongyang moved for good: half an hour back in 2015, forward in 2018.
        ("45 23 * * *", "Asia/Pyongyang", "2015-08-14T12:00", ["08-14 23:45 +0900", "08-15 23:45 +0830"]),
        ("45 23 * * *", "Asia/Pyongyang", "2018-05-04T12:00", ["05-05 00:00 +0900", "05-05 23:45 +0900"]),
    ],
)
def test_a_moved_clock_does_what_the_table_says(expression, zone, after, expected):
    assert local_times(expression, zone, after, len(expected)) == expected


@pytest.mark.promise("H14")
def test_a_moment_in_the_second_pass_waits_for_the_next_day():
    berlin = ZoneInfo("Europe/Berlin")
    second_pass = datetime(2024, 10, 27, 2, 10, tzinfo=berlin, fold=1)
    assert Cron("30 2 * * *", tz="Europe/Berlin").next_after(second_pass) == datetime(
        2024, 10, 28, 2, 30, tzinfo=berlin
    )


@pytest.mark.promise("H14")
def test_old_offsets_with_seconds_are_kept_to_the_second():
    paris = ZoneInfo("Europe/Paris")  # 9 minutes and 21 seconds ahead until 1911
    after = datetime(1911, 3, 9, 12, tzinfo=paris)
    times = Cron("0 0 * * *", tz="Europe/Paris").upcoming(after, 2)
    assert times == [datetime(1911, 3, 10, tzinfo=paris), datetime(1911, 3, 11, tzinfo=paris)]
    assert times[1] - times[0] == timedelta(hours=24, minutes=9, seconds=21)
    wild = Cron("*/5 * * * *", tz="Europe/Paris").upcoming(datetime(1911, 3, 10, 23, 59, tzinfo=paris), 3)
    assert [f"{moment.astimezone(paris):%d %H:%M:%S}" for moment in wild] == [
        "10 23:55:00",
        "11 00:00:00",
        "11 00:05:00",
    ]


@pytest.mark.promise("H14")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu", "Africa/Monrovia"])
def test_the_far_past_and_the_far_future_have_times(zone):
    trigger = Cron("0 12 * * *", tz=zone)
    for year in (1, 1600, 1899, 2500, 9998):
        after = datetime(year, 6, 1, tzinfo=ZoneInfo(zone))
        assert trigger.next_after(after) == after.replace(hour=12)
    assert trigger.next_after(datetime(9999, 6, 1, tzinfo=ZoneInfo("UTC"))) is None
    assert trigger.next_after(datetime(1, 1, 1, tzinfo=ZoneInfo("UTC"))) is not None
