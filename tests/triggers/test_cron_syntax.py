"""What an expression may say, and how a wrong one is refused."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import InvalidTrigger
from wakeful.triggers import Cron

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def upcoming(expression, n=3):
    return [f"{moment:%m-%d %H:%M:%S}" for moment in Cron(expression, tz="UTC").upcoming(NEW_YEAR, n)]


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "same_as"),
    [
        ("  0   9\t* *  1-5 \n", "0 9 * * 1-5"),
        ("0 9 * * mon-FRI", "0 9 * * 1-5"),
        ("0 0 1 jan,Mar-MAY *", "0 0 1 1,3,4,5 *"),
        ("0 9 * * 5-7", "0 9 * * 0,5,6"),
        ("0 9 * * FRI-SUN", "0 9 * * 0,5,6"),
        ("0 9 * * SUN-TUE", "0 9 * * 0-2"),
        ("0 9 * * 0-7", "0 9 * * *"),
        ("0 9 * * 7", "0 9 * * 0"),
        ("0 9 * * 1-7/2", "0 9 * * 0,1,3,5"),
        ("0 9 * * 1/2", "0 9 * * 0,1,3,5"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("10-30/10 * * * *", "10,20,30 * * * *"),
        ("*/60 * * * *", "0 * * * *"),
        ("05 009 * * *", "5 9 * * *"),
        ("0 5 9 * * *", "5 9 * * *"),
        ("0 9 ? * 1", "0 9 * * 1"),
        ("0 9 1 * ?", "0 9 1 * *"),
        ("0 9 ? * ?", "0 9 * * *"),
        ("0 9 l * *", "0 9 L * *"),
        ("0 9 lw * *", "0 9 LW * *"),
        ("0 9 15w * *", "0 9 15W * *"),
        ("0 9 * * fril", "0 9 * * 5L"),
        ("0 9 * * 7l", "0 9 * * SUNL"),
        ("0 9 * * tue#3", "0 9 * * 2#3"),
        ("0 9 * * 7#1", "0 9 * * SUN#1"),
    ],
)
def test_one_meaning_may_be_written_in_several_ways(expression, same_as):
    assert upcoming(expression, 40) == upcoming(same_as, 40)


@pytest.mark.promise("D3", "H14")
@pytest.mark.parametrize(
    ("shorthand", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        (" @Daily ", "0 0 * * *"),
        ("@HOURLY", "0 * * * *"),
    ],
)
def test_shorthands_stand_for_expressions_in_any_case(shorthand, expression):
    assert upcoming(shorthand) == upcoming(expression)


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 L * *", ["01-31", "02-28", "03-31"]),
        ("0 0 L-3 * *", ["01-28", "02-25", "03-28"]),
        ("0 0 L-30 * *", ["03-01", "05-01", "07-01"]),  # the moment itself, 01-01, is not after itself
        ("0 0 LW * *", ["01-30", "02-27", "03-31"]),
        ("0 0 15W * *", ["01-15", "02-16", "03-16"]),  # a Sunday goes to Monday
        ("0 0 1W 2,8 *", ["02-02", "08-03", "02-01"]),  # the 1st a Saturday: not back into July
        ("0 0 31W 1,4,5 *", ["01-30", "05-29", "01-29"]),  # April has no 31st; a Sunday at the end goes back
        ("0 0 1,15W,L * *", ["01-15", "01-31", "02-01"]),
        ("0 0 * * 5L", ["01-30", "02-27", "03-27"]),
        ("0 0 * * 2#3", ["01-20", "02-17", "03-17"]),
        ("0 0 * * MON#5", ["03-30", "06-29", "08-31"]),
        ("0 0 13 * 5", ["01-02", "01-09", "01-13"]),  # both restricted: either
        ("0 0 */10 * 1", ["05-11", "06-01", "08-31"]),  # a step with the other restricted: both
        ("0 0 13 * */3", ["05-13", "06-13", "09-13"]),  # Sunday, Wednesday or Saturday the 13th
        ("0 0 */10 * */3", ["01-11", "01-21", "01-31"]),
        ("0 0 ? * 1", ["01-05", "01-12", "01-19"]),
        ("0 0 *,5 * 1", ["01-05", "01-12", "01-19"]),  # begins with a star: not restricted
    ],
)
def test_days_are_named_in_many_ways(expression, expected):
    assert [moment[:5] for moment in upcoming(expression)] == expected


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "field", "reason"),
    [
        ("60 * * * *", "minute", '"60" is out of range: use 0 to 59'),
        ("* 24 * * *", "hour", '"24" is out of range: use 0 to 23'),
        ("* * 0 * *", "day of month", '"0" is out of range: use 1 to 31'),
        ("* * 32 * *", "day of month", '"32" is out of range'),
        ("* * * 13 *", "month", '"13" is out of range: use 1 to 12 or JAN to DEC'),
        ("* * * * 8", "day of week", '"8" is out of range: use 0 to 7 or SUN to SAT'),
        ("60 * * * * *", "second", '"60" is out of range'),
        ("1,61 * * * *", "minute", '"61" is out of range'),
        ("99999999999999999999 * * * *", "minute", "is not understood"),
        ("* * * * MONDAY", "day of week", '"MONDAY" is not understood: use 0 to 7 or SUN to SAT'),
        ("* * * 1-FOO *", "month", '"1-FOO" is not understood'),
        ("? * * * *", "minute", r"\? can only be used alone, for a day"),
        ("* * 1,? * *", "day of month", r"\? can only be used alone"),
        ("* * ?/2 * *", "day of month", r"\? can only be used alone"),
        ("* 22-2 * * *", "hour", '"22-2" runs past the end: write 22-23,0-2'),
        ("50-10/20 * * * *", "minute", "runs past the end: write 50,10"),
        ("* * 25-5 * *", "day of month", "write 25-31,1-5"),
        ("* * * NOV-FEB *", "month", "write 11-12,1-2"),
        ("* * * * SAT-MON", "day of week", "write 6-7,1"),
        ("* * * * 5-0", "day of week", "write 5-7"),
        ("* * * * 7-2", "day of week", "write 0-2"),
        ("*/61 * * * *", "minute", "has a step larger than its range of 60"),
        ("0-5/7 * * * *", "minute", "has a step larger than its range of 6"),
        ("50/11 * * * *", "minute", "has a step larger than its range of 10"),
        ("*/0 * * * *", "minute", "has a step of 0"),
        ("*/x * * * *", "minute", "has a step that is no whole number"),
        ("*/5/2 * * * *", "minute", "has a step that is no whole number"),
        ("1,,2 * * * *", "minute", '"" is not understood'),
        ("1-2-3 * * * *", "minute", "is not understood"),
        ("-5 * * * *", "minute", "is not understood"),
        ("+5 * * * *", "minute", "is not understood"),
        ("5.5 * * * *", "minute", "is not understood"),
        ("\u0665 * * * *", "minute", "is not understood"),
        ("\uff15 * * * *", "minute", "is not understood"),
        ("* * * * fr\u0131", "day of week", "is not understood"),
        ("* * * * \u017fun", "day of week", "is not understood"),
        ("* * L-31 * *", "day of month", "L-1 to L-30"),
        ("* * L-0 * *", "day of month", "L-1 to L-30"),
        ("* * W * *", "day of month", "is not understood"),
        ("* * 32W * *", "day of month", "is out of range"),
        ("* * 1-5W * *", "day of month", "is not understood"),
        ("* * * * L", "day of week", "needs a weekday: 5L or FRIL"),
        ("* * * * 1#6", "day of week", "a weekday, # and 1 to 5"),
        ("* * * * 1#", "day of week", "a weekday, # and 1 to 5"),
        ("* * * L *", "month", "is not understood"),
        ("H * * * *", "minute", "is not understood"),
        ("* * * *", "expression", "has 4 fields: expected 5 .* or 6 with seconds first"),
        ("* * * * * * 2026", "expression", r"has 7 fields \(years are not supported\)"),
        ("*", "expression", "has 1 field:"),
        ("", "expression", "is empty"),
        (" \n", "expression", "is empty"),
        ("@reboot", "expression", "is not a time: start the job when your program starts"),
        ("@REBOOT", "expression", "is not a time"),
        ("@every 5m", "expression", r'use Every\("5m"\)'),
        ("@fortnightly", "expression", "use one of @yearly"),
        ("@", "expression", "use one of @yearly"),
        ("*" * 2000, "expression", "at most 1024 characters"),
    ],
)
def test_a_wrong_expression_is_refused_with_the_field_and_the_reason(expression, field, reason):
    with pytest.raises(InvalidTrigger, match=reason) as caught:
        Cron(expression)
    assert caught.value.field == field
    assert str(caught.value).endswith((".", "?"))


@pytest.mark.promise("H14")
@pytest.mark.parametrize("expression", [None, 5, ["* * * * *"], b"* * * * *", {}])
def test_an_expression_is_text(expression):
    with pytest.raises(InvalidTrigger, match="A cron expression is a text"):
        Cron(expression)


@pytest.mark.promise("H14")
@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2", "0 0 L-30 2 *"])
def test_what_never_comes_has_no_time(expression):
    trigger = Cron(expression, tz="Europe/Berlin")
    assert trigger.next_after(NEW_YEAR) is None
    assert trigger.upcoming(NEW_YEAR, 5) == []
    assert trigger.count_slots(0, 2**41) == 0
    assert trigger.latest_slot(0, 2**41) is None
    assert trigger.min_gap_ms() is None


@pytest.mark.promise("H14")
def test_a_time_that_always_falls_into_a_gap_is_not_waited_for_for_ever():
    never = Cron("*/10 2 ? 3 SUNL", tz="Europe/Berlin")
    assert never.next_after(datetime(2026, 3, 1, tzinfo=UTC)) is None


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 29 2 *", 2096, 2104),
        ("37 13 ? 2 MON#5", 2072, 2112),
        ("0 0 29 2 */6", 2076, 2088),  # Sunday or Saturday
    ],
)
def test_gaps_of_forty_years_are_searched(expression, after, expected):
    found = Cron(expression, tz="America/New_York").next_after(datetime(after, 3, 1, tzinfo=UTC))
    assert found.year == expected


@pytest.mark.promise("H14")
def test_seconds_come_first_in_six_fields():
    assert upcoming("*/20 30 9 * * *", 4) == ["01-01 09:30:00", "01-01 09:30:20", "01-01 09:30:40", "01-02 09:30:00"]
    assert upcoming("5 0 0 1 1 *", 1) == ["01-01 00:00:05"]
    trigger = Cron("* * * * * *", tz="UTC")
    assert trigger.next_after(NEW_YEAR + timedelta(milliseconds=1)) == NEW_YEAR + timedelta(seconds=1)


@given(st.text("0123456789*/,-LW#?@ SUNMOTEFRI\u0665", max_size=30))
def test_any_text_is_understood_or_refused(text):
    with suppress(InvalidTrigger):
        found = Cron(text, tz="UTC").next_after(NEW_YEAR)
        assert found is None or found > NEW_YEAR
