"""`/api/schedule` says all that jobs take: modifiers of the time, and options; for sessions and agents."""

from __future__ import annotations

import json

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful.config.entries import MODIFIERS as OF_JOBS
from wakeful.config.entries import OPTIONS
from wakeful.domains.agents import schedules
from wakeful.domains.agents.routes.schedules import options_of, shape
from wakeful.domains.agents.routes.timing_models import Timing, TimingOut
from wakeful.domains.agents.schedules import ScheduleSpec
from wakeful.domains.agents.task import Task
from wakeful.domains.agents.timing import MODIFIERS, camel, is_same, read_timing, timing_of
from wakeful.errors import IntervalParseError, InvalidJob, InvalidTrigger
from wakeful.kernel.context import Rights
from wakeful.kernel.rules.options import OPTION_NAMES, as_written, from_text
from wakeful.routing import json_schema
from wakeful.routing.problems import ApiError

pytestmark = pytest.mark.promise("C1")

NOW = 1_767_225_600_000  # 2026-01-01
ADA = Rights("ada", via="api", admin_kinds=True, priority=True)
EVERY = {"type": "every", "intervalMinutes": 60}
SAID = {
    "anchor": "2026-01-01T00:10:00Z", "on": "failure", "start": "2026-02-01T00:00:00Z", "until": "2026-03-01T00:00:00Z",
    "maxRuns": 3, "except": ["2026-12-24"], "activeHours": {"start": "09:00", "end": "17:00", "timezone": "UTC"},
    "jitter": 5.0, "stagger": "10m",
}  # fmt: skip


def test_what_travels_are_all_modifiers_and_options_of_jobs():
    assert set(MODIFIERS.values()) == set(OF_JOBS)
    fields = {field.alias or name for name, field in Timing.model_fields.items()}
    assert set(MODIFIERS) <= fields
    shown = {field.alias or name for name, field in TimingOut.model_fields.items()}
    assert fields - shown == {"anchor", "words"}  # when it was made, unless given; words are stored as what they mean
    ways = {key for one in json_schema.TIMING["anyOf"] for key in one["properties"]}
    assert set(MODIFIERS) <= ways
    assert {camel(name) for name in OPTIONS} <= set(json_schema.SCHEDULE_OPTIONS["properties"])
    with pytest.raises(ApiError, match="options has no 'catch_up': known are approval, backoff, catchUp,"):
        options_of({"catch_up": "skip"})
    assert set(options_of({camel(name): 1 for name in OPTION_NAMES})) == set(OPTION_NAMES) - {"bounded"}


@pytest.mark.parametrize("key", SAID)
def test_each_modifier_is_read_and_shown_as_it_was_written(key):
    timing = {"type": "after", "job": "backup"} if key == "on" else EVERY
    trigger = read_timing({**timing, key: SAID[key]}, NOW, None)
    assert trigger.to_data()[MODIFIERS[key]] == SAID[key]
    if key != "anchor":
        assert timing_of(trigger, "UTC") == {**timing, key: SAID[key]}
        assert is_same({**timing, key: SAID[key]}, trigger.resolved(NOW, "UTC"), NOW + 1, "UTC")
        assert key == "on" or not is_same(timing, trigger, NOW, "UTC")


def test_an_interval_that_is_written_again_with_its_modifiers_does_not_begin_anew():
    timing = {
        "type": "interval",
        "intervalMinutes": 90,
        "until": "2026-03-01T01:00:00+01:00",
        "activeHours": {"start": "09:00", "end": "17:00"},
    }
    stored = read_timing(timing, NOW, None).resolved(NOW, "Europe/Berlin")
    assert is_same(timing, stored, NOW + 1_000_000, "Europe/Berlin")
    assert not is_same({**timing, "start": "2026-01-02T00:00:00Z"}, stored, NOW, "Europe/Berlin")
    assert not is_same({**timing, "intervalMinutes": 0}, stored, NOW, "Europe/Berlin")


def test_what_does_not_go_with_a_type_is_refused():
    with pytest.raises(InvalidTrigger, match='"after" has no "jitter"'):
        read_timing({"type": "after", "job": "x", "jitter": 5}, NOW, None)
    with pytest.raises(InvalidTrigger, match='"cron" has no "job"'):
        read_timing({"type": "cron", "expression": "@daily", "job": "x"}, NOW, None)


def job_of(tx, slug):
    job = tx.jobs.by_name(slug)[0]
    return json.loads(job.payload), as_written(from_text(job.options))


