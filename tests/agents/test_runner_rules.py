"""The pure rules of runners: paths, when limits end, and what a call means."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from wakeful.domains.agents.runners.paths import number_at, read_path, values_at
from wakeful.domains.agents.runners.reset_times import moment_of, reset_time
from wakeful.errors import InvalidJob

NOW = datetime(2026, 8, 5, 14, 0, tzinfo=UTC)  # a Wednesday


def ms(text):
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("You've hit your session limit · resets 3:45pm", "2026-08-05T15:45+00:00"),
        ("You've hit your session limit · resets 1pm", "2026-08-06T13:00+00:00"),
        ("weekly limit · resets Mon 12:00am", "2026-08-10T00:00+00:00"),
        ("hit your limit · resets Aug 23 at 4pm (America/Recife)", "2026-08-23T19:00+00:00"),
        ("out of extra usage · resets 1pm (Europe/Berlin)", "2026-08-06T11:00+00:00"),
        ("Claude AI usage limit reached|1786000000", "2026-08-06T07:06:40+00:00"),
        ("spend limit reached (daily; resets 2026-08-09 00:00 UTC)", "2026-08-09T00:00+00:00"),
        ("usage limit. Try again at 3:05 PM.", "2026-08-05T15:05+00:00"),
        ("or try again at Aug 9th, 2026 3:05 PM.", "2026-08-09T15:05+00:00"),
        ("Individual quota reached. Resets in 2h39m52s.", "2026-08-05T16:39:52+00:00"),
        ("Please retry in 12.3s", "2026-08-05T14:00:12.300+00:00"),
        ("Please try again in 2 hours", "2026-08-05T16:00+00:00"),
        ("Please retry after 2733 seconds", "2026-08-05T14:45:33+00:00"),
        ("try again later.", None),
        ("rate limited you. Retrying in 0.2 seconds...", None),  # the tool itself does
        ("resets in 9000 days", None),
        (f"try again in {'9' * 400} days", None),
        ("", None),
    ],
)
def test_a_limit_ends_when_the_tool_says_so(said, until):
    assert reset_time(said, int(NOW.timestamp() * 1000)) == (None if until is None else ms(until))


@pytest.mark.parametrize("value", [1_786_000_000, 1_786_000_000_000, "1786000000", "2026-08-06T07:06:40Z"])
def test_a_moment_is_read_in_seconds_milliseconds_and_iso(value):
    assert moment_of(value, int(NOW.timestamp() * 1000)) == 1_786_000_000_000


@pytest.mark.parametrize("value", [None, True, "soon", 5, [], 9e99, math.inf, -math.inf, math.nan, "9" * 400, 10**400])
def test_what_is_no_moment_ahead_is_none(value):
    assert moment_of(value, int(NOW.timestamp() * 1000)) is None


DATA = {"a": {"b": [{"c": 1}, {"c": 2}]}, "m": {"x": {"n": 3}, "y": {"n": 4}}, "__class__": "own"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b[0].c", [1]),
        ("a.b[-1].c", [2]),
        ("a.b[7].c", []),
        ("a.b.c", []),
        ("m.*.n", [3, 4]),
        ("a.__class__", []),
        ("__class__", ["own"]),
        ("nothing", []),
    ],
)
def test_a_path_leads_to_keys_and_places_never_to_attributes(path, found):
    assert values_at(DATA, path) == found


def test_numbers_of_every_value_are_summed_and_truth_is_no_number():
    assert number_at(DATA, "m.*.n") == 7
    assert number_at({"n": True}, "n") is None


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", ".a"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidJob, match="is not a path"):
        read_path(path)
