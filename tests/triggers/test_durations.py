"""Durations: one number, one unit; errors in plain words."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import IntervalParseError
from wakeful.triggers import format_interval, interval_ms, parse_interval
from wakeful.triggers.durations import interval_data, interval_words

EXPECTED = 'Expected format: "{number}{unit}"'


@pytest.mark.promise("D7")
@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("1h", timedelta(hours=1)),
        ("1d", timedelta(days=1)),
        ("90m", timedelta(minutes=90)),
        ("007d", timedelta(days=7)),
        (" 5m\n", timedelta(minutes=5)),
        ("36500d", timedelta(days=36500)),
        ("1h30m", timedelta(minutes=90)),
        ("1d12h5s", timedelta(days=1, hours=12, seconds=5)),
        ("5min", timedelta(minutes=5)),
        ("1w", timedelta(days=7)),
        ("2weeks", timedelta(days=14)),
        ("1hour15minutes", timedelta(minutes=75)),
    ],
)
def test_a_number_and_a_unit_are_read(text, length):
    assert parse_interval(text) == length
    assert interval_ms(text) == length // timedelta(milliseconds=1)


@pytest.mark.promise("D7")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", f"Missing time unit. {EXPECTED}"),
        ("5.5m", "Decimal values are not supported"),
        ("0m", "Zero interval is not allowed"),
        ("-5m", "Negative intervals are not allowed"),
        ("5x", 'Invalid time unit "x". Valid units are: s, m, h, d'),
        ("30m1h", f'Units go from long to short, each once, such as "1h30m". {EXPECTED}'),
        ("1h1h", f'Units go from long to short, each once, such as "1h30m". {EXPECTED}'),
        ("", f"Interval is empty. {EXPECTED}"),
        ("   ", f"Interval is empty. {EXPECTED}"),
        ("0", f"Missing time unit. {EXPECTED}"),
        ("5,5m", "Decimal values are not supported"),
        (".5m", "Decimal values are not supported"),
        ("-5.5", "Negative intervals are not allowed"),
        ("\u22125m", "Negative intervals are not allowed"),
        ("5M", 'Invalid time unit "M". Valid units are: s, m, h, d'),
        ("5ms", 'Invalid time unit "ms". Valid units are: s, m, h, d'),
        ("5 m", f"Spaces are not allowed between number and unit. {EXPECTED}"),
        ("m", f"Missing number. {EXPECTED}"),
        ("+5m", f"Missing number. {EXPECTED}"),
        ("soon", f"Missing number. {EXPECTED}"),
        ("1d 12h", f'Units go from long to short, each once, such as "1h30m". {EXPECTED}'),
        ("1h30", f'Units go from long to short, each once, such as "1h30m". {EXPECTED}'),
        ("\u0665m", f"Only the digits 0 to 9 are supported. {EXPECTED}"),
        ("\uff15m", f"Only the digits 0 to 9 are supported. {EXPECTED}"),
        ("\u00b2m", f"Only the digits 0 to 9 are supported. {EXPECTED}"),
        ("36501d", "Interval is too long. The longest is 36500d"),
        ("9" * 5000 + "s", "Interval is too long. The longest is 36500d"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_is_expected(text, message):
    with pytest.raises(IntervalParseError) as caught:
        parse_interval(text)
    assert str(caught.value) == message
    assert caught.value.interval == text


@pytest.mark.promise("D7")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Interval is missing"),
        (True, "Interval is not a duration: True"),
        ([5], r"Interval is not a duration: \[5\]"),
        (b"5m", "Interval is not a duration"),
        (math.nan, "Interval is not a duration: nan"),
        (math.inf, "Interval is too long"),
        (-math.inf, "Interval is not a duration"),
        (0, "Zero interval is not allowed"),
        (0.0, "Zero interval is not allowed"),
        (timedelta(0), "Zero interval is not allowed"),
        (-1, "Negative intervals are not allowed"),
        (timedelta(seconds=-1), "Negative intervals are not allowed"),
        (timedelta(microseconds=999), "shorter than a millisecond"),
        (0.0001, "shorter than a millisecond"),
        (10**400, "Interval is too long"),
        (timedelta.max, "Interval is too long"),
    ],
)
def test_what_is_no_duration_is_refused(value, message):
    with pytest.raises(IntervalParseError, match=message):
        interval_ms(value)


@pytest.mark.promise("D7")
@pytest.mark.parametrize("value", [None, 5, 5.0, timedelta(minutes=5)])
def test_only_text_is_parsed(value):
    with pytest.raises(IntervalParseError):
        parse_interval(value)


@pytest.mark.parametrize(
    ("value", "ms"), [(1, 1000), (1.5, 1500), (0.001, 1), (timedelta(minutes=5), 300_000), (86_400, 86_400_000)]
)
def test_seconds_and_timedeltas_are_durations_too(value, ms):
    assert interval_ms(value) == ms


@pytest.mark.parametrize(
    ("ms", "text", "words", "every"),
    [
        (86_400_000, "1d", "1 day", "day"),
        (604_800_000, "7d", "7 days", "7 days"),
        (90_000, "90s", "90 seconds", "90 seconds"),
        (5_400_000, "90m", "90 minutes", "90 minutes"),
        (3_600_000, "1h", "1 hour", "hour"),
        (1500, "1.5s", "1.5 seconds", "1.5 seconds"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(ms, text, words, every):
    assert format_interval(ms) == text
    assert interval_words(ms) == words
    assert interval_words(ms, every=True) == every


@given(st.integers(1, 36_500 * 86_400_000))
def test_a_duration_comes_back_from_plain_data_to_the_millisecond(ms):
    assert interval_ms(interval_data(ms)) == ms


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text):
    with suppress(IntervalParseError):
        assert parse_interval(text) > timedelta(0)


@pytest.mark.parametrize("value", [5, timedelta(minutes=5), None])
def test_a_text_is_all_that_is_parsed_and_the_error_says_so(value):
    with pytest.raises(IntervalParseError, match=r'Expected a text such as "5m"$'):
        parse_interval(value)
