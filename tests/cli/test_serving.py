"""`serve`, and every command beside a running server: real processes on a real file."""

from __future__ import annotations

import re
import signal
from datetime import datetime

import pytest

from tests.cli.terminal import lives
from wakeful.kernel.loop.config import Tuning

SHELL = ("--", "sh", "-c")


def moment(text):
    return datetime.fromisoformat(text)


def ended(terminal, ref):
    """The latest run of a job, once it has ended."""
    terminal("logs", "-f", ref)
    return terminal.ask("runs", ref, "--json").json[0]


@pytest.mark.promise("H5")
def test_a_job_added_beside_a_running_server_is_noticed_within_a_second(terminal):
    server = terminal.serve()
    answer = terminal("add", "job", "--at", "now", *SHELL, "echo here")
    assert (answer.code, answer.err) == (0, "")
    server.until("job run_")
    job = terminal.ask("show", "job", "--json").json
    assert moment(job["runs"][0]["started_at"]) >= moment(job["created_at"])
    assert Tuning().poll_ms <= 500  # so often a server looks, whoever wrote; the rest is up to the machine


def test_a_server_logs_its_start_each_end_and_its_stop_in_plain_lines(terminal):
    terminal.ask("add", "well", "--at", "now", "--", "true")
    terminal.ask("add", "ill", "--at", "now", *SHELL, "echo reason; exit 3")
    server = terminal.serve("--node", "here")
    server.until("ill run_")
    server.signal(signal.SIGTERM)
    answer = server.ended()
    assert (answer.code, answer.out) == (0, "")
    lines = [line.split(maxsplit=2)[2].strip() for line in answer.err.splitlines()]
    assert lines[0].startswith("INFO    serving sqlite:////")
    assert any(line.startswith("INFO    well run_") and " success after " in line for line in lines)
    failed = [line for line in lines if line.startswith("WARNING ill run_")]
    assert len(failed) == 1
    assert failed[0].endswith("exited with code 3: reason")
    assert lines[-1] == "INFO    stopped"


def test_a_server_makes_the_store_it_serves(terminal):
    terminal.serve("--db", "made/here.db")
    assert (terminal.folder / "made" / "here.db").exists()
    assert terminal("--db", "made/here.db", "status", "--json").json["server"] is not None


def test_a_second_server_on_the_same_store_is_refused(terminal):
    server = terminal.serve()
    answer = terminal("serve", "--port", "0")
    assert answer.code == 4
    assert answer.err.startswith(f"Error: Another server already runs this store (process {server.pid} on ")


def test_a_second_server_on_the_same_store_and_port_names_the_first_one(terminal):
    server = terminal.start("serve", "--port", "0")
    port = re.search(r"http://\S+:(\d+)", server.until("listening on"))[1]
    answer = terminal("serve", "--port", port)
    assert answer.code == 4
    assert answer.err.startswith(f"Error: Another server already runs this store (process {server.pid} on ")


def test_status_says_who_serves_and_since_when(terminal):
    assert terminal.ask("status", "--json").json["server"] is None
    server = terminal.serve("--node", "kitchen")
    data = terminal.ask("status", "--json").json
    assert (data["server"]["pid"], data["server"]["node"]) == (server.pid, "kitchen")
    assert moment(data["server"]["since"])
    assert f"running: process {server.pid} on " in terminal("status").out


def test_run_beside_a_server_leaves_the_work_to_it(terminal):
    terminal.serve("--node", "kitchen")
    terminal.ask("add", "job", "--every", "1h", *SHELL, "echo from the server; exit 5")
    answer = terminal("run", "job", "--wait")
    assert (answer.code, answer.out) == (1, "from the server\n")
    assert "exited with code 5" in answer.err
    run = terminal.ask("runs", "job", "--json").json[0]
    assert (run["node"], run["reason"]) == ("kitchen", "manual")


