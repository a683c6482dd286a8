"""Nothing of a command outlives it: its limit, a cancellation, the loop, or a kill -9 of the scheduler."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import uuid

import pytest

from tests.kernel.commanding import PATIENT, QUICK, RUN, WHOLE_GROUP, descriptors, python, sh
from wakeful.domains.command.leftovers import kill_leftover, start_of
from wakeful.domains.command.process_group import exit_by_thread
from wakeful.domains.command.result import CommandFailed, CommandResult, CommandTimedOut
from wakeful.domains.command.run import CommandLimits, run_command
from wakeful.domains.command.spec import CommandSpec
from wakeful.errors import SchedulerError

# Nothing outlives it


@pytest.mark.promise("H10")
def test_a_command_that_takes_too_long_is_stopped_with_all_its_children(run, tmp_path, lifeline, has_children):
    script = f"{WHOLE_GROUP} (trap '' TERM; sleep 1000) & trap 'echo stopping' TERM; echo ready; wait; wait"
    with pytest.raises(CommandTimedOut, match="stopped after its limit of 1 s: ") as failure:
        run(sh(script, cwd=str(tmp_path), timeout_ms=1000), limits=QUICK)
    assert failure.value.result.output.startswith("ready\n")
    assert isinstance(failure.value, SchedulerError)
    assert lifeline.gone()
    assert not has_children()


async def started(lifeline, script, tmp_path, log_path, limits):
    task = asyncio.create_task(
        run_command(sh(WHOLE_GROUP + script, cwd=str(tmp_path)), run_env=RUN, log_path=log_path, limits=limits)
    )
    await asyncio.to_thread(lifeline.line)
    return task


@pytest.mark.promise("H10")
@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
def test_cancelling_ends_children_and_grandchildren(tmp_path, log_path, lifeline, stubborn, has_children):
    async def main():
        script = f"{stubborn} echo printed; sh -c 'sleep 1000 & echo up >&9; wait' & wait"
        await cancelled(await started(lifeline, script, tmp_path, log_path, QUICK))
        assert lifeline.gone()
        assert not has_children()

    asyncio.run(main())
    assert log_path.read_text() == "printed\n", "nothing else holds what a cancelled command printed"
    assert list(log_path.parent.iterdir()) == [log_path]


async def cancelled(task):
    task.cancel()
    async with asyncio.timeout(120):
        await asyncio.wait({task})
    assert task.cancelled()


@pytest.mark.promise("H10")
def test_a_command_may_use_the_grace_to_clean_up(tmp_path, log_path, lifeline):
    async def main():
        script = "trap 'echo cleaned; exit 7' TERM; echo up >&9; while :; do sleep 0.01; done"
        await cancelled(await started(lifeline, script, tmp_path, log_path, PATIENT))

    asyncio.run(main())
    assert log_path.read_text().endswith("cleaned\n")


@pytest.mark.promise("H10")
def test_a_child_may_use_the_grace_though_its_parent_has_ended(tmp_path, log_path, lifeline):
    async def main():
        child = "trap 'sleep 0.3; echo cleaned; exit' TERM; echo up >&9; while :; do sleep 0.01; done"
        await cancelled(
            await started(lifeline, f"({child}) & wait", tmp_path, log_path, CommandLimits(grace=30, drain=0.1))
        )

    asyncio.run(main())
    assert log_path.read_text().endswith("cleaned\n")


@pytest.mark.promise("H10")
def test_a_stopped_command_is_woken_to_end(tmp_path, log_path, lifeline):
    async def main():
        script = "trap 'echo woken; exit' TERM; echo up >&9; kill -STOP $$"
        task = await started(lifeline, script, tmp_path, log_path, PATIENT)
        await asyncio.to_thread(os.waitid, os.P_ALL, 0, os.WSTOPPED | os.WNOWAIT)
        await cancelled(task)

    asyncio.run(main())
    assert log_path.read_text() == "woken\n"


@pytest.mark.promise("H10")
def test_cancelling_twice_does_not_wait_for_the_grace(tmp_path, log_path, lifeline, has_children):
    async def main():
        script = "trap 'echo term >&9' TERM; echo up >&9; while :; do sleep 0.01; done"
        task = await started(lifeline, script, tmp_path, log_path, PATIENT)
        task.cancel()
        await asyncio.to_thread(lifeline.line)
        await cancelled(task)
        assert lifeline.gone()
        for thread in threading.enumerate():
            if thread.name.startswith("reap-"):
                await asyncio.to_thread(thread.join)
        assert not has_children()

    asyncio.run(main())


@pytest.mark.promise("H10")
def test_the_end_of_the_loop_ends_its_commands(tmp_path, log_path, lifeline, has_children):
    async def main():
        await started(lifeline, "echo up >&9; sleep 1000", tmp_path, log_path, QUICK)

    asyncio.run(main())
    assert lifeline.gone()
    assert not has_children()


def test_a_cancellation_before_the_start_starts_nothing(tmp_path, log_path):
    async def main():
        task = asyncio.create_task(
            run_command(sh(f"touch {tmp_path}/ran"), run_env=RUN, log_path=log_path, limits=PATIENT)
        )
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.wait({task})
        assert task.cancelled()

    before = descriptors()
    asyncio.run(main())
    assert not (tmp_path / "ran").exists()
    assert not log_path.parent.exists() or list(log_path.parent.iterdir()) == []
    assert len(descriptors()) <= len(before)


def test_a_background_child_that_holds_the_output_does_not_outlive_the_command(run, tmp_path, lifeline):
    result = run(sh(f"{WHOLE_GROUP} sleep 1000 & echo done", cwd=str(tmp_path)), limits=QUICK)
    assert (result.exit_code, result.output) == (0, "done\n")
    assert "what it left running in its group was killed" in result.notes[0]
    assert lifeline.gone()


def test_a_silent_background_child_does_not_outlive_the_command_either(run, tmp_path, lifeline):
    result = run(sh(f"{WHOLE_GROUP} sleep 1000 >/dev/null 2>&1 & echo done", cwd=str(tmp_path)))
    assert (result.exit_code, result.output, result.notes) == (0, "done\n", ())
    assert lifeline.gone()


def test_output_of_a_child_that_ends_right_after_its_parent_is_kept(run, tmp_path):
    result = run(sh("mkfifo go; (read x <go; echo late) & exec 8>go; echo done", cwd=str(tmp_path)))
    assert result.output == "done\nlate\n"
    assert result.notes == ()


@pytest.mark.parametrize("noise", ["time.sleep(1000)", "[os.write(1, b'x' * 1000) for _ in iter(int, 1)]"])
def test_a_child_that_left_the_group_cannot_hold_the_run(run, tmp_path, lifeline, noise):
    script = f"""
