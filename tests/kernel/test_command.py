"""Commands as real processes: what they see, how they end, and that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from wakeful.errors import InvalidJob, SchedulerError
from wakeful.kernel.command.leftovers import kill_leftover
from wakeful.kernel.command.process_group import exit_by_thread
from wakeful.kernel.command.result import CommandFailed, CommandResult, CommandTimedOut
from wakeful.kernel.command.run import Limits, run_command
from wakeful.kernel.command.spec import CommandSpec

QUICK = Limits(grace=0.2, drain=0.1)
PATIENT = Limits(grace=30.0, drain=30.0)
RUN = {"WAKEFUL_RUN_ID": "run_7", "WAKEFUL_JOB": "backup"}
WHOLE_GROUP = "exec 9>line; "  # everything the shell starts holds the lifeline too


def sh(script, *args, **fields):
    return CommandSpec(("sh", "-c", script, "sh", *map(str, args)), **fields)


def python(script, **fields):
    return CommandSpec((sys.executable, "-c", script), **fields)


@pytest.fixture
def log_path(tmp_path):
    return tmp_path / "logs" / "run_7.log"


@pytest.fixture
def run(log_path):
    def run(spec, **options):
        options = {"run_env": RUN, "log_path": log_path, "limits": PATIENT} | options
        return asyncio.run(run_command(spec, **options))

    return run


class Lifeline:
    """A FIFO that processes hold open for writing: a line says they are there, its end that all of them are gone."""

    def __init__(self, folder):
        self.path = folder / "line"
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def line(self):
        return self._wait().decode().strip()

    def gone(self):
        while self._wait():
            continue
        return True

    def _wait(self):
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        assert poll.poll(20_000), "nothing came through the lifeline"
        return os.read(self._fd, 4096)

    def close(self):
        os.close(self._fd)


@pytest.fixture
def lifeline(tmp_path):
    lifeline = Lifeline(tmp_path)
    yield lifeline
    lifeline.close()


def descriptors():
    gc.collect()
    return sorted(entry.name for entry in Path("/dev/fd").iterdir())


def children():
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found.update((task / "children").read_text().split())
    return found


@pytest.fixture(autouse=True)
def has_children():
    """Whether there are any that were not there before: a server that other tests use may be one."""
    before = children()
    return lambda: bool(children() - before)


# What a payload may say


def test_a_payload_with_everything_is_understood():
    spec = CommandSpec.from_payload(
        {
            "argv": ["backup.sh", "--full"],
            "cwd": "/srv",
            "env": {"LEVEL": "3"},
            "pass_env": ["TOKEN"],
            "timeout_ms": 60_000,
            "output_limit": 1000,
            "success_codes": [0, 2],
            "stdin": "yes\n",
        }
    )
    assert spec.argv == ("backup.sh", "--full")
    assert (spec.cwd, spec.env, spec.pass_env, spec.stdin) == ("/srv", {"LEVEL": "3"}, ("TOKEN",), "yes\n")
    assert (spec.timeout_ms, spec.output_limit, spec.success_codes) == (60_000, 1000, (0, 2))


def test_argv_alone_is_enough_and_null_means_the_default():
    assert CommandSpec.from_payload({"argv": ["true"], "cwd": None, "timeout_ms": None}) == CommandSpec(("true",))
    assert CommandSpec(("true",)).output_limit == 64 * 1024


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (None, "needs a payload such as"),
        (["true"], "needs a payload such as"),
        ({}, "needs argv"),
        ({"argv": []}, "non-empty list of strings"),
        ({"argv": "ls -l"}, "not one string: there is no shell"),
        ({"argv": ["ls", 3]}, r"argv\[1\] must be a string, not int"),
        ({"argv": [""]}, "begin with the name of a program"),
        ({"argv": ["ls", "a\0b"]}, r"argv\[1\] contains a NUL"),
        ({"argv": ["ls", "\ud800"]}, r"argv\[1\] contains half a surrogate pair"),
        ({"argv": ["ls", "x" * 200_000]}, r"argv\[1\] must have 0 to 131071 bytes, not 200000"),
        ({"argv": ["ls", *["x" * 100_000] * 6]}, "use stdin for more"),
        ({"argv": ["ls"], "timeout": 3}, "no 'timeout': did you mean 'timeout_ms'"),
        ({"argv": ["ls"], "enviroment": {}}, "no 'enviroment'"),
        ({"argv": ["ls"], "pass-env": []}, "did you mean 'pass_env'"),
        ({"argv": ["ls"], "xyzzy": 1}, "known are argv, cwd, env"),
        ({"argv": ["ls"], 5: 1}, "no 5: known are"),
        ({"argv": ["ls"], "cwd": ""}, "cwd must have 1 to"),
        ({"argv": ["ls"], "cwd": ["/"]}, "cwd must be a string"),
        ({"argv": ["ls"], "env": ["A=1"]}, "env must map"),
        ({"argv": ["ls"], "env": {"A=B": "1"}}, "cannot contain '='"),
        ({"argv": ["ls"], "env": {"": "1"}}, "env name must have 1"),
        ({"argv": ["ls"], "env": {"A": 1}}, r"env\['A'\] must be a string"),
        ({"argv": ["ls"], "env": {"A": "x\0"}}, r"env\['A'\] contains a NUL"),
        ({"argv": ["ls"], "pass_env": "HOME"}, "pass_env must be a list"),
        ({"argv": ["ls"], "timeout_ms": 0}, "timeout_ms must be a whole number from 1"),
        ({"argv": ["ls"], "timeout_ms": True}, "timeout_ms must be a whole number"),
        ({"argv": ["ls"], "output_limit": -1}, "output_limit must be a whole number from 0"),
        ({"argv": ["ls"], "output_limit": 10**9}, "output_limit must be a whole number"),
        ({"argv": ["ls"], "success_codes": []}, "non-empty list of exit codes"),
        ({"argv": ["ls"], "success_codes": [256]}, "from 0 to 255"),
        ({"argv": ["ls"], "stdin": "x" * 5_000_000}, "stdin must have 0 to"),
    ],
)
def test_a_wrong_payload_is_refused_in_one_sentence(payload, sentence):
    with pytest.raises(InvalidJob, match=sentence) as refusal:
        CommandSpec.from_payload(payload)
    assert "\n" not in str(refusal.value)


# What a command is given


@pytest.mark.promise("H17")
def test_the_arguments_reach_the_program_unchanged_because_there_is_no_shell(run):
    words = ["$HOME", "a b", "*", "; echo no", "`id`", "", "ü\n"]
    spec = CommandSpec((sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *words))
    assert json.loads(run(spec).output) == words


def test_a_command_sees_a_clean_environment_and_what_it_was_given(run, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    monkeypatch.setenv("WANTED", "passed through")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.delenv("TZ", raising=False)
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    seen = json.loads(run(python(script, env={"LEVEL": "3"}, pass_env=("WANTED", "NOT_SET"))).output)
    # What the interpreter or the system's loader adds by itself is not ours.
    seen = {name: text for name, text in seen.items() if name not in ("LC_CTYPE", "__CF_USER_TEXT_ENCODING")}
    allowed = {"PATH", "HOME", "LANG", "USER", "LOGNAME", "SHELL", "TMPDIR"}
    assert {name for name in seen if not name.startswith("LC_")} - allowed == {"LEVEL", "WANTED", *RUN}
    assert (seen["LEVEL"], seen["WANTED"], seen["LC_TIME"]) == ("3", "passed through", "C")
    assert seen["HOME"] == "/somewhere"


def test_the_run_it_belongs_to_cannot_be_overridden_by_the_job(run):
    assert run(sh('echo "$WAKEFUL_RUN_ID $HOME"', env={"WAKEFUL_RUN_ID": "fake", "HOME": "/h"})).output == "run_7 /h\n"


def test_the_program_is_looked_up_on_the_path_the_command_will_see(run, tmp_path):
    tool = tmp_path / "bin" / "my-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    assert run(CommandSpec(("my-tool",), env={"PATH": str(tool.parent)})).output == "found\n"


def test_a_program_with_a_slash_is_relative_to_its_folder(run, tmp_path):
    (tmp_path / "job.sh").write_text("#!/bin/sh\npwd\n")
    (tmp_path / "job.sh").chmod(0o755)
    assert run(CommandSpec(("./job.sh",), cwd=str(tmp_path))).output == f"{tmp_path.resolve()}\n"


def test_a_tilde_in_the_folder_is_the_home_of_who_runs_it(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "repo").mkdir()
    assert run(CommandSpec(("pwd",), cwd="~/repo")).output == f"{(tmp_path / 'repo').resolve()}\n"


def test_without_stdin_there_is_nothing_to_read(run):
    assert run(CommandSpec(("cat",))).output == ""


def test_a_long_stdin_reaches_a_program_that_prints_before_it_reads(run):
    text = "line ü\n" * 100_000
    script = "import sys; print('x' * 500_000); print(len(sys.stdin.buffer.read()))"
    assert run(python(script, stdin=text)).output.endswith(f"\n{len(text.encode())}\n")


def test_a_program_that_ignores_its_stdin_is_no_error(run):
    assert run(CommandSpec(("true",), stdin="x" * 1_000_000)).error() is None


# How it ends


@pytest.mark.promise("H17")
def test_both_streams_are_kept_in_the_order_they_were_written(run, log_path):
    result = run(sh("for i in 1 2 3; do echo out $i; echo err $i >&2; done"))
    assert result.output == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert (result.exit_code, result.error(), result.truncated, result.notes) == (0, None, False, ())
    assert result.output_bytes == len(result.output)


@pytest.mark.promise("C8")
@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ("exit 3", 3, "exited with code 3"),
        ("echo one; echo 'disk is full' >&2; echo; exit 1", 1, "exited with code 1: disk is full"),
        ("printf 'a\\033[31m red\\t\\000 word'; exit 1", 1, "exited with code 1: a [31m red � word"),
        ("kill -KILL $$", -9, "killed by SIGKILL (out of memory?)"),
        ("echo bye; kill -SEGV $$", -11, "killed by SIGSEGV: bye"),
    ],
)
def test_a_failure_is_one_sentence_with_the_last_words(run, script, code, sentence):
    result = run(sh(script))
    assert (result.exit_code, result.error()) == (code, sentence)


def test_a_signal_without_a_name_is_given_by_number():
    assert CommandResult(-40, "", 0, truncated=False, log_file=None).error() == "killed by signal 40"


def test_long_last_words_are_cut(run):
    error = run(python("print('x' * 5000); raise SystemExit(1)")).error()
    assert error.endswith("xxx…")
    assert len(error) < 250


def test_exit_codes_the_job_calls_success_are_success(run):
    assert run(sh("exit 2", success_codes=(0, 2))).error() is None
    assert run(sh("exit 0", success_codes=(2,))).error() == "exited with code 0"


@pytest.mark.promise("C8")
@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (CommandSpec(("no-such-tool",), env={"PATH": "/bin:/usr/bin"}), r"'no-such-tool' was not found on PATH \(/bin"),
        (CommandSpec(("./missing",), cwd="/"), "'./missing' does not exist in '/'"),
        (CommandSpec(("/missing/tool",)), "'/missing/tool' does not exist$"),
        (CommandSpec(("true",), cwd="/no/such/folder"), "cwd '/no/such/folder' cannot be used: No such file"),
        (CommandSpec(("true",), cwd="/dev/null"), "cwd '/dev/null' cannot be used: Not a directory"),
        (CommandSpec(("/",)), "'/' may not be executed"),
        (
            CommandSpec(("true", "x" * 10_000_000), env={"PATH": "/bin:/usr/bin"}),
            "could not be started: Argument list too long",
        ),
        (CommandSpec(("true", "\ud800")), "could not be started: .*surrogates not allowed"),
    ],
)
def test_a_command_that_cannot_start_says_why(run, log_path, spec, sentence):
    before = descriptors()
    with pytest.raises(CommandFailed, match=sentence) as failure:
        run(spec)
    assert isinstance(failure.value, SchedulerError)
    assert descriptors() == before
    assert list(log_path.parent.iterdir()) == []


def test_a_program_that_is_nowhere_is_not_found_though_part_of_the_path_is_closed(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o000)
    with pytest.raises(CommandFailed, match="was not found on PATH"):
        run(CommandSpec(("no-such-tool",), env={"PATH": f"{tmp_path}/closed:/bin"}))


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        ("#!/bin/sh\n", 0o644, "may not be executed: .*chmod"),
        ("#!/no/such/shell\n", 0o755, "names an interpreter in its first line that does not exist"),
        ("echo hello\n", 0o755, "is not a program: a script needs a first line"),
    ],
)
def test_a_broken_script_says_what_is_broken(run, tmp_path, text, mode, sentence):
    (tmp_path / "job").write_text(text)
    (tmp_path / "job").chmod(mode)
    with pytest.raises(CommandFailed, match=sentence):
        run(CommandSpec(("./job",), cwd=str(tmp_path)))
    with pytest.raises(CommandFailed, match=sentence):
        run(CommandSpec(("job",), env={"PATH": str(tmp_path)}))


@pytest.mark.promise("C8")
def test_an_exit_code_that_somebody_else_took_is_an_error_not_a_success(run):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(CommandFailed, match="SIGCHLD must not be ignored"):
            run(CommandSpec(("true",)))
    finally:
        signal.signal(signal.SIGCHLD, before)


# What it prints


def test_long_output_keeps_head_and_tail_in_the_row_and_all_of_it_in_the_log(run, log_path):
    result = run(python("for i in range(1000): print(f'line {i:04}')", output_limit=200))
    assert result.truncated
    assert result.output.startswith("line 0000\n")
    assert result.output.endswith("line 0999\n")
    assert f"\n[… {result.output_bytes - 200} bytes left out …]\n" in result.output
    assert result.log_file == log_path
    assert log_path.read_text() == "".join(f"line {i:04}\n" for i in range(1000))
    assert stat.S_IMODE(log_path.stat().st_mode) == 0o600
    assert list(log_path.parent.iterdir()) == [log_path]


@pytest.mark.parametrize("spec", [CommandSpec(("true",)), CommandSpec(("echo", "short"))])
def test_no_file_stays_when_the_row_holds_everything(run, log_path, spec):
    assert run(spec).log_file is None
    assert list(log_path.parent.iterdir()) == []


def test_the_log_can_be_followed_while_the_command_runs(tmp_path, log_path):
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)

    async def main():
        script = "exec 8<go; echo first; read x <&8; echo second; read x <&8"
        task = asyncio.create_task(
            run_command(sh(script, cwd=str(tmp_path)), run_env=RUN, log_path=log_path, limits=PATIENT)
        )
        await appears(log_path, b"first\n")
        os.write(go, b"\n")
        await appears(log_path, b"first\nsecond\n")
        os.write(go, b"\n")
        return await task

    assert asyncio.run(main()).output == "first\nsecond\n"
    os.close(go)


async def appears(path, content):
    """Wait until the file has that content; a turn of the loop and of the disk's thread between two looks."""
    async with asyncio.timeout(20):
        while not path.exists() or path.read_bytes() != content:
            await asyncio.to_thread(os.sched_yield)