@virtual
async def test_a_schedule_of_an_agent_is_written_changed_and_read_with_its_options(scene, agents):
    async with agents.scheduler_with({"a": agent(labels=["here"])}) as scheduler:
        given = {
            "timeout": "10m", "catchUp": "skip", "lanes": {"gpu": 2, "agent:a": 9}, "labels": ["big"], "priority": 3,
            "deliver": "phone", "hooks": {"to": "ci", "on": "failure"},
        }  # fmt: skip

        def put(tx, context, options):
            spec = ScheduleSpec(Task("Count."), {**EVERY, "jitter": 5}, None, "a", options_of(options))
            return schedules.put(tx, context, "tally", spec)[0], job_of(tx, "tally")

        shown, (payload, stored) = await scheduler.transact(lambda tx, context: put(tx, context, given), rights=ADA)
        assert (payload["timeout"], payload["deliver"], stored["timeout"]) == (600_000, "phone", "11m")
        assert (stored["catch_up"], stored["priority"], stored["deliver"]) == ("skip", 3, {"to": "ci", "on": "failure"})
        assert (stored["lanes"], stored["labels"]) == ({"agent:a": 1000, "gpu": 2}, ["big", "here"])
        read = shape(shown, "UTC")
        assert read["schedule"] == {**EVERY, "jitter": 5}
        same, again = await scheduler.transact(lambda tx, context: put(tx, context, read["options"]), rights=ADA)
        assert (again, shape(same, "UTC")["options"]) == ((payload, stored), read["options"])
        assert {"timeout": "10m", "deliver": "phone", "lanes": {"gpu": 2}}.items() <= read["options"].items()

        def patch(tx, context):
            spec = ScheduleSpec(
                None, None, None, options=options_of({"timeout": None, "lanes": None, "deliver": None, "hooks": None})
            )
            schedules.patch(tx, context, "tally", spec)
            return job_of(tx, "tally")

        for wrong in ({"deliver": {}}, {"deliver": "No Name"}, {"timeout": "soon"}, {"hooks": {"on": "any"}}):
            with pytest.raises((InvalidJob, IntervalParseError)):
                await scheduler.transact(lambda tx, context, wrong=wrong: put(tx, context, wrong), rights=ADA)
        payload, stored = await scheduler.transact(patch, rights=ADA)
        assert {"timeout", "deliver"}.isdisjoint(payload)
        assert (stored["lanes"], "deliver" in stored, stored["priority"]) == ({"agent:a": 1000}, False, 3)


@virtual
async def test_a_schedule_of_a_session_takes_options_too_and_keeps_the_lane_of_its_session(scene, agents):
    async with agents.scheduler() as scheduler:

        def put(tx, context, options):
            spec = ScheduleSpec(Task("Count.", session="team"), EVERY, None, None, options)
            found = schedules.put(tx, context, "tally", spec)[0]
            return job_of(tx, "tally")[1], found.options

        stored, said = await scheduler.transact(
            lambda tx, context: put(tx, context, {"lanes": {"gpu": 1}, "retry": 1}), rights=ADA
        )
        assert (stored["lanes"], said["lanes"]) == ({"gpu": 1, "session:team": 1}, {"gpu": 1})
        stored, said = await scheduler.transact(lambda tx, context: put(tx, context, {"lanes": None}), rights=ADA)
        assert (stored["lanes"], "lanes" in said, said["retry"]["delays"]) == ({"session:team": 1}, False, ["30s"])
        stored, _ = await scheduler.transact(lambda tx, context: put(tx, context, None), rights=ADA)
        assert stored["retry"]["delays"] == ["30s"]  # what is not spoken of stays
        with pytest.raises(InvalidJob, match="no option 'hooks'"):
            await scheduler.transact(lambda tx, context: put(tx, context, {"hooks": "ci"}), rights=ADA)


@virtual
@pytest.mark.promise("C1")
@pytest.mark.parametrize("of", ["a", None])
async def test_options_change_nothing_else_about_the_job(scene, agents, of):
    async with agents.scheduler_with({"a": agent()}) as scheduler:

        def put(tx, context, options):
            spec = ScheduleSpec(Task("Count."), EVERY, None, of, options)
            schedules.put(tx, context, "tally", spec)

        others = [{"kind": "command", "payload": {"argv": ["id"]}}, {"trigger": {}}, {"name": "b"}, {"enabled": False}]
        for _ in ("when it is made", "when it is changed"):
            for wrong in others:
                with pytest.raises(InvalidJob, match=f"has no option '{min(wrong)}'"):
                    await scheduler.transact(lambda tx, context, wrong=wrong: put(tx, context, wrong), rights=ADA)
            await scheduler.transact(lambda tx, context: put(tx, context, None), rights=ADA)


@pytest.mark.promise("X29")
def test_a_schedule_is_written_in_words_and_shown_as_what_they_mean():
    trigger = read_timing({"type": "when", "words": "weekdays at 9am", "timezone": "Europe/Berlin"}, NOW, None)
    shown = {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    assert timing_of(trigger.resolved(NOW, "UTC"), "UTC") == shown
    with pytest.raises(InvalidTrigger, match='did you mean "weekdays at 9"'):
        read_timing({"type": "when", "words": "wekdays at 9"}, NOW, None)
