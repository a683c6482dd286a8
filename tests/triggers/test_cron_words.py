"""How triggers read in a listing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given

from tests.triggers.strategies import EXPRESSIONS
from wakeful.triggers import After, Chat, Cron, Every, Interval, Manual, Once, Ping, Webhook


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute by the clock"),
        ("*/5 * * * *", "every 5 minutes by the clock"),
        ("*/30 * * * *", "every 30 minutes by the clock"),
        ("*/7 * * * *", "every hour at :00, :07, :14 … :56"),
        ("5,35 * * * *", "every hour at :05 and :35"),
        ("0 * * * *", "every hour on the hour"),
        ("30 * * * *", "every hour on the half hour"),
        ("15 * * * *", "every hour at :15"),
        ("0 */2 * * *", "every 2 hours by the clock"),
        ("15 */2 * * *", "every 2 hours at :15"),
        ("5,35 */2 * * *", "every 2 hours at :05 and :35"),
        ("*/10 */2 * * *", "every 10 minutes of every 2nd hour"),
        ("0 */6 * * *", "every 6 hours by the clock"),
        ("0 0,6,12,18 * * *", "every day at 00:00, 06:00, 12:00 and 18:00"),
        ("0 8-20/2 * * *", "every 2 hours from 08:00 to 20:00"),
        ("30 8-18 * * *", "every hour from 08:30 to 18:30"),
        ("*/30 9 * * *", "every 30 minutes from 09:00 to 09:30"),
        ("0 */5 * * *", "every day at 00:00, 05:00, 10:00, 15:00 and 20:00 (cron 0 */5 * * *)"),
        ("0 0-23 * * *", "every hour on the hour (cron 0 0-23 * * *)"),
        ("0 9-17 * * 1-5", "every hour from 09:00 to 17:00 on weekdays"),
        ("*/10 8-18 * * *", "every 10 minutes from 08:00 to 18:50"),
        ("34,38 12-17 * * 6", "every hour at :34 and :38 from 12:34 to 17:38 on Saturdays"),
        ("*/20 8,12,18 * * *", "every 20 minutes in the hours 08, 12 and 18"),
        ("* 9 * * *", "every minute from 09:00 to 09:59"),
        ("*/5 * * 3 *", "every 5 minutes in March"),
        ("30 2 * * *", "every day at 02:30"),
        ("4,37 12 * * *", "every day at 12:04 and 12:37"),
        ("0 9 * * 1-5", "weekdays at 09:00"),
        ("0 9 * * MON-FRI", "weekdays at 09:00"),
        ("0 9 * * 6,7", "weekends at 09:00"),
        ("0 9 * * 1", "Mondays at 09:00"),
        ("0 9 * * 1,3,5", "Mondays, Wednesdays and Fridays at 09:00"),
        ("0 9 * * 5-7", "Fridays to Sundays at 09:00"),
        ("0 9 * 1,7 1", "Mondays in January and July at 09:00"),
        ("0 6 * 3-5 *", "every day from March to May at 06:00"),
        ("@monthly", "on the 1st of every month at 00:00"),
        ("@yearly", "on the 1st of January at 00:00"),
        ("@weekly", "Sundays at 00:00"),
        ("0 12 1,15 * *", "on the 1st and 15th of every month at 12:00"),
        ("0 0 1 */3 *", "on the 1st of January, April, July and October at 00:00"),
        ("0 0 1-7 * *", "on the 1st to 7th of every month at 00:00"),
        ("0 0 */2 * *", "on the 1st, 3rd, 5th … 31st of every month at 00:00"),
        ("0 0 L * *", "on the last day of every month at 00:00"),
        ("0 0 L-3 * *", "on the 4th-to-last day of every month at 00:00"),
        ("0 0 LW * *", "on the last weekday of every month at 00:00"),
        ("0 0 15W,L * *", "on the weekday nearest the 15th and the last day of every month at 00:00"),
        ("0 9 * * FRIL", "on the last Friday of every month at 09:00"),
        ("0 9 * * 2#3", "on the third Tuesday of every month at 09:00"),
        ("0 9 1 * 5", "on the 1st of every month and on Fridays at 09:00"),
        ("0 0 29 2 1", "on the 29th and on Mondays in February at 00:00"),
        ("0 9 1 * 0-6", "every day at 09:00"),
        ("0 9 1-31 * 1", "every day at 09:00"),
        ("0 9 */2 * MON,5L", "Mondays and the last Friday falling on the 1st, 3rd, 5th … 31st of every month at 09:00"),
        ("0 9 */2 * MON", "Mondays falling on the 1st, 3rd, 5th … 31st of every month at 09:00"),
        ("* * * * * *", "every second by the clock"),
        ("*/15 * * * * *", "every 15 seconds by the clock"),
        ("*/15 * 9-17 * * *", "every 15 seconds from 09:00 to 17:59"),
        ("30 0 9 * * *", "every day at 09:00:30"),
        ("30 */5 * * * *", "every 5 minutes, at second 30"),
        ("*/10 30 9 * * *", "every day at 09:30, every 10 seconds of the minute"),
        ("1-5 * * * * *", "every minute, at seconds 1 to 5 of the minute"),
    ],
)
def test_an_expression_reads_as_people_say_it(expression, words):
    assert Cron(expression).describe() == words
    assert Cron(expression, tz="Europe/Berlin").describe() == f"{words}, Europe/Berlin"


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        (Every("5m"), "every 5 minutes"),
        (Every("1h"), "every hour"),
        (Every("7d"), "every 7 days"),
        (Interval("5m"), "5 minutes after the last run ends"),
        (Interval("1h", 5), "1 hour after the last run ends, up to 5 % later"),
        (Once("2026-01-01T09:00:00Z"), "once at 2026-01-01 09:00 UTC"),
        (Once("2026-01-01T09:00:30Z"), "once at 2026-01-01 09:00:30 UTC"),
        (Once("2026-01-01T09:00:30.250Z"), "once at 2026-01-01 09:00:30.250 UTC"),
        (Once("2026-01-01T09:00:00Z", tz="UTC"), "once at 2026-01-01 09:00, UTC"),
        (
            Once("2026-01-01T23:00:00Z", tz="Europe/Berlin"),
            "once at 2026-01-02 00:00 CET (2026-01-01 23:00 UTC), Europe/Berlin",
        ),
        (Every("5m", "2026-01-01T09:00:00Z"), "every 5 minutes since 2026-01-01 09:00 UTC"),
        (Every(1234.567), "every 1234.567 seconds"),
        (After("a  b"), 'after "a  b" succeeds'),
        (Ping(grace="2h"), "when it reports in, 2h of grace"),
        (After("backup"), "after backup succeeds"),
        (After("backup", on="failure"), "after backup fails"),
        (After("backup", on="any"), "after backup ends"),
        (Webhook(), "when its webhook is called"),
        (Chat(), "when a chat message arrives"),
        (Manual(), "only when asked to"),
        (Ping(), "when it reports in"),
        (Ping(Every("24h"), "1h"), "expected to report in every day, 1h of grace"),
        (
            Cron("0 9 * * 1-5", tz="Europe/Berlin", max_runs=1, except_dates=["2026-12-25"]),
            "weekdays at 09:00, Europe/Berlin, except 2026-12-25, one run only",
        ),
        (
            Every(
                "1h",
                stagger="10m",
                active_hours={"start": "22:00", "end": "6:00", "timezone": "Asia/Shanghai"},
                start=datetime(2026, 1, 1, tzinfo=UTC),
                until="2026-02-01T00:00:00Z",
                max_runs=9,
                except_dates=[f"2026-01-0{day}" for day in range(1, 6)],
            ),
            (
                "every hour, only 22:00\u201306:00 Asia/Shanghai, "
                "except 2026-01-01 to 2026-01-05, "
                "from 2026-01-01 00:00 UTC, until 2026-02-01 00:00 UTC, at most 9 runs, staggered over 10m"
            ),
        ),
    ],
)
def test_a_trigger_reads_as_people_say_it(trigger, words):
    assert trigger.describe() == words


@given(EXPRESSIONS)
def test_every_expression_has_words(expression):
    words = Cron(expression).describe()
    assert words == words.strip()
    assert "  " not in words
    assert "[]" not in words
