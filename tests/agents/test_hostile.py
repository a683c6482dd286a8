"""Agents that behave badly: each call ends as it should, with bounded memory and nothing left running."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid

import pytest

from tests.agents.test_runners import Caller
from tests.cli.terminal import lives
from wakeful.clock import SystemClock
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Limited, Overloaded

LINES = {"format": "jsonl", "reply": "reply", "session": "session", "match": {"type": "result"}}


@pytest.fixture
def call(tmp_path):
    return Caller(tmp_path)


HARNESS = """
import asyncio, json, resource, sys
from pathlib import Path
from wakeful.domains.agents.runners.calling import call_agent
from wakeful.domains.agents.runners.turn import Surroundings, Turn

class Run:
    id, job = sys.argv[2], "a.b"

def call(script, output):
    runner = {"start": ["sh", "-c", script], "output": output}
    around = Surroundings(Path(sys.argv[1]), {"WAKEFUL_RUN_ID": Run.id}, lambda: 0, lambda session: None)
    return asyncio.run(call_agent(runner, Turn("x", None, "a", Run(), "b"), around))

call("echo small", "text")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ending = call(sys.argv[3], json.loads(sys.argv[4]))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = sum(path.stat().st_size for path in Path(sys.argv[1]).rglob("*") if path.is_file())
text = ending.reply.text
print(json.dumps([type(ending).__name__, text[:20], len(text), (after - before) // 1024, size]))
"""
GIGABYTE = "head -c 1073741824 /dev/zero | tr '\\0' x"


@pytest.mark.parametrize(
    ("script", "output", "reply"),
    [
        (GIGABYTE, "text", "x" * 20),
        (f'{GIGABYTE}; echo; echo \'{{"type": "result", "reply": "done"}}\'', LINES, "done"),
        (f"{GIGABYTE} >&2; echo fine", "text", "fine"),
    ],
    ids=["text", "one line of JSON lines", "standard error"],
)
def test_a_gigabyte_of_output_is_bounded_in_memory_on_disk_and_in_the_reply(tmp_path, script, output, reply):
    argv = [sys.executable, "-c", HARNESS, str(tmp_path), f"run_{uuid.uuid4().hex}", script, json.dumps(output)]
    printed = subprocess.run(argv, capture_output=True, check=True, text=True).stdout
    kind, text, length, megabytes, size = json.loads(printed)
    assert (kind, text) == ("Answered", reply)
    assert length <= 100_000
    assert megabytes < 64
    assert size <= 101 * 1024 * 1024


CHILDREN = """
import signal, subprocess
pids = [subprocess.Popen(["sleep", "1000"]).pid, subprocess.Popen(["sleep", "1000"], start_new_session=True).pid]
here, there = os.pipe()
if os.fork() == 0:  # a daemon, as they are made
    os.setsid()
    if os.fork() == 0:
        os.write(there, str(os.getpid()).encode())
        signal.pause()
    os._exit(0)
os.wait()
print(json.dumps([*pids, int(os.read(here, 20))]))
"""


def test_children_do_not_outlive_the_agent_not_even_those_that_left_its_group(call):
    class Run:
        id, job = f"run_{uuid.uuid4().hex}", "a.b"

    call.run, call.environment = Run, {"WAKEFUL_AGENT": "a"}
    began = SystemClock().boot()
    ending = call(start=call.script(CHILDREN))
    assert isinstance(ending, Answered)
    pids = json.loads(ending.reply.text)
    assert [lives(pid) for pid in pids] == [False, False, False]
    assert SystemClock().boot() - began < 200_000  # their output was still open


STAYS = """
print(json.dumps({"type": "thread.started", "thread_id": "t-1"}), flush=True)
print(json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}}), flush=True)
print(json.dumps(LAST), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ({"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}}, Answered),
        ({"type": "turn.failed", "error": {"message": "Something broke."}}, CallFailed),
    ],
)
def test_a_tool_that_stays_after_its_last_word_is_ended_and_its_answer_counts(call, last, kind, monkeypatch):
    folder = call.folder / "bin"
    folder.mkdir()
    (folder / "codex").write_text(f"#!{sys.executable}\nimport json, time\nLAST = {last!r}\n{STAYS}")
    (folder / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    began = SystemClock().boot()
    ending = call(preset="codex", timeout=600_000)
    assert isinstance(ending, kind)
    assert SystemClock().boot() - began < 500_000
    if kind is Answered:
        assert ending.reply[:2] == ("Done.", "t-1")
    else:
        assert ending.why == "Something broke."


ASKS = """
sys.stdin.read()
try:
    answer = open("/dev/tty").readline()
except OSError:
    answer = sys.stdin.readline()
print("Continue? [y/n]", flush=True)
if not answer:
    time.sleep(1000)
print("yes")
"""


def test_a_tool_that_waits_for_an_answer_gets_none_and_ends_with_its_time_limit(call):
    ending = call(start=call.script(ASKS), timeout=700)
    said, log, outcome = ending[:3]
    assert (said, outcome) == ("stopped after its limit of 0.7 s: Continue? [y/n]", "timeout")
    assert log is not None  # what it printed is kept


@pytest.mark.parametrize(
    ("script", "runner", "ending"),
    [
        ("pass", {}, Answered),  # an empty text is a reply, and its outcome ok-empty
        ("pass", {"output": LINES}, "it ended without a result"),
        ('print(\'{"type": "result"}\')', {"output": LINES}, "its result has no reply"),
        ('print(\'{"type": "result", "reply": ""}\')', {"output": LINES}, Answered),
        ("print('litellm.APIError: down')", {"failure": {"pattern": "APIError"}}, "litellm.APIError: down"),
        ('print(\'{"type": "result", "reply": "ok"}\'); sys.exit(3)', {"output": LINES}, "exited with code 3"),
        (
            'print(\'{"type": "result", "reply": "ok"}\'); sys.exit(3)',
            {"output": LINES, "success": {"pattern": '"type": "result"'}},
            Answered,
        ),
        (
            'print(\'{"type": "result", "reply": "", "status": "ERROR", "error": "Quota reached"}\')',
            {"output": {**LINES, "error": "error"}, "rate_limit": {"pattern": "quota reached"}},
            Limited,
        ),
        ("print('half a li'); os.kill(os.getpid(), 9)", {}, "killed by SIGKILL"),
    ],
)
def test_what_a_tool_prints_decides_where_its_exit_code_lies(call, script, runner, ending):
    found = call(start=call.script(script), **runner)
    if isinstance(ending, str):
        assert isinstance(found, CallFailed)
        assert found.why.startswith(ending)
    else:
        assert isinstance(found, ending)


@pytest.mark.parametrize(
    ("text", "preset"),
    [("hit your " * 100_000, "claude"), ("exhausted your " * 60_000, "gemini"), ("[\n" * 300_000, "gemini")],
)
def test_output_that_is_made_to_be_hard_to_judge_is_judged_at_once(call, text, preset, monkeypatch):
    folder = call.folder / "bin"
    folder.mkdir()
    script = f"import sys\nsys.stdout.write({text[: len(text) // 2]!r} * 2)\nsys.exit(1)\n"
    (folder / preset).write_text(f"#!{sys.executable}\n{script}")
    (folder / preset).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert isinstance(call(preset=preset), CallFailed | Limited | Overloaded)
