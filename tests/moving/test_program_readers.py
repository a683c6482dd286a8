"""What the readers find in the files of agents and of Python programs: every entry is accounted for."""

from __future__ import annotations

import pytest

from tests.moving.test_readers import TERMS, jobs_of
from wakeful.moving.celerybeat import read_module
from wakeful.moving.checking import check
from wakeful.moving.openalice import read_alice
from wakeful.moving.sources import Unreadable


def test_prompts_become_schedules_of_agents_with_what_they_were_asked():
    found = jobs_of("caco")["caco-fresh.hourly"]
    assert found.entry.new.payload["prompt"] == "Look at ${HOME} and the queue."
    assert (found.job["interval"], found.entry.enabled) == ("90m", False)
    alice = jobs_of("openalice")
    assert alice["alice.btc-rsi"].job == {"cron": "0 */4 * * *", "prompt": "Check BTC RSI", "target": "main"}
    assert alice["alice.heartbeat"].job["active_hours"]["timezone"] == "Asia/Shanghai"
    herd = jobs_of("herdctl")
    assert herd["hurricane-watcher.check"].job["prompt"].startswith("You watch storms. Be concise.\n\nCheck")
    assert herd["hurricane-watcher.morning"].job["enabled"] is False
    claw = jobs_of("openclaw")
    assert claw["main.queue"].job["anchor"] == "2026-01-01T00:00:00Z"
    assert (claw["main.morning-brief"].job["stagger"], claw["main.morning-brief"].job["timeout"]) == ("5m", "10m")


@pytest.mark.promise("X10")
def test_what_open_alice_has_switched_off_stays_off():
    job = {"name": "watch", "schedule": {"kind": "every", "every": "5m"}, "payload": "Look.", "enabled": True}
    off = {"heartbeat": {"enabled": False, "every": "30m"}, "cron": {"enabled": False}}
    heart, watch = check(read_alice("jobs.json", [job], off), TERMS).entries
    assert (heart.status, watch.status) == ("refused", "differs")
    assert heart.found.refused.startswith("it is switched off")
    assert watch.entry.enabled is False
    assert "cron.enabled" in watch.found.notes[-1]
    [watch] = check(read_alice("jobs.json", [job], {}), TERMS).entries
    assert watch.entry.enabled is True


def test_jobs_of_a_program_keep_their_kind_and_payload():
    job = jobs_of("halo")["Price watch"]
    assert (job.entry.new.kind, job.entry.new.payload) == ("app", {"appId": "x"})
    assert job.job["anchor"] == "2026-01-01T00:00:00Z"


def test_functions_of_apscheduler_are_called_by_reference():
    found = jobs_of("apscheduler3")
    assert found["nightly"].job == {
        "cron": "30 2 * * 1-5",
        "timezone": "Europe/Berlin",
        "command": ["python3", "-c", "from textwrap import shorten; shorten('hello world', width=5)"],
        "catch_up": {"within": "1h"},
    }
    assert found["last-friday"].job["cron"] == "0 17 * * 5L"
    assert found["month-end"].job["cron"] == "15,45 * 9-17/2 L */2 *"
    assert found["christmas"].job["at"] == "2099-12-24T18:00:00+01:00"
    assert found["six-hours"].job["anchor"].startswith("2026-01-01T08:00")
    assert found["paused"].job["enabled"] is False


CELERY = """
app = Celery("shop")
MORE = {"more": {"task": "t.more", "schedule": timedelta(minutes=5)}}
app.conf.update(timezone="Asia/Tokyo", beat_schedule={
    "days": {"task": "t.days", "schedule": crontab(minute=0, hour=7, day_of_week="sunday,Wed")}, **MORE,
})
app.conf.beat_schedule["late"] = {"task": "t.late", "schedule": 5}
app.conf.beat_schedule.update({"later": {"task": "t.later", "schedule": 6}})

@app.on_after_configure.connect
def set_up(sender, **kwargs):
    sender.add_periodic_task(10.0, test.s("hello"), name="hello")
"""


@pytest.mark.promise("X10")
def test_every_way_to_write_a_beat_schedule_is_read_or_refused():
    found = {one.found.name: one for one in check(read_module("tasks.py", CELERY), TERMS).entries}
    assert {name: (one.job.get("cron"), one.job.get("every")) for name, one in found.items()} == {
        "days": ("0 7 * * sun,wed", None), "more": (None, "5m"), "late": (None, "5s"), "later": (None, "6s"),
        "hello": (None, None),
    }  # fmt: skip
    assert found["days"].job["timezone"] == "Asia/Tokyo"
    assert "add_periodic_task" in found["hello"].found.refused


def test_maps_of_celery_that_are_part_of_each_other_come_to_an_end():
    for text in ("A = {**B}\nB = {**A}\nbeat_schedule = A\n", "beat_schedule = {}\n"):
        assert all(one.refused for one in read_module("tasks.py", text).entries)
    parts = [f"M{number} = {{{f'**M{number - 1}, ' * 100}}}" for number in range(1, 5)]
    with pytest.raises(Unreadable, match="more than 10,000"):
        read_module("tasks.py", "\n".join(["M0 = {'a': 1}", *parts, "beat_schedule = M4"]))


def test_tasks_of_celery_are_sent_by_its_own_program():
    found = jobs_of("celerybeat")
    assert found["monday-morning"].job == {
        "cron": "30 7 * * mon",
        "timezone": "Europe/London",
        "command": ["celery", "-A", "proj", "call", "proj.tasks.report", '--kwargs={"to": "team"}', "--queue=slow"],
    }
    assert found["add-every-30-seconds"].job["command"][-1] == "--args=[16, 16]"
    assert [found[name].job["every"] for name in ("add-every-30-seconds", "cleanup", "product")] == ["30s", "6h", "5m"]


@pytest.mark.promise("X10")
def test_a_module_that_makes_no_app_of_celery_says_so():
    text = "beat_schedule = {'a': {'task': 't', 'schedule': 5.0}}\n"
    [bare] = read_module("celeryconfig.py", text).entries
    [named] = read_module("tasks.py", f"from celery import Celery\napp = Celery('shop')\n{text}").entries
    assert [one.notes[0].endswith("if that is your app: the module makes none") for one in (bare, named)] == [
        True,
        False,
    ]


def test_a_module_without_a_schedule_is_said_to_have_none():
    with pytest.raises(Unreadable, match="has no beat_schedule"):
        read_module("tasks.py", "x = 1\n")