@pytest.mark.promise("C8")
def test_a_command_that_prints_without_end_fills_neither_memory_nor_disk(run, log_path):
    megabyte = 1024 * 1024
    limits = Limits(grace=30, drain=30, log_bytes=megabyte)
    script = "import os\nfor i in range(64): os.write(1, bytes([65 + i % 26]) * 1048576)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(python(f"{script}\nprint('the end')"), limits=limits)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.exit_code == 0
    assert result.output_bytes == 64 * megabyte + len("the end\n")
    assert result.output.endswith("the end\n")
    assert len(result.output) < 70_000
    log = log_path.read_bytes()
    assert log[:megabyte] == b"A" * megabyte
    assert log[megabyte:].decode() == f"\n[The log ends here: output beyond {megabyte} bytes is not kept.]\n"
    assert result.notes == (f"The log was cut after {megabyte} bytes.",)
    assert grown < 16 * (megabyte if sys.platform == "darwin" else 1024)


def test_garbage_becomes_text_that_every_database_takes(run):
    script = "import os; os.write(1, bytes(range(256)) * 4 + b'\\xed\\xa0\\x80 \\xf0\\x9f\\x98\\x80 end')"
    output = run(python(script)).output
    assert "\0" not in output
    assert output.endswith("😀 end")
    assert output.encode().decode() == output