def test_a_running_job_is_not_started_again_and_can_be_cancelled(terminal):
    terminal.serve()
    pipe = terminal.pipe("pipe")
    terminal.ask("add", "job", "--every", "1h", *SHELL, f"echo $$ > {pipe.path}; sleep 600")
    answer = terminal("run", "job")
    run = answer.out.split()[0]
    assert answer.out == f"{run} started; follow it with wakeful logs -f {run}\n"
    pid = int(pipe.line())
    refused = terminal("run", "job")
    assert (refused.code, refused.err) == (
        4,
        f"Error: job is already running ({run}): wait for it, or cancel it first.\n",
    )
    assert terminal("run", "job", "--dry-run").code == 4
    assert "will finish; wakeful cancel ends it" in terminal("pause", "job").err
    answer = terminal("cancel", "job")
    assert (answer.code, answer.out) == (0, f"{run} of job ended as cancelled\n")
    assert not lives(pid)


def test_what_a_run_printed_before_its_time_was_up_is_not_lost(terminal):
    terminal.serve()
    terminal.ask("add", "job", "--every", "1h", "--timeout", "1s", *SHELL, "echo first words; exec sleep 600")
    answer = terminal("run", "job", "--wait")
    assert (answer.code, answer.out) == (1, "first words\n")
    assert "job ended as timeout" in answer.err
    assert terminal("logs", "job").out == "first words\n"


def test_logs_follow_a_run_to_its_end(terminal):
    terminal.serve()
    started, go_on = terminal.pipe("started"), terminal.pipe("go_on")
    line = f"echo first; echo > {started.path}; read x < {go_on.path}; echo second"
    terminal.ask("add", "job", "--every", "1h", *SHELL, line)
    terminal("run", "job")
    started.line()
    shown = terminal("logs", "job")
    assert shown.out == "first\n"
    assert "is active; -f follows it" in shown.err
    following = terminal.start("logs", "-f", "job")
    following.until("first")
    go_on.write("go")
    following.until("second")
    answer = following.ended()
    assert (answer.code, answer.out, answer.err) == (0, "first\nsecond\n", "")


def test_a_retry_is_run_by_the_server_for_the_same_slot(terminal):
    terminal.ask("add", "job", "--at", "now", "--retry", "0", *SHELL, "test -e mended || exit 1; echo mended")
    terminal.serve()
    first = ended(terminal, "job")
    assert first["outcome"] == "error"
    (terminal.folder / "mended").touch()
    again = terminal("retry", "job").out.split()[0]
    second = ended(terminal, "job")
    assert (second["id"], second["outcome"], second["attempt"]) == (again, "success", 2)
    assert (second["retry_of"], second["slot"]) == (first["id"], first["slot"])


def test_a_job_that_had_its_one_time_is_done_and_resume_says_what_it_does(terminal):
    terminal.ask("add", "bad", "--at", "now", "--", "false")
    terminal.ask("add", "once", "--at", "now", "--", "true")
    terminal.ask("add", "job", "--every", "1h", "--", "true")
    terminal.ask("pause", "job")
    server = terminal.serve()
    server.until("once run_")
    statuses = {job["name"]: job["status"] for job in terminal.ask("list", "--json").json}
    assert statuses == {"bad": "disabled", "job": "paused", "once": "done"}
    answer = terminal("resume", "once", "job")
    assert answer.code == 4
    assert "Resumed job" in answer.out
    assert "once would never run again: its one time has passed. Start it by hand (wakeful run)" in answer.err
    answer = terminal("resume", "bad")
    assert answer.out == "Resumed bad, which starts now: its time has passed\n"
    assert "resuming it runs it now" in answer.err
    assert terminal("run", "once", "--wait").code == 0


def test_a_job_can_be_edited_while_it_runs(terminal):
    terminal.serve()
    started, go_on = terminal.pipe("started"), terminal.pipe("go_on")
    terminal.ask("add", "job", "--every", "1h", *SHELL, f"echo > {started.path}; read x < {go_on.path}; echo old")
    terminal("run", "job")
    started.line()
    assert terminal("edit", "job", *SHELL, "echo new").code == 0
    go_on.write("go")
    assert ended(terminal, "job")["output"]["output"] == "old\n"
    assert terminal("run", "job", "--wait").out == "new\n"


# -- endings ----------------------------------------------------------------------------------------------------------


