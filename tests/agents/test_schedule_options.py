"""Schedules of agents take whatever jobs take: in files and programs, on the command line, over HTTP."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import PLACE, agent
from tests.kernel.scene import at, virtual
from wakeful import Every
from wakeful.config.entries import KEYS, MODIFIERS, OPTIONS, RHYTHMS
from wakeful.domains.agents.ad_hoc_schedules import added_schedule
from wakeful.domains.agents.agents_file import entries_of
from wakeful.domains.agents.configuration import AgentSchedule
from wakeful.domains.agents.schedule_options import READ_BY_AGENTS, asking_options, limit_ms
from wakeful.errors import InvalidJob
from wakeful.kernel.rules.options import as_written, read_options

pytestmark = pytest.mark.promise("D1")

#: A value of every key, and the key beside which it has a meaning where that is not `every`.
RHYTHM = {
    "cron": "0 9 * * 1-5",
    "every": "1h",
    "interval": "5m",
    "at": "2026-12-24T18:00",
    "after": "b.tick",
    "when": "every day at 09:00",
}
MODIFIER = {
    "anchor": "2026-01-01T00:10", "on": "failure", "start": "2026-02-01", "until": "2026-03-01T00:00", "max_runs": 3,
    "except": ["2026-12-24"], "active_hours": "09:00-17:00", "jitter": "5%", "stagger": "10m",
}  # fmt: skip
OPTION = {
    "timeout": "10m", "catch_up": "skip", "overlap": "queue", "retry": ["1m"], "backoff": ["1m", "2m"], "max_errors": 3,
    "error_span": "2h", "on_crash": "skip", "lanes": {"gpu": 2}, "labels": ["big"], "approval": True, "priority": 7,
    "retention": {"age": "7d", "runs": 50},
}  # fmt: skip


def stored(folder, **schedule):
    """The job of an agent's schedule."""
    plan = {"a": agent(labels=["here"], schedules={"tick": {"prompt": "x", **schedule}})}
    (found,) = [entry for entry in entries_of(plan, folder, "UTC") if entry.new.name == "a.tick"]
    return found.new


def test_an_agents_schedule_takes_every_key_of_a_job(tmp_path):
    assert set(KEYS) - set(AgentSchedule.model_fields) == {"owner"}  # which is the agent
    assert set(RHYTHMS) == {*RHYTHM, "manual"}
    assert set(MODIFIERS) == set(MODIFIER)
    assert set(OPTIONS) == {*OPTION, "deliver"}  # which is where its reply goes
    assert READ_BY_AGENTS & set(KEYS) == {"deliver"}


@pytest.mark.parametrize("key", [*RHYTHM, "manual"])
def test_each_rhythm_of_a_job_is_one_of_an_agents_schedule(tmp_path, key):
    trigger = stored(tmp_path, **{key: RHYTHM.get(key, True)}).trigger
    assert trigger.type == {"at": "once", "when": "cron"}.get(key, key)


@pytest.mark.parametrize("key", MODIFIER)
def test_each_modifier_of_a_schedule_reaches_the_trigger(tmp_path, key):
    rhythm = {"after": "b.tick"} if key == "on" else {"every": "1h"}
    plain = stored(tmp_path, **rhythm).trigger.to_data()
    changed = stored(tmp_path, **rhythm, **{key: MODIFIER[key]}).trigger.to_data()
    assert {name for name in changed if changed[name] != plain.get(name)} - {"tz"} == {key}


@pytest.mark.parametrize("key", OPTION)
def test_each_option_of_a_job_is_the_schedules_own_before_the_agents(tmp_path, key):
    written = as_written(read_options(stored(tmp_path, every="1h", **{key: OPTION[key]}).options))
    plain = as_written(read_options(stored(tmp_path, every="1h").options))
    assert written[key] != plain.get(key)
    assert {name: value for name, value in written.items() if name != key} == {
        name: value for name, value in plain.items() if name != key
    }


def test_lanes_and_labels_of_the_agent_hold_beside_those_of_the_schedule(tmp_path):
    new = stored(tmp_path, every="1h", lanes={"gpu": 2, "agent:a": 50}, labels=["big", "here"])
    assert new.options["lanes"] == {"agent:a": 1, "gpu": 2}
    assert new.options["labels"] == ["here", "big"]


