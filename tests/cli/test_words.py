"""Times and amounts as people read them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from wakeful.console.humanize import ago, ahead, brief, plain, relative, span, stamp

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
NOW = 1_794_738_600_000  # Sunday 2026-11-15 10:30 UTC
BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0ms"), (7, "7ms"), (999, "999ms"), (1_000, "1s"), (1_250, "1.2s"), (9_999, "10s"), (10_000, "10s"),
        (59_999, "59s"), (MINUTE, "1m"), (90 * SECOND, "1m 30s"), (2 * HOUR + 5 * MINUTE, "2h 5m"), (DAY, "1d"),
        (26 * HOUR, "1d 2h"), (400 * DAY, "400d"),
    ],
)  # fmt: skip
def test_an_amount_is_shown_in_its_two_largest_units(ms, text):
    assert span(ms) == text


@pytest.mark.parametrize(
    ("away", "text"),
    [
        (0, "now"), (500, "now"), (-500, "just now"), (250 * SECOND, "in 4m 10s"), (-3 * HOUR, "3h ago"),
        (-61_999, "1m 1s ago"),
    ],
)  # fmt: skip
def test_a_moment_is_shown_by_how_far_it_is(away, text):
    assert relative(NOW + away, NOW) == text


def test_where_space_is_short_one_unit_will_do():
    assert [ago(NOW - ms, NOW) for ms in (100, 90 * SECOND, 26 * HOUR)] == ["just now", "1m ago", "1d ago"]


def test_a_start_whose_time_has_passed_is_due():
    assert [ahead(NOW + ms, NOW) for ms in (-DAY, 0, 5 * SECOND)] == ["due", "due", "in 5s"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("away", "zone", "text"),
    [
        (HOUR, UTC, "11:30"),
        (HOUR + SECOND, UTC, "11:30:01"),
        (DAY, UTC, "Mon 10:30"),
        (-2 * DAY, UTC, "Fri 10:30"),
        (20 * DAY, UTC, "5 Dec 10:30"),
        (60 * DAY, UTC, "2027-01-14 10:30"),
        (HOUR, BERLIN, "12:30 CET (11:30 UTC)"),
        (14 * HOUR, BERLIN, "Mon 01:30 CET (00:30 UTC)"),
    ],
)
def test_a_moment_is_shown_in_as_few_words_as_say_which(away, zone, text):
    assert brief(NOW + away, zone, NOW) == text


def test_a_moment_in_full_names_its_zone():
    assert stamp(NOW, BERLIN) == "Sun 2026-11-15 11:30 CET (10:30 UTC)"
    assert stamp(NOW, ZoneInfo("America/Sao_Paulo")) == "Sun 2026-11-15 07:30 UTC-03 (10:30 UTC)"


def test_what_programs_print_cannot_steer_the_terminal():
    assert plain("a\x1b[2Jb\r\n  c\x00") == r"a\x1b[2Jb c\x00"