def test_stopping_waits_for_what_runs(terminal):
    server = terminal.serve()
    started, go_on = terminal.pipe("started"), terminal.pipe("go_on")
    terminal.ask("add", "job", "--at", "now", *SHELL, f"echo > {started.path}; read x < {go_on.path}; echo done")
    started.line()
    server.signal(signal.SIGINT)
    server.until("stopping, 1 run may take up to 30 s")
    go_on.write("go")
    assert server.ended().code == 0
    assert terminal.ask("runs", "--json").json[0]["outcome"] == "success"


def test_a_second_signal_does_not_wait_and_the_slot_is_run_again(terminal):
    pipe = terminal.pipe("pipe")
    terminal.ask("add", "job", "--at", "now", *SHELL, f"echo started > {pipe.path}; test -e second || exec sleep 600")
    server = terminal.serve()
    pipe.line()
    server.signal(signal.SIGTERM)
    server.until("stopping")
    server.signal(signal.SIGTERM)
    assert server.ended().code == 0
    cut_off = terminal.ask("runs", "job", "--json").json[-1]
    assert (cut_off["outcome"], cut_off["error"]) == ("cancelled", "cut off by shutdown")
    (terminal.folder / "second").touch()
    terminal.serve()
    pipe.line()
    again = ended(terminal, "job")
    assert (again["outcome"], again["reason"], again["retry_of"]) == ("success", "recovery", cut_off["id"])


def test_what_still_runs_after_the_wait_is_cut_off(terminal):
    pipe = terminal.pipe("pipe")
    terminal.ask("add", "job", "--at", "now", *SHELL, f"echo started > {pipe.path}; exec sleep 600")
    server = terminal.serve("--shutdown-wait", "1s")
    pipe.line()
    server.signal(signal.SIGTERM)
    answer = server.ended()
    assert answer.code == 0
    assert (
        "timed out after 1s with 1 job(s) still running; interrupted runs start again at the next start" in answer.err
    )


@pytest.mark.promise("H11")
def test_a_killed_server_leaves_nothing_that_the_next_one_does_not_settle(terminal):
    pipe = terminal.pipe("pipe")
    line = f"echo $$ > {pipe.path}; test -e second || exec sleep 600; echo recovered"
    terminal.ask("add", "job", "--at", "now", *SHELL, line)
    server = terminal.serve()
    pid = int(pipe.line())
    server.kill()
    status = terminal.ask("status", "--json").json
    assert (status["server"], status["jobs"]) == (None, {"cut_off": 1})
    assert "was active when its server ended" in terminal("logs", "-f", "job").err
    (terminal.folder / "second").touch()
    terminal.serve()
    pipe.line()
    again = ended(terminal, "job")
    assert (again["outcome"], again["reason"], again["output"]["output"]) == ("success", "recovery", "recovered\n")
    crashed = terminal.ask("show", again["retry_of"], "--json").json
    assert crashed["outcome"] == "crashed"
    assert not lives(pid)


# -- an app of one's own ----------------------------------------------------------------------------------------------

APP = """
from datetime import UTC, datetime
from wakeful import Every, Once, Scheduler

scheduler = Scheduler("sqlite:///app.db")

@scheduler.job(Once(datetime(2026, 1, 1, tzinfo=UTC)))
async def hello(run):
    return {"greeting": "hello"}

@scheduler.job(Once(datetime(2026, 1, 1, tzinfo=UTC)))
def broken(run):
    raise ValueError("no such file")

def make():
    return scheduler

async def main():
    return scheduler

number = 7
"""


@pytest.mark.parametrize("name", ["scheduler", "make"])
def test_an_app_brings_its_own_jobs_handlers_and_store(terminal, name):
    (terminal.folder / "jobs.py").write_text(APP)
    server = terminal.serve("--app", f"jobs:{name}")
    server.until("hello run_")
    server.until("broken run_")
    run = terminal.ask("runs", "hello", "--db", "app.db", "--json").json[0]
    assert (run["job"], run["outcome"], run["output"]) == ("hello", "success", {"greeting": "hello"})
    assert terminal("logs", "hello", "--db", "app.db").out == '{\n  "greeting": "hello"\n}\n'
    server.signal(signal.SIGTERM)
    lines = server.ended().err.splitlines()
    assert not any("ERROR" in line for line in lines), "the failure is reported once"
    (first,) = [number for number, line in enumerate(lines) if "WARNING broken run_" in line]
    assert lines[first].endswith(": ValueError: no such file")
    assert lines[first + 1] == "    Traceback (most recent call last):"
    assert "    ValueError: no such file" in lines[first + 2 :]


