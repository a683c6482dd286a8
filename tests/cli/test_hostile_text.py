"""Text from outside cannot steer the reader's terminal, whichever command shows it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pty
import re
import subprocess
import sys
from io import StringIO

import pytest

from wakeful import Every, Scheduler
from wakeful.console.humanize import plain, visible
from wakeful.console.output import LogFormatter
from wakeful.console.tables import print_json
from wakeful.errors import SchedulerError

#: Clear the screen, set the title, C1's own introducer, erase, and turn the line around.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x08\u202egnol\u2066"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SCRIPT = f"import sys; sys.stdout.write('said ' + {EVIL!r} + '\\n'); sys.exit(3)"


async def allowed(work):
    """Do it if such a text is let in at all."""
    try:
        return await work
    except SchedulerError:
        return None


@pytest.fixture
def hostile(store):
    """A store in which everything that may hold such a text does."""

    async def main():
        async with Scheduler(f"sqlite:///{store}", node="node" + EVIL) as scheduler:

            @scheduler.on_job_due("raising")
            async def raising(run):
                raise ValueError("failed " + EVIL)

            @scheduler.on_job_due("saying")
            async def saying(run):
                return {"answer": "fine " + EVIL, EVIL: 1}

            ended = asyncio.Event()
            scheduler.subscribe(lambda event: ended.set() if event.type != "started" else None, "run")
            await scheduler.start()
            for kind in ("command", "raising", "saying"):
                job = await scheduler.add_job(kind, Every("1h"), kind=kind, payload=_payload(kind))
                ended.clear()
                await scheduler.run_job(job)
                async with asyncio.timeout(30):
                    await ended.wait()
                await scheduler.pause_job(job, "note " + EVIL)
            jobs = [job.id for job in await scheduler.list_jobs()]
            await allowed(scheduler.create_token("token" + EVIL, "viewer"))
            await scheduler.stop()
            return jobs

    return asyncio.run(main())


def _payload(kind):
    if kind == "command":
        return {"argv": [sys.executable, "-c", SCRIPT], "env": {"NAME": "x" + EVIL}, "cwd": "/tmp"}  # noqa: S108
    return {"text": EVIL, EVIL: [EVIL]}


def test_no_command_prints_what_would_steer_the_terminal(hostile, wakeful):
    everywhere = [("list",), ("runs",), ("next",), ("status",), ("doctor",), ("alert", "list", "--all")]
    everywhere += [("node", "list", "--all"), ("token", "list"), ("show", "nothing" + EVIL), ("nosuch" + EVIL,)]
    everywhere += [("remove", "-y", "x" + EVIL), ("copy", "a" + EVIL, "b"), ("list", "--db", "no" + EVIL)]
    everywhere += [("next", EVIL), ("token", "revoke", EVIL), ("node", "drain", EVIL), ("check", EVIL)]
    everywhere += [("explain", EVIL), ("logs", EVIL), ("approve", EVIL), ("serve", "--app", EVIL)]
    for job in hostile:
        everywhere += [(command, job) for command in ("show", "explain", "runs", "resume", "pause", "run", "retry")]
        everywhere += [("run", job, "--dry-run"), ("edit", job, "--every", "2h"), ("cancel", job)]
    everywhere += [("remove", "-y", job) for job in hostile]
    for command in everywhere:
        said = wakeful(*command)
        raw = said.err if command[0] == "run" and len(command) == 2 else said.out + said.err
        assert not UNSEEN.search(raw), (command, raw)


def test_a_run_is_shown_with_its_escape_sequences_made_visible(hostile, wakeful):
    [run] = [run for run in wakeful("runs", "--json").json if run["kind"] == "command"]
    shown = wakeful("show", run["id"])
    assert r"said \x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x08\u202egnol\u2066" in shown.out
    assert not UNSEEN.search(shown.out + wakeful("explain", run["id"]).out)


@pytest.mark.parametrize("command", [("list",), ("runs",), ("node", "list"), ("status",), ("doctor",)])
def test_json_is_the_same_value_without_a_raw_control_character(hostile, wakeful, command):
    said = wakeful(*command, "--json")
    assert not UNSEEN.search(said.out)
    if command == ("runs",):
        assert any(EVIL in (run["output"] or {}).get("answer", "") for run in json.loads(said.out))


def test_every_value_survives_as_json(capsys):
    value = {"text": "".join(map(chr, range(0x20, 0x2100))) + "\U000e0041 😀\r\n\t", "line": "a\nb"}
    print_json(value)
    said = capsys.readouterr().out
    assert json.loads(said) == value
    assert not UNSEEN.search(said)


def test_ordinary_text_in_any_script_stays_as_it_is():
    for text in ("Grüße, 世界\u3000!", "👩\u200d💻", "a\tb\nc", "1\u00a0000 €"):
        assert visible(text) == text
    assert plain(" two\r\nlines\t here ") == "two lines here"


def test_a_name_cannot_forge_a_line_of_the_log():
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter("%(levelname)s %(message)s"))
    log = logging.getLogger("wakeful.tests.forging")
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    log.info("job %s was added", "x\nINFO all is well\x1b[1A")
    log.error("it failed", exc_info=ValueError("first\x1b[2J"))
    log.removeHandler(handler)
    first, second, *trace = stream.getvalue().splitlines()
    assert first == r"INFO job x\nINFO all is well\x1b[1A was added"
    assert second == "ERROR it failed"
    assert trace[-1] == r"ValueError: first\x1b[2J"


def on_a_terminal(folder, *argv):
    """What a command writes to a terminal, byte for byte."""
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "TERM": "xterm", "TZ": "UTC"}
    command = [sys.executable, "-m", "wakeful.cli", *argv]
    with subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
    os.close(ours)
    return said.decode()


def _read(fd):
    try:
        return os.read(fd, 4096)
    except OSError:  # how a terminal reports that its writer is gone
        return b""


def test_logs_shows_escape_sequences_on_a_terminal_and_hands_them_on_through_a_pipe(here, wakeful):
    for name, size in (("short", 1), ("long", 20_000)):  # in the row, and in a file of its own
        script = f"import sys\nfor n in range({size}): sys.stdout.buffer.write('é{EVIL}\\r\\n'.encode())"
        assert wakeful("add", name, "--every", "1h", "--", sys.executable, "-c", script).code == 0
        assert wakeful("run", name).code == 0
        shown = on_a_terminal(here, "logs", name).replace("\r\n", "\n")
        assert not UNSEEN.search(shown)
        assert shown == ("é" + visible(EVIL) + "\n") * size
        piped = subprocess.run([sys.executable, "-m", "wakeful.cli", "logs", name], capture_output=True, check=True)
        assert piped.stdout == f"é{EVIL}\r\n".encode() * size


def test_a_failure_is_one_line_and_its_trace_below_it_which_looks_like_no_other_line():
    record = logging.LogRecord("wakeful.serve", logging.WARNING, "here", 1, "job %s", ("failed\n2026",), None)
    record.trace = "Traceback:\n  File\n2026-01-01 INFO forged \x1b[2J\n"
    text = LogFormatter("%(levelname)s %(message)s").format(record)
    assert text == ("WARNING job failed\\n2026\n    Traceback:\n      File\n    2026-01-01 INFO forged \\x1b[2J")