def test_a_schedules_own_limit_is_the_runners_and_a_run_is_stuck_a_minute_later(tmp_path):
    new = stored(tmp_path, every="1h", timeout="10m")
    assert (new.payload["timeout"], new.options["timeout"]) == (600_000, 660)
    assert (limit_ms({"timeout": "soon"}), limit_ms({})) == (None, None)
    assert asking_options({"timeout": 5}, {})["timeout"] == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"every": "1h", "jitter": "50%"}, "agents.a.schedules.tick.jitter"),
        ({"every": "1h", "timeout": "soon"}, "agents.a.schedules.tick.timeout"),
        ({"every": "1h", "priority": 1000}, "agents.a.schedules.tick.priority"),
        ({"every": "1h", "labels": [["big"]]}, "agents.a.schedules.tick.labels"),
        ({"every": "1h", "owner": "b"}, "There is no key 'owner'"),
        ({"every": "1h", "after": "b.tick"}, "agents.a.schedules.tick.after is a second schedule"),
        ({"every": "1h", "target": "main", "hooks": "ci"}, "agents.a.schedules.tick.hooks goes to the agent"),
        ({"chat": {"connector": "phone"}, "jitter": 5}, "agents.a.schedules.tick.jitter"),
    ],
)
def test_a_wrong_value_is_reported_at_its_place_as_for_jobs(tmp_path, given, message):
    with pytest.raises(InvalidJob) as refused:
        stored(tmp_path, **given)
    assert message in str(refused.value)


@pytest.mark.promise("D2")
@virtual
async def test_a_schedule_of_an_agent_obeys_its_modifiers(scene, agents):
    schedules = {
        "hours": {"every": "1h", "prompt": "hours", "active_hours": "02:00-03:30"},
        "twice": {"every": "1h", "prompt": "twice", "max_runs": 2},
        "then": {"after": "a.twice", "prompt": "then"},
        "event": {"every": "1h", "prompt": "event", "target": "main", "until": "2026-01-01T01:30"},
    }
    async with agents.scheduler_with({"a": agent(max_concurrent=9, schedules=schedules)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=4, minutes=30))
        called = [(turn.schedule, when.hour) for turn, when in zip(agents.turns, agents.times, strict=True)]
        assert sorted(called) == [
            *(("hours", 2), ("hours", 3)),
            *(("then", 1), ("then", 2), ("twice", 1), ("twice", 2)),
            ("wake", 1),
        ]


@pytest.mark.promise("H10")
@virtual
async def test_a_call_takes_no_longer_than_its_schedule_says_whatever_the_runner_says(scene, agents):
    agents.act = lambda turn: scene.sleep("50m")
    schedules = {
        "short": {"every": "1h", "prompt": "x", "timeout": "10m"},
        "long": {"every": "1h", "prompt": "x", "timeout": "1h"},
    }
    runner = {"python": PLACE, "timeout": "20m"}
    async with agents.scheduler_with({"a": agent(runner=runner, max_concurrent=2, schedules=schedules)}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, minutes=55))
        (short,), (long,) = [await scheduler.get_run_log(f"a.{name}", 1) for name in schedules]
        assert (short.outcome, long.outcome) == ("timeout", "success")
        assert (short.finished_at - short.started_at).total_seconds() == 600


@pytest.mark.promise("X7")
@virtual
async def test_a_schedule_with_approval_calls_the_agent_after_a_person_agreed(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules={"pay": {"at": "2026-01-01T01:00", "prompt": "Pay.",
                                                                    "approval": True}})}) as scheduler:  # fmt: skip
        await scheduler.start()
        await scene.until(at(hours=2))
        (run,) = await scheduler.get_run_log("a.pay", 1)
        assert (run.status, agents.turns) == ("waiting", [])
        found = await scheduler.agents.get("a")
        assert (found["status"], found["running"]) == ("idle", 0)  # it has room for other runs
        assert [schedule["status"] for schedule in found["schedules"]] == ["waiting"]
        await scheduler.approve_run(run.id, by="ada")
        await scene.sleep(60)
        assert agents.prompts == ["Pay."]
        assert (await scheduler.agents.get("a"))["spent_today"]["runs"] == 1