def test_a_store_named_beside_an_app_does_not_count_and_is_reported(terminal):
    (terminal.folder / "jobs.py").write_text(APP)
    server = terminal.start("serve", "--port", "0", "--app", "jobs:scheduler", "--db", "other.db")
    assert "jobs:scheduler brings its own store, sqlite:///app.db" in server.until("--db is ignored")
    server.until("hello run_")
    assert not (terminal.folder / "other.db").exists()


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("jobs", "is not MODULE:NAME"),
        ("nojobs:scheduler", "there is no module 'nojobs' in"),
        ("jobs:schedulr", "jobs has no 'schedulr'. Did you mean 'scheduler'?"),
        ("jobs:number", "is of type int: it must be a Scheduler"),
        ("jobs:main", "is an async function: it must be a Scheduler, or a plain function"),
        ("broken:scheduler", "importing it failed: ZeroDivisionError"),
    ],
)
def test_an_app_that_cannot_be_served_is_reported_in_a_sentence(wakeful, here, ref, said):
    (here / "jobs.py").write_text(APP)
    (here / "broken.py").write_text("1 / 0")
    answer = wakeful("serve", "--app", ref)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.promise("H17", "D5")
def test_a_job_without_a_handler_is_reported_by_status_explain_run_and_doctor(terminal):
    app = APP + (
        "\nimport asyncio\nasync def main():\n    async with scheduler:\n"
        "        await scheduler.add_job('report', Once(datetime(2026, 1, 1, tzinfo=UTC)), kind='report')\n"
        "        await scheduler.add_job('later', Every('1d'), kind='report')\n"
        "asyncio.run(main())\n"
    )
    (terminal.folder / "jobs.py").write_text(app)
    server = terminal.start("serve", "--port", "0", "--app", "jobs:scheduler")
    server.until("hello run_")
    found = terminal("doctor", "--db", "app.db")
    assert found.code == 1
    assert "report is due, but no running program handles kind 'report'" in found.out
    assert "later: no running program handles kind 'report'" in found.out, "before it is due"
    assert "declared in code" not in found.out
    assert "no running server has a handler" in terminal("explain", "report", "--db", "app.db").out
    assert terminal.ask("status", "--db", "app.db", "--json").json["waiting"] == {"kind:report": 1}
    assert " due" in terminal("list", "--db", "app.db").out
    server.kill()
    refused = terminal("run", "report", "--db", "app.db")
    assert (refused.code, refused.out) == (4, "")
    assert "is of kind 'report', which only a server can run: start one with wakeful serve --app" in refused.err


@pytest.mark.promise("H17", "D5")
def test_a_job_whose_labels_no_node_has_is_reported_by_doctor_before_an_alert_is(terminal):
    for name in ("gpu", "big"):
        assert terminal("add", name, "--every", "1d", "--label", name, "--db", "w.db", "--", "true").code == 0
    server = terminal.start("serve", "--port", "0", "--labels", "big", "--db", "w.db")
    server.until("http://")
    found = terminal("doctor", "--db", "w.db")
    assert found.code == 1
    assert "gpu: no running node is labelled gpu" in found.out
    assert "start one: wakeful serve --labels gpu" in found.out
    assert "labelled big" not in found.out


@pytest.mark.promise("D5", "X17")
def test_the_log_of_a_server_says_that_everything_is_paused(terminal):
    assert terminal("add", "tick", "--every", "1d", "--db", "w.db", "--", "true").code == 0
    assert terminal("pause", "--all", "--note", "restored", "--db", "w.db").code == 0
    server = terminal.start("serve", "--port", "0", "--db", "w.db")
    said = server.until("everything is paused")
    assert "nothing starts until wakeful resume --all" in said
