"""Schedules in words: what people type, and what it means."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful import InvalidTrigger, when
from wakeful.triggers import After, Chat, Cron, Every, Interval, Manual, Once, Ping, Webhook, to_ms, trigger_from_data
from wakeful.triggers.sentences import read_sentence
from wakeful.triggers.sentences.phrases import PHRASES, VOCABULARY
from wakeful.triggers.sentences.text import Text

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)  # a Sunday, 11:30 in Berlin
MADE = {
    "After": After, "Chat": Chat, "Cron": Cron, "Every": Every, "Interval": Interval, "Manual": Manual, "Once": Once,
    "Ping": Ping, "Webhook": Webhook,
}  # fmt: skip
FILE = Path(__file__).parent.parent / "data" / "phrasings.txt"
PHRASINGS = [
    tuple(line.split(" | ")) for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


@pytest.fixture(autouse=True)
def this_machine_is_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def read(text):
    return read_sentence(text, to_ms(NOW), "Europe/Berlin")


def on_the_wall(moment):
    return moment.astimezone(BERLIN).isoformat(sep=" ")[:19].removesuffix(":00")


def test_there_are_more_than_two_hundred_phrasings():
    assert len({text for text, *_ in PHRASINGS}) == len(PHRASINGS) > 200


@pytest.mark.promise("X29")
@pytest.mark.parametrize(("text", "trigger", "times"), PHRASINGS, ids=[text for text, *_ in PHRASINGS])
def test_a_phrasing_means_its_trigger_and_its_next_three_times(text, trigger, times):
    found = read(text)
    assert found == eval(trigger, MADE)  # noqa: S307 - a file of ours
    assert repr(found) == trigger
    stored = found.resolved(to_ms(NOW), "Europe/Berlin")
    assert (", ".join(map(on_the_wall, stored.upcoming(NOW, 3))) or "-") == times
    assert read(found.describe()) == found
    assert read(stored.describe()) == stored


@pytest.mark.promise("X29")
@pytest.mark.parametrize(
    "text",
    [
        "every 20 minutes", "every day at 09:00", "weekdays at 9am", "mondays and thursdays at 18:30",
        "every 2 hours between 08:00 and 20:00", "the 1st of every month at 06:00",
        "the last friday of the month at 17:00", "every january 15 at 12:00", "in 20 minutes", "tomorrow at 9",
        "next tuesday at 14:00", "2026-12-24 18:00",
    ],
)  # fmt: skip
def test_a_sentence_may_end_with_its_zone_and_is_read_in_any_case_and_spacing(text):
    found = read(f"{text} in Asia/Kathmandu")
    assert found.tz == "Asia/Kathmandu"
    assert read(f"  {text.upper()}\t in\n ASIA/KATHMANDU ") == found
    assert read(f"{text}, Asia/Kathmandu") == found
    assert when(text, now=NOW, tz="Asia/Kathmandu") == found


@pytest.mark.promise("X29")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wekdays at 9", r'not understood at "wekdays": did you mean "weekdays at 9"\?'),
        ("every 20 mintues", r'did you mean "every 20 minutes"\?'),
        ("evry day at 9", r'did you mean "every day at 9"\?'),
        ("weekdays", r'lacks a time of day: did you mean "weekdays at 09:00"\?'),
        ("monday", r'did you mean "monday at 09:00"\?'),
        ("monthly", r'did you mean "monthly on the 1st at 09:00"\?'),
        ("next week", r'write for example "next tuesday at 14:00"'),
        ("", "write for example"),
        ("jede stunde", 'write for example "every 20 minutes"'),
        ("weekdays at 9 in berlin", r'Unknown time zone "berlin": did you mean "Europe/Berlin"\?'),
        ("weekdays at 9 in Europe/Berln", r'did you mean "Europe/Berlin"\?'),
        ("weekdays at 9am in new york", r'Unknown time zone "new york": did you mean "America/New_York"\?'),
        ("weekdays at 9am London time", r'Unknown time zone "London": did you mean "Europe/London"\?'),
        ("weekdays at 9am PST", r'Unknown time zone "PST": abbreviations are ambiguous'),
        ("weekdays at 9am UTC+2", r'Unknown time zone "UTC\+2": did you mean "Etc/GMT-2"\?'),
        ("weekdays at 9am GMT-05:00", r'did you mean "Etc/GMT\+5"\?'),
        ("every dya at 9am", r'did you mean "every day at 9am"\?'),
        ("please run it every 5 minutes", r'did you mean "every 5 minutes"\?'),
        ("at one second", "not understood"),
        ("yesterday at 9", "write for example"),
        ("the 24th december at 18:00", "not understood"),
        ("weekdays at 9 and 17:30", "make a schedule for each"),
        ("every 2 weeks on monday at 9", 'such as "every 14 days since 2026-01-05 09:00"'),
        ("fridays falling on the 13th at 9", "only of the 1st and of Sundays"),
        ("every 7 minutes on mondays", "no clock repeats evenly: say 6 minutes or 10 minutes, or only"),
        ("every 45 minutes by the clock", 'say 30 minutes, or only "every 45m", with active_hours'),
        ("every 90 minutes by the clock", "say 1 hour or 2 hours, or only"),
        ("every 30 minutes 8am-6pm mon-fri", r'did you mean "every 30 minutes from 8am to 6pm mon-fri"\?'),
        ("every 30 minutes 8am-6pm", r'did you mean "every 30 minutes from 8am to 6pm"\?'),
        ("every 30 minutes 8h30", "write for example"),  # not "every 30 minutes", which means another time
        ("daily at 25:00", "25:00 is no time of day: write one from 00:00 to 23:59"),
        ("every day at 7:75", "7:75 is no time of day"),
        ("every day at 9 every hour", "says both times of day and a rhythm"),
        ("today at 9", "has passed: it is 11:30 now; write tomorrow 09:00"),
        ("2026-03-29 02:30", "2026-03-29 02:30 does not exist in Europe/Berlin"),
        ("every 0 minutes", "Zero interval is not allowed"),
        ("every 40000 days", "The longest is 36500d"),
        ("every day at 24:00", "write 00:00"),
        ("every day at 9, up to 50 % later", "jitter must be a percentage from 0 to 10"),
        ("every hour until 2020-01-01 from 2026-01-01", "lies before start"),
        ("manually at 9", "says a time of something that has none"),
        ("weekdays at 09:00 (cron 0 8 * * 1-5)", 'says something else than its cron expression, which is "weekdays'),
        ("every hour, 2h of grace", "goes with"),
        ("mondays since 2026-01-01", "counts from a moment"),
        ("in 900000 weeks", "is out of reach"),
        ("feb 30 at 9", "is a date that no year has"),
        ("every hour until february 30 at 9", "is a date that no year has"),
        ("after 20 minutes", r'is not about another job: did you mean "in 20 minutes"\?'),
        ("after midnight", r'did you mean "at midnight"\?'),
        ("after each run", r'did you mean "20 minutes after the last run ends"\?'),
        ("after the last run ends", r'did you mean "20 minutes after the last run ends"\?'),
        ("every morning at 12", "says 12:00 in the morning: say one of the two"),
        ("every evening at 9am", "says 09:00 in the evening"),
        ("every evening at 2", "says 02:00 in the evening"),
        ("9pm in the morning", "says 21:00 in the morning"),
        ("every day at noon in the evening", "says 12:00 in the evening"),
        ("tonight at 9am", "says 09:00 at night"),
        ("tomorrow morning at 9pm", "says 21:00 in the morning"),
        ("every hour in the morning", "has a part of the day: say from when to when"),
        ("every 20 minutes in the evening", "has a part of the day: say from when to when"),
        ("every quarter at 9", r'lacks a day of the month: did you mean "every quarter at 9 on the 1st"\?'),
        ("every 6 months", r'did you mean "every 6 months on the 1st at 09:00"\?'),
        ("every january at 9", r'did you mean "every january at 9 on the 1st"\?'),
        ("every second monday at 9", "a day of every month or of every few weeks"),
        ("every third friday at 9", "a day of every month or of every few weeks"),
        ("every hour between 9 and 5", 'ends before it begins: write "09:00 to 17:00"'),
        ("every 5 minutes only 9-5", 'ends before it begins: write "09:00 to 17:00"'),
        ("3 times at 9", "has one time for several runs"),
        ("every day at 9, 3 times, at most 4 runs", "says the same thing twice"),
        ("nightly", r'did you mean "nightly at 21:00"\?'),
        ("tonight", r'did you mean "tonight at 21:00"\?'),
        ("every afternoon", r'did you mean "every afternoon at 15:00"\?'),
        ("every hour until 17", 'write for example "every hour on the hour"'),
        ("every monday at 9 until christmas", 'write for example "every day at 09:00"'),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_the_nearest_sentence_or_the_reason(text, words):
    with pytest.raises(InvalidTrigger, match=words):
        read(text)


@pytest.mark.promise("X29")
@pytest.mark.parametrize("text", [text for text, *_ in PHRASINGS if not text.startswith(("after", "when"))])
def test_a_sentence_in_capital_letters_means_the_same(text):
    assert read(text.upper()) == read(text)


@pytest.mark.promise("X29")
def test_every_abbreviation_of_a_zone_is_read_back():
    for name in sorted(available_timezones() - {"localtime"}):
        for month in (1, 7):
            trigger = Once(datetime(2026, month, 15, 9, 30, tzinfo=UTC), tz=name)
            assert when(trigger.describe()) == trigger, trigger.describe()


@pytest.mark.parametrize("text", [None, 5, b"every day", ["every day"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(InvalidTrigger, match="is a text such as"):
        when(text)


@pytest.mark.promise("X29")
def test_a_cron_expression_and_a_rhythm_are_different_schedules_with_different_sentences():
    assert Cron("*/5 * * * *").describe() == "every 5 minutes by the clock"
    assert Every("5m").describe() == "every 5 minutes"
    assert when("every 5 minutes") == Every("5m")
    assert when("every 5 minutes by the clock") == Cron("*/5 * * * *")


def test_expressions_that_mean_the_same_are_equal_and_keep_how_they_are_written():
    assert Cron("0 9 * * MON-FRI") == Cron("0 9 * * 1-5")
    assert hash(Cron("0 9 * * MON-FRI")) == hash(Cron("0 0 9 ? * 1-5"))
    assert Cron("0 */2 * * *") != Cron("0 0-22/2 * * *")  # they differ when clocks change
    stored = Cron("0 9 * * 1-5", tz="UTC")
    assert Cron("0 9 * * MON-FRI").resolved(0, "Asia/Tokyo", keep=stored).to_data()["expression"] == "0 9 * * MON-FRI"


def test_a_relative_time_is_settled_when_it_is_stored():
    soon = when("in 20 minutes")
    assert soon.describe() == "in 20 minutes"
    assert soon == when("in  20 minutes") != when("in 21 minutes")
    assert soon.next_after(NOW) == datetime(2026, 11, 15, 10, 50, tzinfo=UTC)
    assert soon.resolved(to_ms(NOW), "Asia/Tokyo") == Once("2026-11-15T10:50:00Z")
    assert trigger_from_data(soon.to_data()) == soon
    assert when("tomorrow at 9").resolved(to_ms(NOW), "Asia/Tokyo") == Once("2026-11-16T00:00:00Z", tz="Asia/Tokyo")
    there = when("tomorrow at 9", tz="Asia/Tokyo")
    assert there.resolved(to_ms(NOW), "Europe/Berlin") == Once("2026-11-16T00:00:00Z", tz="Asia/Tokyo")
    assert trigger_from_data(there.to_data()) == there == when("tomorrow at 9", tz="Asia/Tokyo")
    until = when("every hour until 2026-12-24 18:00")
    assert until.resolved(to_ms(NOW), "Europe/Berlin") == Every(
        "1h", NOW, tz="Europe/Berlin", until="2026-12-24T17:00:00Z"
    )


def test_a_mistake_in_a_relative_time_is_found_at_once():
    with pytest.raises(InvalidTrigger, match="says two schedules"):
        when("tomorrow at 9 every hour")


def test_a_list_leaves_out_from_when_every_counts():
    stored = Every("5m", max_runs=3).resolved(to_ms(NOW), "UTC")
    assert stored.describe() == "every 5 minutes since 2026-11-15 10:30 UTC, at most 3 runs"
    assert stored.brief() == "every 5 minutes, at most 3 runs"
    assert when(stored.brief()).resolved(to_ms(NOW) + 60_000, "UTC", keep=stored) == stored
    assert Ping(Every("5m", NOW)).brief() == "expected to report in every 5 minutes, 1h of grace"


WORDS = st.sampled_from(
    [*sorted(VOCABULARY), *(text for text, *_ in PHRASINGS), ",", "(", ")", ":15", "9", "monday", "march", "1st", "5%",
     "hours", "2026-12-24", "UTC", "Europe/Berlin", "\u2026", "\u2013", '"', "*", "/", "0", "99999999999999999999"]
)  # fmt: skip


@pytest.mark.promise("X29")
@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=30).map(" ".join)))
def test_any_text_is_a_trigger_or_is_refused(text):
    try:
        found = read(text)
    except InvalidTrigger as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert read(found.describe()) == found


@pytest.mark.promise("X29")
@pytest.mark.parametrize(
    "text",
    [
        "monday, ", "at 9, ", "every ", "the 1st, ", "2026-12-24, ", "1 hour and ", "a", "((((", "9 ", "1h",
        "except 2026-12-24 to 2026-12-26, ", "january, ", "cron ", "* ", "(cron ", '"', "last ", ":15, ", "in ",
        "Europe/", "1 2 ", "every 2 hours between 8 and 20 ",
    ],
)  # fmt: skip
def test_reading_takes_time_in_proportion_to_the_text(text):
    def seconds(length):
        given_text = "every day except 2026-01-01, " * (text.startswith("2026")) + text * (length // len(text))
        begin = time.perf_counter()
        for _ in range(3):
            with pytest.raises(InvalidTrigger):  # none of them is a schedule
                read(f"{given_text} x?")
        return time.perf_counter() - begin

    seconds(1_000)
    short = seconds(10_000)
    assert seconds(80_000) < 16 * short + 0.5


def test_a_text_that_is_too_long_is_refused():
    with pytest.raises(InvalidTrigger, match="at most 100000 characters"):
        when("every day " * 20_000)


def rows_used(text):
    words, index = Text(text), 0
    while index < len(words):
        found = next(((phrase, hit[1]) for phrase in PHRASES if (hit := phrase.read(words, index))), None)
        if found:
            yield found[0].form
        index = found[1] if found else index + 1


def test_every_row_of_the_grammar_is_used_by_one_of_the_phrasings():
    used = {form for text, *_ in PHRASINGS for form in rows_used(text)}
    assert [phrase.form for phrase in PHRASES if phrase.form not in used] == []