@pytest.mark.promise("A6")
@virtual
async def test_hooks_are_called_after_runs_beside_the_reply_and_change_nothing_about_them(scene, agents):
    agents.act = lambda turn: RuntimeError("no") if turn.schedule == "bad" else "All is well."
    schedules = {
        "good": {"at": "2026-01-01T01:00", "prompt": "x", "deliver": "phone"},
        "bad": {"at": "2026-01-01T01:00", "prompt": "x", "retry": 0},
        "own": {"at": "2026-01-01T01:00", "prompt": "x", "hooks": {"to": "ci", "on": "failure"}},
    }
    plan = {"a": agent(hooks="audit", deliver="none", max_concurrent=9, schedules=schedules)}
    async with agents.scheduler_with(plan) as scheduler:
        sent = []

        def connector(name):
            async def send(message):
                sent.append((name, message.job, message.outcome))
                if name == "audit" and len(sent) < 2:
                    raise RuntimeError("the hook is broken")

            return send

        for name in ("phone", "audit", "ci"):
            scheduler.connectors.register(name, connector(name))
        await scheduler.start()
        await scene.until(at(hours=1, minutes=1))
        assert sorted(set(sent)) == [
            ("audit", "a.bad", "error"),
            ("audit", "a.good", "success"),
            ("phone", "a.good", "sent"),
        ]
        ended = {name: (await scheduler.get_run_log(f"a.{name}", 1))[0].outcome for name in schedules}
        assert ended == {"good": "success", "bad": "error", "own": "success"}


@virtual
async def test_a_schedule_beside_the_file_takes_the_same_options_and_follows_its_agents_other_ones(scene, agents):
    async with agents.scheduler_with({"a": agent(labels=["here"], hooks="audit")}) as scheduler:
        own = {"timeout": "5m", "retry": 1, "labels": ["big"], "lanes": {"gpu": 1}, "deliver": {"to": "phone"}}
        new = await scheduler.read(lambda tx: added_schedule(tx, "a", "a.x", Every("1h"), prompt="x", options=own))
        assert (new.payload["timeout"], new.payload["deliver"]) == (300_000, "phone")
        written = as_written(read_options(new.options))
        assert (written["timeout"], written["labels"], written["lanes"]) == (
            "6m",
            ["big", "here"],
            {"agent:a": 1000, "gpu": 1},
        )
        assert (written["retry"]["delays"], written["deliver"]) == (["30s"], {"to": "audit", "on": "any"})
        hook = {"deliver": {"to": "ci", "on": "failure"}}
        new = await scheduler.read(lambda tx: added_schedule(tx, "a", "a.y", Every("1h"), prompt="x", options=hook))
        assert ("deliver" in new.payload, new.options["deliver"]) == (False, hook["deliver"])


def test_a_schedule_has_a_model_and_variables_of_its_own(tmp_path):
    runner = {"preset": "claude", "model": "haiku", "env": ["A=1"]}
    schedules = {"deep": {"manual": True, "prompt": "x", "model": "opus", "env": ["B=2"]}, "quick": {"manual": True}}
    found = entries_of({"a": agent(runner=runner, schedules=schedules)}, tmp_path, "UTC")
    called = {entry.new.name: entry.new.payload["runner"] for entry in found}
    assert {name: (one["model"], one["env"]) for name, one in called.items()} == {
        "a.deep": ("opus", ["A=1", "B=2"]),
        "a.quick": ("haiku", ["A=1"]),
        "a.wake": ("haiku", ["A=1"]),
    }


@pytest.mark.parametrize(
    ("runner", "schedule", "said"),
    [
        ({"preset": "scripted", "args": ["./a"]}, {"model": "opus"}, "model"),
        ({"url": "http://127.0.0.1:3000"}, {"model": "opus"}, "model is for programs"),
        ({"python": PLACE}, {"env": ["A=1"]}, "env is for programs"),
        ({"preset": "claude"}, {"model": "opus", "target": "main"}, "model goes to the agent"),
    ],
)
def test_what_a_schedule_says_about_its_calls_must_be_possible(tmp_path, runner, schedule, said):
    plan = {"a": agent(runner=runner, schedules={"tick": {"every": "1h", "prompt": "x", **schedule}})}
    with pytest.raises(InvalidJob, match=f"agents.a.schedules.tick.{said}"):
        entries_of(plan, tmp_path, "UTC")
