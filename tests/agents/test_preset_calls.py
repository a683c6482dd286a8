"""How programs are called that take a session's id, a model without an option, or their time limit; and plain text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.agents.recorded import expected
from tests.agents.test_runners import Caller
from tests.tools.programs import PROGRAMS
from wakeful.domains.agents.runners.forms import OutputForm
from wakeful.domains.agents.runners.plain_text import read_text
from wakeful.domains.agents.runners.presets import NEW_SESSION, PRESETS
from wakeful.domains.agents.runners.spec import command_form, reports_cost
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Gone
from wakeful.errors import InvalidJob

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
NOTES = "import sys, json\nopen('called', 'a').write(json.dumps([*sys.argv[1:], sys.stdin.read()]) + '\\n')\n"
GOOSE = """
if '-r' in sys.argv and sys.argv[sys.argv.index('-n') + 1] == 'none':
    print("Error: No session found with name 'none'", file=sys.stderr); sys.exit(1)
print(json.dumps({"messages": [{"content": [{"type": "text", "text": "ok"}]}],
                  "metadata": {"input_tokens": 20, "output_tokens": 5, "status": "completed"}}))
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a program of a name that notes its calls; calling it is `ask`, what it noted `called`."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def make(name, text):
        caller = Caller(tmp_path)
        Path(caller.script(NOTES + text)[0]).rename(tmp_path / name)
        called = tmp_path / "called"
        return SimpleNamespace(
            ask=lambda prompt="hi", session=None, **more: caller(prompt, session, preset=name, **more),
            sessions=caller.sessions,
            called=lambda: [json.loads(line) for line in called.read_text().splitlines()],
        )

    return make


def test_a_program_that_prints_no_session_is_given_one_and_goes_on_in_it(program):
    goose = program("goose", GOOSE)
    first = goose.ask("one")
    [given] = goose.sessions
    assert UUID.fullmatch(given)
    assert first.reply[:2] == ("ok", given)
    second = goose.ask("two", session=given)
    assert second.reply[:2] == ("ok", given)
    assert goose.sessions == [given]
    start, resume = goose.called()
    assert start[start.index("-n") + 1] == resume[resume.index("-n") + 1] == given
    assert ("-r" in start, "-r" in resume) == (False, True)
    assert (start[-1], resume[-1]) == ("one", "two")
    assert isinstance(goose.ask(session="none"), Gone)


def test_each_new_session_has_an_id_of_its_own(program):
    goose = program("goose", GOOSE)
    assert goose.ask().reply.session != goose.ask().reply.session


def test_the_session_that_a_program_begins_is_known_before_it_answers(program):
    goose = program("goose", "sys.exit('Authentication error: no')")
    assert isinstance(goose.ask(), CallFailed)
    assert [goose.called()[0][goose.called()[0].index("-n") + 1]] == goose.sessions


@pytest.mark.parametrize("preset", ["claude", "codex", "gemini", "opencode", "qwen", "cursor", "amp", "llm"])
def test_other_programs_name_their_sessions_themselves(preset):
    assert not command_form({"preset": preset}).names_sessions


def test_the_session_that_a_program_prints_counts(program):
    text = 'print(json.dumps({"type": "assistant.message", "data": {"content": "ok"}}))\n'
    copilot = program("copilot", text + 'print(json.dumps({"type": "result", "sessionId": "other"}))')
    assert copilot.ask().reply.session == "other"
    assert copilot.sessions[-1] == "other"


def test_a_model_may_stand_alone_and_must_be_given(program):
    ollama = program("ollama", "print('Hello.'); print('eval count:   7 token(s)', file=sys.stderr)")
    with pytest.raises(InvalidJob, match=r"The preset ollama needs a model: add model, such as model: llama3\.2\."):
        ollama.ask()
    assert ollama.ask("Hi.", model="llama3.2", args=["--think=false"]).reply == ("Hello.", None, None, None, 7)
    assert ollama.called() == [
        ["run", "--hidethinking", "--nowordwrap", "--verbose", "llama3.2", "--think=false", "Hi."]
    ]


def test_a_program_with_a_time_limit_of_its_own_is_given_that_of_the_runner():
    start = command_form({"preset": "openclaw", "timeout": 90_500}).start
    assert start[start.index("--timeout") + 1] == "90"
    start = command_form({"preset": "openclaw", "model": "m", "args": ["--agent", "ops"]}).start
    assert start[start.index("--timeout") + 1] == "1800"
    assert start[start.index("--model") : start.index("--model") + 4] == ("--model", "m", "--agent", "ops")


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"scripted"}))
def test_a_preset_reads_its_prompt_from_standard_input(preset):
    form = command_form({"preset": preset, "model": "m"} if PRESETS[preset].needs_model else {"preset": preset})
    assert form.stdin
    assert not any("{" in word for word in form.argv("p", "s", "n"))
    assert not any("{" in word for word in form.argv("p", None, "n"))


