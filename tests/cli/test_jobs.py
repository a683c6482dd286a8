"""`list`, `show`, `remove`, `pause` and `resume`."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import subprocess
import sys

import pytest

from tests.kernel.crashing import die
from wakeful import Scheduler, Wait
from wakeful.testing import VirtualClock, run

PAUSED = "Paused everything: nothing starts until wakeful resume --all\n"


def names(answer):
    return [job["name"] for job in answer.json]


def test_an_empty_listing_says_which_store_was_read(wakeful, store):
    answer = wakeful("list")
    assert (answer.code, answer.err) == (0, "")
    assert f"there is no store at {store} yet" in answer.out
    wakeful("add", "job", "--every", "5m", "--", "true")
    wakeful("remove", "job")
    assert wakeful("list").out == f"No jobs in {store}.\n"
    assert wakeful("list", "--status", "paused").out == f"No such jobs in {store}.\n"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["list"], 0),
        (["list", "--json"], 0),
        (["runs"], 0),
        (["runs", "x"], 3),
        (["show", "x"], 3),
        (["next"], 0),
        (["status"], 0),
        (["doctor"], 0),
        (["alert", "list"], 0),
        (["explain", "x"], 3),
        (["logs", "x"], 3),
        (["cancel", "x"], 3),
        (["retry", "x"], 3),
        (["run", "x"], 3),
        (["run", "x", "--dry-run"], 3),
        (["edit", "x", "--every", "5m"], 3),
        (["remove", "x"], 3),
        (["pause", "x"], 3),
        (["pause", "--all"], 3),
        (["resume", "x"], 3),
    ],
)
def test_only_add_and_serve_make_a_store(wakeful, store, argv, code):
    answer = wakeful(*argv)
    assert answer.code == code
    assert list(store.parent.iterdir()) == []
    assert str(store) in answer.out + answer.err or argv == ["list", "--json"]


def test_an_empty_file_stays_empty_when_it_is_read(wakeful, store):
    store.touch()
    assert wakeful("list", "--json").json == []
    assert store.read_bytes() == b""


@pytest.mark.usefixtures("stocked")
def test_a_listing_shows_name_schedule_status_next_and_last(wakeful):
    wakeful("run", "job")
    lines = wakeful("list").out.splitlines()
    assert lines[0].split() == ["NAME", "SCHEDULE", "STATUS", "NEXT", "AT", "LAST"]
    assert [line.split()[0] for line in lines[1:]] == ["job", "other"]
    assert "every day at 09:00, Europe/Berlin" in lines[1]
    assert " idle " in lines[1]
    assert re.search(r"success (just now|\d+s ago|\dm \d+s ago)", lines[1])


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize("width", [120, 80, 60, 40, 20])
def test_a_listing_fits_the_terminal(wakeful, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for command in (["list"], ["next"], ["show", "job"], ["status"]):
        answer = wakeful(*command)
        if width >= 40 or command == ["list"]:
            assert max(map(len, answer.out.splitlines())) <= width


@pytest.mark.usefixtures("stocked")
def test_listings_can_be_filtered(wakeful):
    wakeful("pause", "job")
    assert names(wakeful("list", "--json")) == ["job", "other"]
    assert names(wakeful("list", "--status", "paused", "--json")) == ["job"]
    assert names(wakeful("list", "--status", "running", "--json")) == []
    assert names(wakeful("list", "--kind", "command", "--json")) == ["job", "other"]
    assert names(wakeful("list", "--kind", "report", "--json")) == []


@pytest.mark.usefixtures("stocked")
def test_a_job_is_shown_with_what_it_does_and_what_it_did(wakeful):
    wakeful("run", "job")
    answer = wakeful("show", "job")
    facts = dict(line.split(maxsplit=1) for line in answer.out.splitlines() if len(line.split()) > 1)
    assert (
        facts["runs"]
        == "every day at 09:00, Europe/Berlin, until 2999-01-01 00:00 CET (2998-12-31 23:00 UTC), up to 5 % later"
    )
    assert facts["command"] == "echo old"
    assert "CE" in facts["next"]
    assert "success" in facts["last"]
    data = wakeful("show", "job", "--json").json
    assert [run["outcome"] for run in data["runs"]] == ["success"]
    by_id = wakeful("show", data["id"], "--json").json
    assert by_id == data


@pytest.mark.usefixtures("stocked")
def test_a_run_is_shown_with_its_output(wakeful):
    wakeful("run", "job")
    run = wakeful("runs", "job", "--json").json[0]
    shown = wakeful("show", run["id"])
    assert shown.out.startswith(f"run       {run['id']}\njob       job (job_")
    assert shown.out.endswith("\n\nold\n")
    assert wakeful("show", run["id"], "--json").json == {**run, "trace": None}


@pytest.mark.usefixtures("stocked")
def test_a_near_miss_is_met_with_the_right_name(wakeful):
    answer = wakeful("show", "othr")
    assert (answer.code, answer.err) == (3, "Error: There is no job 'othr'. Did you mean 'other'?\n")


@pytest.mark.usefixtures("stocked")
def test_a_removed_job_is_gone_and_its_history_stays(wakeful):
    wakeful("run", "job")
    assert wakeful("remove", "job").out.startswith("Removed job (job_")
    assert names(wakeful("list", "--json")) == ["other"]
    assert [run["job"] for run in wakeful("runs", "job", "--json").json] == ["job"]
    answer = wakeful("show", "job")
    assert answer.code == 3
    assert "was removed; its history stays: wakeful runs job" in answer.err


@pytest.mark.usefixtures("stocked")
def test_removing_several_removes_all_of_them_or_none(wakeful):
    assert wakeful("remove", "job", "nobody").code == 3
    assert names(wakeful("list", "--json")) == ["job", "other"]
    assert wakeful("remove", "job", "other", "job").code == 0
    assert names(wakeful("list", "--json")) == []


@pytest.mark.usefixtures("stocked")
def test_a_paused_job_says_why_and_goes_on_when_resumed(wakeful):
    assert wakeful("pause", "job", "--note", "until Monday").out == "Paused job\n"
    job = wakeful("show", "job", "--json").json
    assert (job["status"], job["next_run_at"], job["notes"]) == ("paused", None, ["paused: until Monday"])
    answer = wakeful("resume", "job")
    assert answer.out.startswith("Resumed job, next in ")
    job = wakeful("show", "job", "--json").json
    assert (job["status"], job["notes"]) == ("idle", [])
    assert job["next_run_at"]
    assert wakeful("resume", "job").out.startswith("job was not paused, next in ")


@pytest.mark.promise("X7")
@pytest.mark.usefixtures("stocked")
def test_one_command_pauses_everything_and_one_goes_on(wakeful):
    wakeful("pause", "other")
    assert wakeful("pause", "--all", "--note", "the disk is being replaced").out == PAUSED
    assert names(wakeful("list", "--status", "idle", "--json")) == ["job"]  # no job is changed
    assert wakeful("pause", "--all").out.startswith("Everything was paused already: ")
    answer = wakeful("run", "job")
    assert answer.code == 4
    assert answer.err.startswith("Error: job cannot start: everything is paused by ")
    assert answer.err.endswith("(the disk is being replaced). Run wakeful resume --all first.\n")
    status = wakeful("status", "--json").json
    assert (status["hold"]["note"], status["hold"]["messages"]) == ("the disk is being replaced", False)
    assert "nothing starts until wakeful resume --all" in wakeful("explain", "job").out
    (check,) = (check for check in wakeful("doctor", "--json").json["checks"] if check["name"] == "hold")
    assert (check["ok"], check["do"]) == (False, "wakeful resume --all")
    assert wakeful("resume", "--all").out == "Resumed everything; jobs that were paused by name stay paused\n"
    assert names(wakeful("list", "--status", "paused", "--json")) == ["other"]
    assert wakeful("status", "--json").json["hold"] is None
    assert wakeful("run", "job").code == 0
    assert wakeful("resume", "--all").out == "Everything was not paused: nothing to resume\n"


@pytest.mark.usefixtures("stocked")
def test_messages_are_held_with_everything_alone(wakeful):
    assert wakeful("pause", "job", "--messages").err == "Error: --messages goes with --all.\n"
    assert wakeful("pause", "--all", "--messages", "--json").json["messages"] is True


@pytest.mark.promise("X27")
@pytest.mark.usefixtures("stocked")
def test_pausing_and_resuming_everything_is_undone(wakeful):
    paused = wakeful("pause", "--all", "--json").json["action"]
    assert wakeful("undo").out == "Not paused any more: everything\n"
    assert wakeful("run", "job").code == 0
    wakeful("pause", "--all")
    resumed = wakeful("resume", "--all", "--json").json["action"]
    assert wakeful("undo", resumed).out == "Paused again: everything\n"
    assert wakeful("run", "job").code == 4
    assert wakeful("undo", paused).code == 4
    done = wakeful("undo", "--list", "--json").json
    assert [action["what"] for action in done if action["undoable"]] == [
        "resume_all", "pause_all", "pause_all",
    ]  # fmt: skip


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(
    "argv", [["pause"], ["resume"], ["pause", "job", "--all"], ["resume", "job", "--all"], ["remove"]]
)
def test_which_jobs_are_meant_must_be_said(wakeful, argv):
    answer = wakeful(*argv)
    assert (answer.code, answer.out) == (2, "")


@pytest.mark.parametrize(("said", "code", "left"), [("n", 1, ["job"]), ("y", 0, [])])
def test_in_a_terminal_removing_asks_first(terminal, said, code, left):
    terminal.ask("add", "job", "--every", "1h", "--", "true")
    keyboard, inside = pty.openpty()
    os.write(keyboard, f"{said}\n".encode())
    command = [sys.executable, "-m", "wakeful.cli", "remove", "job"]
    done = subprocess.run(
        command, stdin=inside, capture_output=True, text=True, env=terminal.env, cwd=terminal.folder, check=False
    )
    os.close(keyboard)
    os.close(inside)
    assert done.returncode == code
    assert "Remove job?" in done.stdout + done.stderr
    assert names(terminal.ask("list", "--json")) == left


@pytest.mark.promise("H10")
def test_a_run_that_cannot_be_stopped_is_shown_as_timed_out(wakeful, store):
    wakeful("add", "job", "--every", "5m", "--", "true")
    clock = VirtualClock()

    async def leave_one_behind():
        async def deaf(run):
            while True:
                try:
                    await clock.sleep("1h")
                except asyncio.CancelledError:
                    continue
                return

        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            scheduler.on_job_due("command", deaf)
            await scheduler.update_job("job", timeout="1m")
            await scheduler.start()
            await scheduler.run_job("job")
            await clock.sleep("2m")
            await die(scheduler)

    run(leave_one_behind(), clock)
    shown = wakeful("show", "job").out
    assert "is past its limit and cannot be stopped" in shown
    assert "timed out" in shown
    [found] = wakeful("show", "job", "--json").json["runs"]
    assert (found["status"], found["phase"]) == ("active", "timeout")
    assert "it is past its limit and cannot be stopped" in wakeful("show", found["id"]).out
    assert "timed out" in wakeful("runs", "job").out


def test_resuming_a_monitor_says_when_it_is_down_without_a_ping(wakeful):
    wakeful("add", "offsite", "--ping", "--every", "1h", "--grace", "30m")
    wakeful("pause", "offsite")
    said = wakeful("resume", "offsite").out
    assert said.startswith("Resumed offsite, down in ")
    assert "without a ping" in said
    assert "next" not in said


@pytest.mark.usefixtures("stocked")
def test_a_run_that_waits_for_a_report_is_not_cut_off_by_the_end_of_its_server(wakeful, store):
    clock = VirtualClock()

    async def leave_one_waiting():
        async def handed_over(run):
            raise Wait

        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            scheduler.on_job_due("command", handed_over)
            await scheduler.start()
            await scheduler.run_job("other")
            await clock.sleep("1m")

    run(leave_one_waiting(), clock)
    [line] = [line for line in wakeful("list").out.splitlines() if line.startswith("other")]
    assert ("running" in line, "cut off" in line) == (True, False)


@pytest.mark.usefixtures("stocked")
def test_a_run_that_ended_with_its_server_is_not_shown_as_running(wakeful, store):
    clock = VirtualClock()

    async def leave_one_behind():
        async def slow(run):
            await clock.sleep("1h")

        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            scheduler.on_job_due("command", slow)
            await scheduler.start()
            await scheduler.run_job("other")
            await clock.sleep("1m")
            await die(scheduler)

    run(leave_one_behind(), clock)
    shown = wakeful("show", "other").out
    assert "status   cut off: its server has ended" in shown
    assert "cut off" in wakeful("runs").out
    listed = {line.split()[0]: line for line in wakeful("list").out.splitlines()}
    assert "cut off" in listed["other"]
    assert "cut off" not in listed["job"]
    shown = wakeful("status").out
    assert ("2 (1 idle, 1 cut off)" in shown, "running" in shown.partition("jobs")[2]) == (True, False)
    assert wakeful("status", "--json").json["jobs"] == {"idle": 1, "cut_off": 1}
    plan = wakeful("run", "other", "--dry-run")
    assert (plan.code, "is recorded as crashed: its server ended while it ran" in plan.out) == (0, True)
    paused = wakeful("pause", "other")
    assert paused.out == "Paused other\n"
    assert "will finish" not in paused.err
    assert "records it as crashed and does not run it again." in wakeful("explain", "other").out
    cancelled = wakeful("cancel", "other")
    assert cancelled.out.endswith("of other is marked as cancelled\n")
    assert "the next server records it as cancelled" in cancelled.err
