"""Programs that are started: what they get, what is kept of them, and that none outlives who waits for it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S as PATIENCE
from wakeful import child_processes
from wakeful.child_processes import EnvironmentList, TookTooLong, clean_environment, run_beside, run_to_end

PYTHON = [sys.executable, "-I", "-c"]
SHOWS = "import json, os; print(json.dumps(dict(os.environ)))"


def beside(argv, **options):
    return asyncio.run(run_beside(argv, env=clean_environment(), **options))


def to_end(argv, **options):
    return run_to_end(argv, env=clean_environment(), seconds=60, **options)


BOTH = pytest.mark.parametrize("run", [beside, to_end])


def test_a_clean_environment_has_ordinary_variables_and_what_is_listed(monkeypatch):
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "LC_TIME": "C", "DB_PASSWORD": "x", "KEY": "k", "LD_PRELOAD": "y"}
    )
    listed = EnvironmentList.read(["KEY", "MODE=a=b", "GONE", "PATH=/opt"])
    assert listed.environment() == {"PATH": "/opt", "LC_TIME": "C", "KEY": "k", "MODE": "a=b"}
    assert clean_environment() == {"PATH": "/bin", "LC_TIME": "C"}


@pytest.mark.parametrize("item", ["", "=x", "A B", "1A", "A\0=1", "A=\0", 7])
def test_what_is_no_variable_is_refused(item):
    with pytest.raises(ValueError, match="must"):
        EnvironmentList.read([item])


@BOTH
def test_a_program_gets_its_input_its_folder_and_no_other_descriptor_of_ours(run, tmp_path):
    ours, other = os.pipe()
    os.set_inheritable(ours, True)  # noqa: FBT003 - the standard library's own shape
    code = (
        "import os, sys, json; print(json.dumps([sys.stdin.read(), os.getcwd(), os.getsid(0) == os.getpid(),"
        " sorted(int(n) for n in os.listdir('/dev/fd') if int(n) < 64)]))"
    )
    ended = run([*PYTHON, code], cwd=tmp_path, stdin=b"hello")
    os.close(ours)
    os.close(other)
    said, folder, leads, numbers = json.loads(ended.output)
    assert (ended.exit_code, said, folder, leads) == (0, "hello", str(tmp_path), True)
    assert len(numbers) <= 4, "three streams, and the folder that was listed"


@BOTH
def test_the_beginning_of_the_output_is_kept_and_the_end_of_the_errors(run):
    code = "import sys; print('a' * 300_000 + 'z'); print('b' * 300_000 + 'end', file=sys.stderr); sys.exit(7)"
    ended = run([*PYTHON, code], keep=10)
    assert (ended.exit_code, ended.output) == (7, b"a" * 11)
    assert len(ended.errors) == child_processes.ERRORS_KEPT
    assert ended.errors.endswith(b"end\n")


@BOTH
def test_a_program_ends_although_what_it_left_running_holds_its_output(run):
    ended = run(["/bin/sh", "-c", "sleep 60 & echo $!"])
    os.kill(int(ended.output), 9)
    assert ended.exit_code == 0


def test_a_program_that_takes_too_long_is_killed_with_its_group(tmp_path):
    with pytest.raises(TookTooLong, match="took longer than"):
        run_to_end(
            ["/bin/sh", "-c", f"sleep 60 & echo $! > {tmp_path}/pid; wait"], env=clean_environment(), seconds=0.4
        )
    pid = tmp_path / "pid"
    assert not pid.exists() or not pid.read_text() or _is_gone(int(pid.read_text()))


def test_who_cancels_the_wait_kills_the_program(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def main():
        argv = ["/bin/sh", "-c", f"sleep 60 & echo $! > {pipe}; wait"]
        task = asyncio.ensure_future(run_beside(argv, env=clean_environment()))
        pid = int(await asyncio.to_thread(pipe.read_text))
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), pid

    cancelled, pid = asyncio.run(main())
    assert cancelled
    assert _is_gone(pid)


@BOTH
def test_a_program_that_is_not_there_is_an_error_and_leaves_nothing_open(run):
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        run(["no-such-program"])
    assert len(list(Path("/dev/fd").iterdir())) == before


def _is_gone(pid):
    """Whether it ends: what was killed may take a moment on a busy machine. One that nobody has collected has ended."""
    try:
        end = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([end], [], [], PATIENCE)[0])
    finally:
        os.close(end)


LEAVES_A_WRITER = ["sh", "-c", "while sleep 0.05; do echo x || exit; done & exit 3"]


@BOTH
def test_who_waits_for_a_program_does_not_wait_for_what_it_left_behind_however_much_that_writes(run):
    assert run(LEAVES_A_WRITER).exit_code == 3