import os, signal, sys, time
line = os.open("line", os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    os.write(line, str(os.getpid()).encode())
    {noise}
print("done", flush=True)
os._exit(4)
"""
    result = run(python(script, cwd=str(tmp_path), output_limit=100), limits=QUICK)
    assert result.exit_code == 4
    assert "still open" in result.notes[0]
    if (pid := lifeline.line()) and "sleep" in noise:
        os.kill(int(pid), signal.SIGKILL)
    assert lifeline.gone(), "the noisy one ends by itself when its output is not read"


def test_fifty_commands_leave_no_descriptor_no_zombie_and_no_file(log_path, has_children):
    async def main():
        specs = [
            sh("echo $0; exit 3"),
            CommandSpec(("no-such-tool",)),
            sh("cat", stdin="x"),
            sh("sleep 9", timeout_ms=1),
        ]
        runs = [
            run_command(specs[n % 4], run_env=RUN, log_path=log_path.with_name(f"{n}.log"), limits=QUICK)
            for n in range(50)
        ]
        ends = await asyncio.gather(*runs, return_exceptions=True)
        assert {type(end) for end in ends} == {CommandResult, CommandFailed, CommandTimedOut}

    before = descriptors()
    asyncio.run(main())
    assert descriptors() == before
    assert not has_children()
    assert list(log_path.parent.iterdir()) == []


def test_the_loop_goes_on_while_a_command_prints(log_path):
    async def main():
        task = asyncio.create_task(
            run_command(python("print('x' * 30_000_000)"), run_env=RUN, log_path=log_path, limits=PATIENT)
        )
        turns = 0
        while not task.done():
            await asyncio.wait({task}, timeout=0)
            turns += 1
        assert turns > 400, "about one turn for each full pipe"

    asyncio.run(main())


def test_an_end_is_noticed_where_the_kernel_has_no_handle_for_processes():
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    ended = exit_by_thread(child.pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN | select.POLLHUP)
    assert poll.poll(0) == []
    child.stdin.close()
    assert poll.poll(20_000)
    assert child.wait() == 0, "noticing it did not collect it"
    ended.close()


# After a kill -9 of the scheduler

SCHEDULER = """
import asyncio, sys
from pathlib import Path
from wakeful.domains.command.run import run_command
from wakeful.domains.command.spec import CommandSpec
script, cwd, log_path, run_id = sys.argv[1:]
spec = CommandSpec(("sh", "-c", script), cwd=cwd)
asyncio.run(run_command(spec, run_env={"WAKEFUL_RUN_ID": run_id}, log_path=Path(log_path)))
"""


def die_while_running(script, tmp_path, log_path, lifeline):
    """Run a command in a scheduler of its own, kill that with -9, and say what its note of the run holds."""
    run_id = str(uuid.uuid4())  # a process of an earlier test must not pass for one of this
    words = [WHOLE_GROUP + script, str(tmp_path), str(log_path), run_id]
    scheduler = subprocess.Popen([sys.executable, "-c", SCHEDULER, *words])
    assert lifeline.line() == "up"
    note = log_path.with_name(log_path.name + ".pid")
    while note.read_bytes().count(b"\n") < 2:
        os.sched_yield()
    scheduler.kill()
    scheduler.wait()
    return note, json.loads(note.read_text().splitlines()[1])["pid"]


def kill_and_wait(pid):
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    assert poll.poll(20_000)
    os.close(ended)


@pytest.mark.promise("H10")
def test_what_a_killed_scheduler_left_running_is_killed_before_the_slot_runs_again(tmp_path, log_path, lifeline):
    note, _ = die_while_running("sleep 1000 & echo up >&9; wait", tmp_path, log_path, lifeline)
    assert kill_leftover(log_path) is True
    assert lifeline.gone()
    assert not note.exists()
    assert kill_leftover(log_path) is False


def test_children_are_found_by_their_run_when_the_leader_is_gone(tmp_path, log_path, lifeline):
    note, leader = die_while_running("sleep 1000 & echo up >&9; wait", tmp_path, log_path, lifeline)
    kill_and_wait(leader)
    assert kill_leftover(log_path) is True
    assert lifeline.gone()
    assert not note.exists()


def test_a_scheduler_killed_between_start_and_note_leaves_nothing_either(tmp_path, log_path, lifeline):
    detached = "echo $$ >detached; echo up >&9; exec sleep 1000 9>&-"
    note, _ = die_while_running(f"setsid sh -c '{detached}' & wait", tmp_path, log_path, lifeline)
    note.write_text(note.read_text().splitlines()[0] + '\n{"pid": 12')
    assert kill_leftover(log_path) is True
    assert lifeline.gone()
    kill_and_wait(int((tmp_path / "detached").read_text()))  # it left on purpose, so it was left alone


@pytest.mark.parametrize("noted", ["started", "run", "nothing", "garbage", "boot"])
def test_a_process_we_did_not_start_is_never_killed(log_path, noted):
    unrelated = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    lines = {
        "started": [{"run": "run_7"}, {"pid": unrelated.pid, "started": "another boot 1"}],
        "run": [{"run": "run_8"}],
        "nothing": [{}, {"pid": unrelated.pid, "started": None}],
        "garbage": [17, {"pid": "x", "started": []}],
        "boot": [{"run": ""}, {"pid": 1, "started": ""}],
    }[noted]
    note = log_path.with_name(log_path.name + ".pid")
    note.parent.mkdir()
    note.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kill_leftover(log_path) is False
    assert not note.exists()
    unrelated.terminate()
    assert unrelated.wait() == -signal.SIGTERM


def test_what_has_ended_and_only_waits_to_be_reaped_is_nothing_left_running(log_path):
    with subprocess.Popen(["true"], start_new_session=True) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        note = log_path.with_name(log_path.name + ".pid")
        note.parent.mkdir()
        note.write_text(json.dumps({"pid": ended.pid, "started": start_of(ended.pid)}))
        assert kill_leftover(log_path) is False


def test_a_scheduler_started_by_the_command_it_recovers_does_not_kill_itself(tmp_path, log_path):
    note = log_path.with_name(log_path.name + ".pid")
    note.parent.mkdir()
    script = f"""
import os
from pathlib import Path
from wakeful.domains.command.leftovers import kill_leftover, start_of
import json
Path({str(note)!r}).write_text(json.dumps({{"pid": os.getpid(), "started": start_of(os.getpid())}}))
assert kill_leftover(Path({str(log_path)!r})) is False
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, start_new_session=True).returncode == 0


def test_a_run_without_a_note_has_nothing_left(log_path, tmp_path):
    assert kill_leftover(log_path) is False
    (tmp_path / "file").touch()
    assert kill_leftover(tmp_path / "file" / "run.log") is False


def test_the_note_is_readable_by_its_owner_alone_while_the_command_runs(run, log_path):
    seen = run(sh('ls -l "$1" | cut -c1-10; cat "$1"', f"{log_path}.pid")).output.splitlines()
    assert seen[0] == "-rw-------"
    assert json.loads(seen[1]) == {"run": "run_7"}
