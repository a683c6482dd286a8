"""Runners against fakes of the real tools, which print what those print; and programs that behave badly."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from wakeful.callables import beside
from wakeful.domains.agents.runners.calling import call_agent
from wakeful.domains.agents.runners.spec import command_form, takes_paths
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Gone, Limited, Overloaded, Surroundings, Turn
from wakeful.domains.agents.runners.versions import installed_version
from wakeful.errors import InvalidJob

FAKES = Path(__file__).parent / "fakes"
NOW = 1_789_900_000_000  # 2026-09-20T10:26:40Z
PRESETS = ("claude", "codex", "gemini", "opencode")


class FakeRun:
    """What a runner needs of a run."""

    id, job = "run_1", "a.b"


class Caller:
    """Calls runners in one folder, and keeps the sessions it hears of."""

    run, environment = FakeRun, {}  # what else its program finds

    def __init__(self, folder):
        self.folder = folder
        self.sessions = []

    def __call__(self, prompt="hello", session=None, **runner):
        runner = {"cwd": str(self.folder), **{key.rstrip("_"): value for key, value in runner.items()}}
        environment = {"WAKEFUL_RUN_ID": self.run.id, **self.environment}
        around = Surroundings(self.folder / "logs", environment, lambda: NOW, self.sessions.append)
        return asyncio.run(call_agent(runner, Turn(prompt, session, "a", self.run(), "b"), around))

    def script(self, text):
        path = self.folder / "agent"
        path.write_text(f"#!{sys.executable}\nimport sys, os, json, time\n{text}")
        path.chmod(0o755)
        return [str(path)]


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    return Caller(tmp_path)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_starts_a_session_and_resumes_it(call, preset):
    first = call("one", preset=preset)
    assert isinstance(first, Answered)
    assert first.reply.text == "Said: one"
    assert call.sessions == [first.reply.session]
    second = call("two", session=first.reply.session, preset=preset)
    assert (second.reply.text, second.reply.session) == ("Said: two", first.reply.session)


def test_cost_and_tokens_are_those_the_tool_reports(call):
    assert call(preset="claude").reply[2:] == (0.083, 21012, 310)
    assert call(preset="codex").reply[2:] == (None, 18400, 240)
    assert call(preset="gemini").reply[2:] == (None, 5100, 200)
    assert call(preset="opencode").reply[2:] == (pytest.approx(0.0084), 17800, 80)


def test_the_version_of_the_tool_its_start_and_what_it_was_denied_are_known(call):
    tool = call("DENIED", preset="claude").tool
    assert tool == (NOW, "2.1.325", ("Bash(rm x)",))
    assert tool.shown() == {"started_at": "2026-09-20T10:26:40Z", "version": "2.1.325", "denied": ["Bash(rm x)"]}
    assert call(preset="codex").tool == (NOW, None, ())
    assert call(preset="scripted", args=["cat"]).tool is None


def test_the_version_of_a_program_is_that_of_the_package_it_is_in(tmp_path):
    package, links = tmp_path / "node_modules" / "@some" / "agent", tmp_path / "bin"
    program = package / "dist" / "cli.js"
    program.parent.mkdir(parents=True)
    links.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (links / "agent").symlink_to(program)
    (tmp_path / "node_modules" / "package.json").write_text('{"version": "9.9.9"}')  # that of no package
    environment = {"PATH": str(links)}
    assert installed_version("agent", environment) is None
    (package / "package.json").write_text('{"name": "@some/agent", "version": "1.2.3"}')
    os.utime(program, (1, 1))  # installed anew
    assert installed_version("agent", environment) == "1.2.3"
    assert installed_version("sh", {"PATH": "/bin"}) is None
    assert installed_version("no-such-agent", environment) is None


@pytest.mark.parametrize("preset", PRESETS)
def test_a_session_that_the_tool_does_not_know_is_gone(call, preset):
    assert isinstance(call(session="0199-none", preset=preset), Gone)


def test_a_rate_limit_is_recognised_with_the_time_the_tool_names(call):
    claude, codex, gemini, opencode = (call("LIMIT", preset=preset) for preset in PRESETS)
    assert {type(ending) for ending in (claude, codex, gemini, opencode)} == {Limited}
    assert claude[:2] == ("You've hit your session limit · resets 3:45pm", 1_790_000_000_000)
    assert (codex.until, gemini.until) == (1_790_175_900_000, NOW + 12_300)
    assert opencode[:2] == ("Rate limit exceeded", None)
    assert [ending.confirmed for ending in (claude, codex, gemini, opencode)] == [True, True, True, False]


def test_what_a_failed_tool_says_is_the_error(call):
    assert isinstance(call("OVERLOAD", preset="claude"), Overloaded)
    assert call("TURNS", preset="claude").why == "Reached maximum number of turns (3)"
    assert call("BROKEN", preset="opencode").why == "The model is gone"
    assert call("INTERRUPTED", preset="codex").why.startswith("exited with code 1")


def test_an_empty_reply_is_an_answer_and_a_missing_result_is_an_error(call):
    assert call("EMPTY", preset="claude").reply.text == ""
    nothing = call("NOTHING", preset="claude")
    assert isinstance(nothing, CallFailed)
    assert nothing.why.startswith("it ended without a result")


def test_a_reply_that_speaks_of_limits_is_a_reply(call):
    assert isinstance(call("Why did I hit my usage limit? Overloaded?", preset="claude"), Answered)
    text = call.script("print('Our limit reached the moon; try again in 30 days')")
    assert isinstance(call(start=text, rate_limit={"pattern": "limit reached"}), Answered)
    warns = call.script("print('near the usage limit', file=sys.stderr); print(json.dumps({'r': 'fine'}))")
    near = call(start=warns, output={"format": "json", "reply": "r"}, rate_limit={"pattern": "usage limit"})
    assert near.reply.text == "fine"


def test_the_prompt_goes_to_standard_input_which_is_then_closed(call):
    script = call.script("print(sys.argv[1:], sys.stdin.read(), sys.stdin.read() == '')")
    assert call("héllo", start=script).reply.text == "[] héllo True"
    assert call("a b", start=script, prompt_="argument").reply.text == "['a b']  True"
    assert call("a b", start=[*script, "--prompt={prompt}"]).reply.text == "['--prompt=a b']  True"
    assert call("{session} {x}", start=[*script, "{prompt}"]).reply.text == "['{session} {x}']  True"


def test_a_program_sees_a_short_list_of_variables_and_what_is_listed(call, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("PASSED", "yes")
    script = call.script("print(json.dumps(dict(os.environ)))")
    output = {"format": "json", "reply": "PASSED"}
    answer = call(start=script, env=["PASSED", "MODE=headless"], output=output)
    assert answer.reply.text == "yes"
    everything = call(start=call.script("print(sorted(os.environ))"), env=["PASSED", "MODE=headless"]).reply.text
    assert "CLAUDECODE" not in everything
    allowed = {"PATH", "HOME", "PWD", "LANG", "TZ", "TERM", "USER", "SHELL", "TMPDIR", "PASSED", "MODE"}
    seen = {name for name in eval(everything) if not name.startswith(("LC_", "WAKEFUL_"))}  # noqa: S307 - our own list
    assert seen <= allowed
    assert {"PASSED", "MODE", "TERM", "PWD"} <= seen


def test_a_value_that_a_runner_refers_to_is_in_no_output(call, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2-hunter2")
    script = call.script("print(os.environ['KEY'])")
    assert call(start=script, env=["KEY=${SECRET}"]).reply.text == "[redacted]"
    with pytest.raises(InvalidJob, match=r"runner.env.0 needs \$\{MISSING\}, which is not set"):
        call(start=script, env=["KEY=${MISSING}"])


def test_patterns_say_what_an_exit_code_does_not(call):
    script = call.script("print('Try again in 2 hours'); sys.exit(0)")
    assert call(start=script, failure={"pattern": "again"}).why == "Try again in 2 hours"
    both = {"failure": {"pattern": "again"}, "rate_limit": {"pattern": "try again"}}
    assert call(start=script, **both)[:2] == ("Try again in 2 hours", NOW + 7_200_000)
    assert isinstance(call(start=call.script("print('fine'); sys.exit(3)"), success={"pattern": "fine"}), Answered)


def test_a_reply_lies_at_a_path_and_ids_that_could_be_options_are_refused(call):
    script = call.script("print(json.dumps({'a': [{'text': 'first'}, {'text': 'last'}], 'id': '--evil', 'n': 3}))")
    output = {"format": "json", "reply": "a[-1].text", "session": "id", "tokens": ["n", "n"]}
    answer = call(start=script, output=output)
    assert answer.reply == ("last", None, None, 3, 3)
    assert call.sessions == []


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_the_short_form_of_output_knows_the_usual_names(call, output):
    said = {"type": "result", "result": "done", "session_id": "s-1", "total_cost_usd": 0.25, "is_error": False}
    usage = {"usage": {"input_tokens": 3, "output_tokens": 4}}
    answer = call(start=call.script(f"print(json.dumps({ {**said, **usage}!r}))"), output=output)
    assert answer.reply == ("done", "s-1", 0.25, 3, 4)


def test_a_session_is_reported_while_the_program_still_runs(call):
    script = call.script("print(json.dumps({'s': 'abc'}), flush=True); time.sleep(60)")
    output = {"format": "jsonl", "reply": "r", "session": "s"}
    ended = call(start=script, output=output, timeout=1500)
    assert (ended.outcome, call.sessions) == ("timeout", ["abc"])


def test_a_program_that_prints_much_is_bounded_and_its_result_is_found(call):
    lines = "for _ in range(200): print('x' * 20000)\nprint(json.dumps({'type': 'result', 'r': 'done'}))"
    output = {"format": "jsonl", "reply": "r", "match": {"type": "result"}}
    answer = call(start=call.script(lines), output=output)
    assert answer.reply.text == "done"
    assert Path(answer.log_file).stat().st_size > 4_000_000


@pytest.mark.promise("C8")
def test_everything_that_a_program_printed_is_kept_also_after_a_failure(call):
    lines = "print('looking', flush=True); print('no credit left', file=sys.stderr); sys.exit(3)"
    ended = call(start=call.script(lines))
    assert isinstance(ended, CallFailed)
    assert sorted(Path(ended.log_file).read_text().splitlines()) == ["[stderr] no credit left", "looking"]
    again = call(start=call.script("print('done')"))  # the same run calls its program again
    assert again.log_file == ended.log_file
    assert "no credit left" in Path(again.log_file).read_text()
    assert Path(again.log_file).read_text().endswith("\ndone\n")


@pytest.mark.parametrize(("preset", "name"), [("claude", "ANTHROPIC_API_KEY"), ("codex", "CODEX_API_KEY")])
def test_a_preset_passes_on_what_its_program_logs_in_with_and_nothing_else(call, monkeypatch, preset, name):
    monkeypatch.setenv(name, "sk-secret-value")
    monkeypatch.setenv("DATABASE_PASSWORD", "sk-other-value")
    program = call.script("print(json.dumps(dict(os.environ)))")
    monkeypatch.setenv("PATH", f"{call.folder}{os.pathsep}{os.environ['PATH']}")
    Path(program[0]).rename(call.folder / preset)
    ended = call(preset=preset)
    seen = json.loads(Path(ended.log_file).read_text().splitlines()[0])
    assert (seen[name], "DATABASE_PASSWORD" in seen) == ("[redacted]", False)


def test_a_program_that_is_not_there_is_named(call):
    assert call(start=["no-such-agent"]).why.startswith("'no-such-agent' was not found on PATH")


def test_a_python_function_is_loaded_from_its_file(call, tmp_path):
    file = tmp_path / "my_agents.py"
    file.write_text(
        "from wakeful.agents import Reply\n"
        "async def reply(turn):\n    return Reply(f'{turn.agent}: {turn.prompt}', session='s1', cost=0.5)\n"
        "def plain(turn):\n    return turn.prompt.upper()\n"
        "def wrong(turn):\n    return 5\n"
    )
    assert call("hi", python=f"{file}:reply").reply == ("a: hi", "s1", 0.5, None, None)
    assert call("hi", python=f"{file}:plain").reply.text == "HI"
    assert "returned a int" in call("hi", python=f"{file}:wrong").why
    assert "my_agents" not in sys.modules
    with pytest.raises(InvalidJob, match="has no function 'nothing'"):
        call("hi", python=f"{file}:nothing")


def test_files_of_one_name_do_not_meet_and_a_changed_one_is_loaded_again(call, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "json.py").write_text(f"def reply(turn):\n    return {name!r}\n")
        assert call(python=beside("json:reply", tmp_path / name)).reply.text == name
    assert call(python=f"{tmp_path / 'one' / 'json.py'}:reply").reply.text == "one"
    file = tmp_path / "one" / "json.py"
    (tmp_path / "one" / "words_beside.py").write_text("WORD = 'changed'\n")
    file.write_text("from words_beside import WORD\ndef reply(turn):\n    return WORD\n")
    os.utime(file, (1, 1))
    assert call(python=f"{file}:reply").reply.text == "changed"
    assert sys.modules["json"] is json
    assert str(tmp_path / "one") not in sys.path


@pytest.mark.promise("X18")
def test_a_run_that_is_fed_by_others_reads_no_file_unless_it_has_the_tool():
    denied = ("--settings", '{"permissions":{"deny":["Read(//**)"]}}')

    def options(*tools, **more):
        return command_form({"preset": "claude", "tools": [*tools], "args": ["--verbose"], **more}).start

    assert options("WebSearch", only_tools=True)[-2:] == denied
    assert options(only_tools=True)[-2:] == denied
    assert denied[0] not in options("Read(docs/**)", only_tools=True)
    assert denied[0] not in options("WebSearch")


def test_programs_that_put_files_into_their_requests_are_known_also_by_their_name():
    runners = [
        {"preset": "claude"},
        {"preset": "gemini"},
        {"start": ["/usr/bin/claude", "-p"]},
        {"start": ["bwrap", "--ro-bind", "/usr", "/usr", "/usr/bin/claude", "-p"]},
        {"start": ["sh", "-c", "cd /srv; exec gemini -p x"]},
        {"start": ["cursor-agent", "-p"]},
        {"preset": "scripted", "args": ["/opt/qwen"]},
        {"start": ["npx", "-y", "@anthropic-ai/claude-code@latest", "-p"]},
        {"start": ["npx", "@google/gemini-cli"]},
        {"start": ["/opt/bin/Claude.sh"]},
        {"start": ["sh", "-c", "cd /srv;qwen-code"]},
        {"start": ["./begin.sh"], "resume": ["claude", "--resume", "{session}"]},
    ]
    others = [
        {"preset": "codex"},
        {"preset": "opencode"},
        {"start": ["my-agent"]},
        {"url": "http://x"},
        {"python": "a:b"},
    ]
    assert [takes_paths(runner) for runner in runners] == [True] * 12
    assert [takes_paths(runner) for runner in others] == [False] * 5


def test_a_preset_refuses_what_it_cannot_do():
    with pytest.raises(InvalidJob, match="The preset codex cannot limit the tools of a run"):
        command_form({"preset": "codex", "tools": ["Read"]})
    form = command_form({"preset": "claude", "tools": ["Read", "Bash(git log:*)"], "model": "sonnet", "max_cost": 0.5})
    assert form.start[5:] == (
        "--model", "sonnet", "--allowedTools", "Read,Bash(git log:*)", "--max-budget-usd", "0.5",
    )  # fmt: skip