def test_known_secrets_are_kept_neither_in_the_row_nor_in_the_log(run, log_path):
    script = "import sys; sys.stdout.write('the token is hunter2hunter2, hun'); sys.stdout.flush(); print('ter')"
    result = run(python(script, output_limit=20), secrets=("hunter2hunter2",))
    assert log_path.read_text() == "the token is ***, hunter\n"
    assert "hunter2" not in result.output


@pytest.mark.promise("C8")
def test_a_log_that_cannot_be_made_does_not_fail_the_command(run, tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run(sh("echo fine", output_limit=2), log_path=tmp_path / "file" / "run.log")
    assert (result.exit_code, result.output_bytes, result.log_file) == (0, 5, None)
    assert [note.split(":")[0] for note in result.notes] == [
        "It could not be noted which process this is (File exists)",
        "The log could not be written after 0 bytes",
    ]


@pytest.mark.promise("C8")
def test_a_disk_that_fills_up_does_not_fail_the_command(run, log_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        result = run(python("for i in range(50): print('x' * 10_000)\nprint('end')"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 0
    assert result.output.endswith("\nend\n")
    assert result.output_bytes == 50 * 10_001 + 4
    assert result.notes == ("The log could not be written after 100000 bytes: File too large.",)
    assert result.log_file == log_path
    assert log_path.stat().st_size == 100_000


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
    async with asyncio.timeout(10):
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
        await cancelled(await started(lifeline, f"({child}) & wait", tmp_path, log_path, Limits(grace=30, drain=0.1)))

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
    assert lifeline.gone(), "the noisy one dies of its own when nobody reads"


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
from wakeful.kernel.command.run import run_command
from wakeful.kernel.command.spec import CommandSpec
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
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    lines = {
        "started": [{"run": "run_7"}, {"pid": stranger.pid, "started": "another boot 1"}],
        "run": [{"run": "run_8"}],
        "nothing": [{}, {"pid": stranger.pid, "started": None}],
        "garbage": [17, {"pid": "x", "started": []}],
        "boot": [{"run": ""}, {"pid": 1, "started": ""}],
    }[noted]
    note = log_path.with_name(log_path.name + ".pid")
    note.parent.mkdir()
    note.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert kill_leftover(log_path) is False
    assert not note.exists()
    stranger.terminate()
    assert stranger.wait() == -signal.SIGTERM


def test_a_scheduler_started_by_the_command_it_recovers_does_not_kill_itself(tmp_path, log_path):
    note = log_path.with_name(log_path.name + ".pid")
    note.parent.mkdir()
    script = f"""
import os
from pathlib import Path
from wakeful.kernel.command.leftovers import kill_leftover, start_of
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
