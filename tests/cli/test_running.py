"""`run`, `runs`, `logs`, `cancel` and `retry` where no server runs."""

from __future__ import annotations

import asyncio
import signal

import pytest

from wakeful import Every, Scheduler


@pytest.fixture
def add(wakeful):
    """Add a job that runs a line of shell."""

    def add(name, line, *options):
        assert wakeful("add", name, "--every", "1h", *options, "--", "sh", "-c", line).code == 0

    return add


def test_without_a_server_the_command_runs_the_job_itself(wakeful, add):
    add("job", "echo out; echo err >&2")
    answer = wakeful("run", "job")
    assert (answer.code, answer.out) == (0, "out\nerr\n")
    assert answer.err.startswith("job ended as success after ")
    run = wakeful("runs", "--json").json[0]
    assert (run["job"], run["outcome"], run["reason"], run["slot"]) == ("job", "success", "manual", None)
    assert run["output"] == {"exit_code": 0, "output": "out\nerr\n"}


def test_a_job_that_fails_makes_the_command_fail_and_says_how(wakeful, add):
    add("job", "echo almost; exit 3")
    answer = wakeful("run", "job")
    assert (answer.code, answer.out) == (1, "almost\n")
    assert "job ended as error" in answer.err
    assert "exited with code 3: almost" in answer.err


def test_a_run_can_be_read_by_programs(wakeful, add):
    add("job", "echo hi")
    run = wakeful("run", "job", "--json").json
    assert (run["outcome"], run["output"]["output"]) == ("success", "hi\n")


def test_a_dry_run_says_what_would_happen_and_changes_nothing(wakeful, add, here, store):
    add("job", "touch ran")
    before = store.read_bytes()
    answer = wakeful("run", "job", "--dry-run")
    assert answer.code == 0
    facts = dict(line.split(maxsplit=1) for line in answer.out.splitlines())
    assert facts["command"] == "sh -c 'touch ran'"
    assert facts["cwd"] == str(here)
    assert facts["can"] == "start  yes"
    assert store.read_bytes() == before
    assert not (here / "ran").exists()


def test_a_paused_job_may_be_run_by_hand_and_a_disabled_one_may_not(wakeful, add):
    add("paused", "echo yes")
    wakeful("pause", "paused")
    assert "may be started by hand" in wakeful("run", "paused", "--dry-run").out
    assert wakeful("run", "paused").code == 0
    assert wakeful("show", "paused", "--json").json["status"] == "paused"
    add("broken", "exit 1", "--max-errors", "1")
    assert wakeful("run", "broken").code == 1
    answer = wakeful("run", "broken", "--dry-run")
    assert (answer.code, answer.out.splitlines()[-1]) == (4, "can start  no, it is disabled: resume it first")
    answer = wakeful("run", "broken")
    assert (answer.code, answer.err) == (4, "Error: broken is disabled: resume it first.\n")


def test_runs_are_listed_newest_first_and_can_be_limited(wakeful, add):
    add("a", "true")
    add("b", "false")
    for name in ("a", "b", "a"):
        wakeful("run", name)
    assert [run["job"] for run in wakeful("runs", "--json").json] == ["a", "b", "a"]
    assert [run["job"] for run in wakeful("runs", "a", "--json").json] == ["a", "a"]
    assert [run["job"] for run in wakeful("runs", "-n", "1", "--json").json] == ["a"]
    lines = wakeful("runs").out.splitlines()
    assert lines[0].split() == ["RUN", "JOB", "OUTCOME", "STARTED", "AT", "TOOK", "WHY", "ERROR"]
    assert "exited with code 1" in lines[2]
    assert wakeful("runs", "-n", "0").code == 2


def test_logs_print_what_a_run_printed(wakeful, add):
    add("job", "echo one; echo two")
    wakeful("run", "job")
    assert wakeful("logs", "job").out == "one\ntwo\n"
    run = wakeful("runs", "--json").json[0]
    assert wakeful("logs", run["id"]).out == "one\ntwo\n"
    assert wakeful("logs", "-f", "job").out == "one\ntwo\n"


def test_logs_of_a_run_that_printed_nothing_say_so(wakeful, add):
    add("job", "true")
    wakeful("run", "job")
    answer = wakeful("logs", "job")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.endswith(" of job ended as success and printed nothing.\n")


