"""What a command prints: kept, bounded, and never in the way."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import stat
import sys

import pytest

from tests.kernel.commanding import PATIENT, RUN, python, sh
from wakeful.domains.command.run import CommandLimits, run_command
from wakeful.domains.command.spec import CommandSpec

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
    async with asyncio.timeout(120):
        while not path.exists() or path.read_bytes() != content:
            await asyncio.to_thread(os.sched_yield)


@pytest.mark.promise("C8")
def test_a_command_that_prints_without_end_fills_neither_memory_nor_disk(run, log_path):
    megabyte = 1024 * 1024
    limits = CommandLimits(grace=30, drain=30, log_bytes=megabyte)
    script = "import os\nfor i in range(64): os.write(1, bytes([65 + i % 26]) * 1048576)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(python(f"{script}\nprint('the end')"), limits=limits)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.exit_code == 0
    assert result.output_bytes == 64 * megabyte + len("the end\n")
    assert result.output.endswith("the end\n")
    assert len(result.output) < 70_000
    log = log_path.read_bytes()
    assert len(log) <= megabyte
    assert log[: megabyte // 4] == b"A" * (megabyte // 4)
    assert log.endswith(b"the end\n")
    (left_out,) = re.findall(r"\[… (\d+) bytes left out: a log has at most 1048576 …\]", log.decode())
    assert result.notes == (f"The log was cut: {left_out} bytes of its middle are left out.",)
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
    assert log_path.read_text() == "the token is [redacted], hunter\n"
    assert "hunter2" not in result.output


@pytest.mark.parametrize("limit", [20, 64 * 1024])
def test_values_given_to_a_command_are_kept_neither_in_the_row_nor_in_the_log(run, log_path, monkeypatch, limit):
    monkeypatch.setenv("PASSED", "passed-secret")
    monkeypatch.setenv("HOME", "/somewhere")
    script = (
        "import os, sys\n"
        "for name in ('GIVEN', 'PASSED', 'SHORT', 'HOME', 'LANG'):\n"
        "    half = len(os.environ[name]) // 2\n"
        "    for part in ('<', os.environ[name][:half], os.environ[name][half:] + '>'):\n"
        "        os.write(1, part.encode())\n"
        "sys.exit('ended with ' + os.environ['GIVEN'])"
    )
    given = {"GIVEN": "given-secret", "SHORT": "short", "LANG": "C.UTF-8"}
    result = run(python(script, env=given, pass_env=("PASSED", "HOME"), output_limit=limit))
    kept = log_path.read_text() if limit == 20 else result.output
    assert kept == "<[redacted]><[redacted]><short></somewhere><C.UTF-8>ended with [redacted]\n"
    assert "secret" not in f"{result.output} {result.error()}"
    assert limit == 20 or str(result.error()).endswith("ended with [redacted]")


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
