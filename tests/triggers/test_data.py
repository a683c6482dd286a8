"""Triggers are values, and plain data brings them back."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime

import pytest

from wakeful.errors import InvalidTrigger
from wakeful.triggers import (
    ActiveHours,
    After,
    Chat,
    Cron,
    Every,
    Interval,
    Manual,
    Once,
    Ping,
    Trigger,
    Webhook,
    trigger_from_data,
)

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
ALL = [
    Every("5m"),
    Every(1.5, anchor=START),
    Every("7d", START, jitter=2.5, stagger="10m", max_runs=3, start=START, until="2027-01-01T00:00:00.250Z"),
    Every("1h", except_dates=["2026-12-25"], tz="Europe/Berlin"),
    Interval("5m"),
    Interval("5m", 5, active_hours=ActiveHours("22:00", "06:00", "local")),
    Cron("0 9 * * 1-5"),
    Cron("@Daily", tz="Europe/Berlin", except_dates=["2026-12-24", "2026-12-25"]),
    Cron("0 9 * * *", active_hours={"start": "09:00", "end": "24:00"}),
    Once(START),
    After("backup"),
    After("job_17", on="any"),
    Webhook(),
    Chat(),
    Manual(),
    Ping(),
    Ping(Cron("0 2 * * *", tz="UTC"), grace="30m"),
]
IDS = [repr(trigger)[:60] for trigger in ALL]


@pytest.mark.parametrize("trigger", ALL, ids=IDS)
def test_a_trigger_comes_back_from_json(trigger):
    again = trigger_from_data(json.loads(json.dumps(trigger.to_data())))
    assert again == trigger
    assert hash(again) == hash(trigger)
    assert again.to_data() == trigger.to_data()
    assert again.to_data()["type"] == trigger.type


@pytest.mark.parametrize("trigger", ALL, ids=IDS)
def test_a_trigger_survives_copying_and_pickling(trigger):
    for again in (copy.copy(trigger), copy.deepcopy(trigger), pickle.loads(pickle.dumps(trigger))):  # noqa: S301
        assert again == trigger
        assert again.next_slot(0) == trigger.next_slot(0)


@pytest.mark.parametrize("trigger", ALL, ids=IDS)
def test_a_trigger_is_shown_as_the_code_that_makes_it(trigger):
    assert eval(repr(trigger)) == trigger  # noqa: S307 - our own text


def test_triggers_differ_when_any_part_does():
    assert len(set(ALL)) == len(ALL)
    assert Every("60m") == Every("1h") != Interval("1h")
    assert Cron(" 0  9 * * *") == Cron("0 9 * * *")


@pytest.mark.parametrize("trigger", ALL, ids=IDS)
def test_a_trigger_never_changes(trigger):
    with pytest.raises(AttributeError, match="never changes"):
        trigger.tz = "UTC"
    with pytest.raises(AttributeError, match="never changes"):
        del trigger.type


def test_plain_data_is_short_and_readable():
    assert Every("5m", START).to_data() == {"type": "every", "interval": "5m", "anchor": "2026-01-01T09:00:00Z"}
    assert Cron("0 9 * * *", "UTC", jitter=5).to_data() == {
        "type": "cron",
        "expression": "0 9 * * *",
        "tz": "UTC",
        "jitter": 5,
    }


def test_at_is_another_word_for_once():
    assert trigger_from_data({"type": "at", "at": "2026-01-01T09:00:00Z"}) == Once(START)


@pytest.mark.parametrize(
    ("data", "field", "words"),
    [
        ({}, "type", 'needs a "type", one of when, cron, every'),
        ({"type": "evry"}, "type", "not 'evry'"),
        ({"type": ["cron"]}, "type", 'needs a "type"'),
        ("0 9 * * *", "type", 'needs a "type"'),
        ({"type": "cron"}, "expression", 'A trigger of type "cron" needs "expression"'),
        ({"type": "every"}, "interval", 'needs "interval"'),
        ({"type": "cron", "expression": "* * * * *", "timezon": "UTC"}, "timezon", 'has no "timezon"'),
        ({"type": "every", "interval": "5m", "jiter": 5}, "jiter", 'did you mean "jitter"'),
        ({"type": "webhook", "at": 5}, "at", "it takes nothing else"),
        ({"type": "after", "job": ""}, "job", "name or id of the job"),
        ({"type": "after", "job": "a", "on": "done"}, "on", '"success", "failure" or "any"'),
        ({"type": "ping", "schedule": {"type": "manual"}}, "schedule", "a trigger that repeats"),
        ({"type": "cron", "expression": 5}, "expression", "is a text"),
    ],
)
def test_wrong_data_is_refused_by_name(data, field, words):
    with pytest.raises(InvalidTrigger, match=words) as caught:
        trigger_from_data(data)
    assert caught.value.field == field


@pytest.mark.promise("D4")
@pytest.mark.parametrize("trigger", [After("backup"), Webhook(), Chat(), Manual()])
def test_external_triggers_never_fire_by_time(trigger):
    assert not trigger.timed
    assert trigger.next_after(START) is None
    assert trigger.upcoming(START, 5) == []
    assert trigger.next_slot(0) is trigger.latest_slot(0, 2**40) is trigger.period_at(0) is None
    assert trigger.count_slots(0, 2**40) == trigger.closed_slots(0, 2**40) == 0
    assert trigger.due_ms(7, job_id=1, rand=0.5) == 7
    assert isinstance(trigger, Trigger)


def test_silence_past_the_schedule_and_the_grace_has_a_deadline():
    ping = Ping(Every("24h"), grace="1h").resolved(1_000, "UTC")
    assert ping.deadline_after(1_000) == 1_000 + 25 * 3_600_000
    assert Ping(Interval("24h")).deadline_after(1_000) == 1_000 + 25 * 3_600_000
    assert Ping().deadline_after(1_000) is None
    assert Ping(Every("24h"), grace="1h").resolved(9_000, "UTC", keep=ping) == ping


@pytest.mark.parametrize("n", [-1, 1.5, True, None, "3"])
def test_upcoming_wants_a_whole_number(n):
    with pytest.raises(InvalidTrigger, match="n must be a whole number from 0"):
        Cron("* * * * *", tz="UTC").upcoming(START, n)