def test_logs_of_a_long_output_are_the_whole_of_it(wakeful, add):
    add("job", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
    assert wakeful("run", "job").code == 0
    lines = wakeful("logs", "job").out.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (20000, "line 0", "line 19999")
    assert len(wakeful("runs", "--json").json[0]["output"]["output"]) < 70_000


def test_a_job_that_never_ran_has_no_logs(wakeful, add):
    add("job", "true")
    answer = wakeful("logs", "job")
    assert (answer.code, answer.err) == (3, "Error: job has never run.\n")
    assert wakeful("runs", "job").out.startswith("job has not run yet (store: ")


def test_what_is_not_running_cannot_be_cancelled(wakeful, add):
    add("job", "true")
    assert wakeful("cancel", "job").err == "Error: job is not running.\n"
    wakeful("run", "job")
    run = wakeful("runs", "--json").json[0]["id"]
    answer = wakeful("cancel", run)
    assert (answer.code, answer.err) == (4, f"Error: {run} has already ended as success.\n")


def test_a_retry_waits_for_a_server_and_can_be_cancelled(wakeful, add):
    add("job", "echo once; exit 1")
    wakeful("run", "job")
    first = wakeful("runs", "--json").json[0]["id"]
    answer = wakeful("retry", "job")
    assert answer.code == 0
    again = answer.out.split()[0]
    assert f"tries {first} of job again" in answer.out
    assert "nothing fires until one does" in answer.err
    assert wakeful("logs", "job").out == "once\n"
    assert wakeful("retry", first).code == 4
    assert wakeful("cancel", "job").out == f"{again} of job ended as cancelled\n"
    assert wakeful("show", again, "--json").json["outcome"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_job_that_this_command_runs(terminal, number):
    pipe = terminal.pipe("pipe")
    terminal.ask("add", "job", "--every", "1h", "--", "sh", "-c", f"echo $$ > {pipe.path}; sleep 600")
    running = terminal.start("run", "job")
    pipe.line()
    running.signal(number)
    answer = running.ended()
    assert answer.code == 1
    assert "ended as cancelled" in answer.err
    assert terminal.ask("runs", "--json").json[0]["outcome"] == "cancelled"


def test_two_lone_runs_do_not_share_a_store(terminal):
    pipe = terminal.pipe("pipe")
    terminal.ask("add", "slow", "--every", "1h", "--", "sh", "-c", f"echo $$ > {pipe.path}; sleep 600")
    terminal.ask("add", "quick", "--every", "1h", "--", "true")
    running = terminal.start("run", "slow")
    pipe.line()
    answer = terminal("run", "quick")
    assert answer.code == 4
    assert f"Another wakeful run (process {running.pid}) is using this store" in answer.err
    assert "No server is running" in terminal("add", "third", "--every", "1h", "--", "true").err
    answer = terminal("run", "slow")
    assert answer.code == 4
    running.signal(signal.SIGINT)
    assert running.ended().code == 1


def test_logs_and_runs_say_where_in_the_code_a_handler_failed(wakeful, store):
    async def fail(_):
        raise ValueError("bad row 7")

    async def main():
        async with Scheduler(f"sqlite:///{store}", timezone="UTC") as scheduler:
            scheduler.on_job_due("report")(fail)
            await scheduler.add_job("report", Every("1h"), kind="report")
            await scheduler.start()
            await scheduler.wait_for_run(await scheduler.run_job("report"))

    asyncio.run(main())
    run = wakeful("runs", "report", "--json").json[0]
    assert (run["error"], run["error_type"]) == ("bad row 7", "ValueError")
    assert run["trace"].rstrip().endswith("ValueError: bad row 7")
    said = wakeful("logs", "report")
    assert said.out == ""
    assert f"{run['id']} ended as error: ValueError: bad row 7\nTraceback" in said.err
    assert 'raise ValueError("bad row 7")' in said.err
    logged = wakeful("logs", "report", "--json").json
    assert (logged["error_type"], logged["trace"]) == ("ValueError", run["trace"])


def test_a_failure_is_said_once(terminal):
    terminal("add", "job", "--every", "1h", "--", "false")
    assert len(terminal("run", "job").err.splitlines()) == 1