AIDER = "Aider v0.86.2\nModel: m with diff edit format\nRepo-map: disabled\n\n"


def aider(text, stderr=""):
    return read_text(PRESETS["aider"].output, text, stderr)


def test_aider_s_answer_stands_between_its_own_words_and_the_tokens():
    printed = aider(f"{AIDER}Done.\nAll of it.\n\nTokens: 7.7k sent, 8 received. Cost: $0.01 message, $0.01 session.\n")
    assert (printed.reply, printed.has_result) == ("Done.\nAll of it.", True)
    assert (printed.cost, printed.tokens_in, printed.tokens_out) == (0.01, 7700, 8)


def test_aider_may_ask_its_model_several_times():
    more = "Tokens: 1.2M sent, 2k cache hit, 1.5k received. Cost: $0.02 message, $0.05 session.\n"
    printed = aider(
        f"{AIDER}One.\n\nTokens: 10k sent, 1k received. Cost: $0.03 message, $0.03 session.\n\nTwo.\n\n{more}"
    )
    assert (printed.cost, printed.tokens_in, printed.tokens_out) == (0.05, 1_210_000, 2500)
    assert printed.reply.startswith("One.")
    assert printed.reply.endswith("Two.")


def test_an_answer_of_aider_after_a_retry_is_an_answer(program):
    retried = "litellm.RateLimitError: no\nThe API provider has rate limited you.\nRetrying in 0.2 seconds...\nYes.\n"
    tool = program("aider", f"print({AIDER + retried!r}); print('Tokens: 1 sent, 2 received.')")
    ending = tool.ask()
    assert isinstance(ending, Answered)
    assert ending.reply.text.endswith("Yes.")


def test_without_a_pattern_all_text_is_the_reply_and_nothing_is_counted():
    printed = read_text(OutputForm(), "\nHello.\n\nTokens: 5 sent, 6 received.\n", "eval count: 7 token(s)")
    assert printed.reply == "Hello.\n\nTokens: 5 sent, 6 received."
    assert (printed.cost, printed.tokens_in, printed.tokens_out) == (None, None, None)


@pytest.mark.parametrize(
    ("said", "number"), [("7", 7), ("7.7k", 7700), ("2M", 2_000_000), ("1,234", 1234), ("1.2.3", None), ("x", None)]
)
def test_numbers_in_text_may_be_short(said, number):
    form = OutputForm(counted=r"used (?P<tokens_out>\S+)")
    assert read_text(form, f"used {said}", "").tokens_out == number


def test_every_preset_is_tried_with_its_program_or_has_a_reason_why_not():
    assert set(PROGRAMS) == set(PRESETS) - {"scripted"}
    assert all(callable(program.install) or program.install for program in PROGRAMS.values())


@pytest.mark.parametrize(
    ("what", "presets"),
    [
        (lambda preset: preset.cumulative, "codex goose qwen"),
        (lambda preset: preset.takes_paths, "amp claude copilot cursor gemini qwen"),
        (lambda preset: preset.output.reports_cost, "aider claude opencode"),
        (lambda preset: not preset.output.reports_tokens, "scripted"),
        (lambda preset: preset.resume is None, "aider ollama scripted"),
        (lambda preset: preset.login_keys, "claude codex"),
        (lambda preset: preset.needs_model, "ollama"),
        (lambda preset: NEW_SESSION in preset.start, "copilot goose openclaw"),
        (lambda preset: preset.output.ends, "amp claude codex copilot cursor gemini qwen"),
    ],
    ids=["cumulative", "paths", "cost", "no-tokens", "no-sessions", "logins", "models", "given-sessions", "ends"],
)
def test_presets_differ_as_their_programs_do(what, presets):
    assert " ".join(sorted(name for name, preset in PRESETS.items() if what(preset))) == presets


def test_tokens_are_of_the_session_where_a_resumed_call_counts_the_first_again():
    rows, found = expected(), {}
    for program, version, case in rows:
        if case == "resume" and "tokens" in rows[program, version, case]:
            first, second = (rows[program, version, one]["tokens"] for one in ("ok", "resume"))
            found[program, version] = all(new >= 2 * old for new, old in zip(second, first, strict=True))
    assert found == {key: PRESETS[key[0]].cumulative for key in found}
    assert len(found) >= 5


def test_a_limit_of_cost_binds_where_the_program_reports_cost():
    assert reports_cost({"preset": "aider"})
    assert not reports_cost({"preset": "openclaw"})
