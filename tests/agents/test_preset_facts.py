"""What each well-known tool prints, and what is made of it: the wordings that were seen, a line each."""

from __future__ import annotations

import json

import pytest

from wakeful.agents.runners.judging import Call, Moment, judge
from wakeful.agents.runners.output import OutputReader
from wakeful.agents.runners.presets import PRESETS
from wakeful.agents.runners.turn import Answered, Gone, Limited, Overloaded, Wrong

NOW = 1_786_000_000_000  # 2026-08-06 06:26:40 UTC
RESULT = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s1", "total_cost_usd": 0.08}
REJECTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_786_003_600}}
ALLOWED = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1_786_400_000}}


def ended(preset, lines=(), stderr="", code=0, *, resumed=False):
    form, signs = PRESETS[preset].output, PRESETS[preset].signs
    stdout = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    reader = OutputReader(form, lambda _: None)
    reader.feed(stdout.encode())
    printed = reader.finish(stdout, stderr)
    said = stderr.strip().splitlines()
    error = f"exited with code {code}{f': {said[-1]}' if said else ''}" if code else None
    call = Call(code, stdout, stderr, printed, is_text=form.format == "text", resumed=resumed, error=error)
    return judge(call, signs, Moment(NOW))


def failed(text):
    return {**RESULT, "is_error": True, "result": text}


def turn_failed(text):
    return [{"type": "thread.started", "thread_id": "t1"}, {"type": "turn.failed", "error": {"message": text}}]


def gemini(message):
    return "[ERROR] " + json.dumps({"session_id": "g", "error": {"type": "Error", "message": message}}, indent=2)


CASES = [
    # claude: failures are on standard output, as results
    ("claude", [failed("You've hit your session limit · resets 3:45pm")], "", 1, Limited),
    ("claude", [failed("You've hit your Opus limit · resets Mon 12:00am")], "", 1, Limited),
    ("claude", [failed("hit your limit · resets Apr 23 at 4pm (America/Recife)")], "", 1, Limited),
    ("claude", [failed("out of extra usage · resets 1pm (Europe/Berlin)")], "", 1, Limited),
    ("claude", [failed("Claude AI usage limit reached|1786003600")], "", 1, Limited),
    ("claude", [failed("spend limit reached (daily; resets 2026-08-09 00:00 UTC)")], "", 1, Limited),
    ("claude", [failed("Server is temporarily limiting requests (not your usage limit)")], "", 1, Overloaded),
    ("claude", [failed("API Error: Repeated 529 Overloaded errors")], "", 1, Overloaded),
    ("claude", [failed("API Error: 500 Internal server error")], "", 1, Overloaded),
    ("claude", [failed("Request rejected (429)")], "", 1, Overloaded),
    ("claude", [failed("Credit balance is too low")], "", 1, Wrong),
    ("claude", [failed("Not logged in · Please run /login")], "", 0, Wrong),
    ("claude", [{**RESULT, "subtype": "error_max_turns", "errors": ["Reached maximum turns (3)"]}], "", 1, Wrong),
    ("claude", [], "error: unknown option '--x'", 1, Wrong),
    ("claude", [], "", 0, Wrong),
    ("claude", [{**RESULT, "result": "The docs say: you've hit your usage limit."}], "", 0, Answered),
    ("claude", [{**RESULT, "result": ""}], "", 0, Answered),
    # codex: a retry that goes on is no failure
    ("codex", turn_failed("You've hit your usage limit. Try again at 3:05 PM."), "", 1, Limited),
    ("codex", turn_failed("You've hit your usage limit … or try again at Aug 9th, 2026 3:05 PM."), "", 1, Limited),
    ("codex", turn_failed("Your workspace is out of credits"), "", 1, Limited),
    ("codex", turn_failed("You hit your spend cap"), "", 1, Limited),
    ("codex", turn_failed("Quota exceeded. Check your plan and billing details."), "", 1, Limited),
    ("codex", turn_failed("Selected model is at capacity"), "", 1, Overloaded),
    ("codex", turn_failed("We're currently experiencing high demand"), "", 1, Overloaded),
    ("codex", turn_failed("exceeded retry limit, last status: 429 Too Many Requests"), "", 1, Overloaded),
    ("codex", turn_failed("stream disconnected before completion"), "", 1, Overloaded),
    ("codex", turn_failed("unexpected status 401 Unauthorized"), "", 1, Wrong),
    ("codex", [{"type": "thread.started", "thread_id": "t1"}], "", 1, Wrong),  # interrupted
    (
        "codex",
        [
            {"type": "error", "message": "reconnecting 1/5"},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}},
            {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
        ],
        "ERROR something frightening\n",
        0,
        Answered,
    ),
    # gemini: an error is on standard error, and its exit code is the status cut to eight bits
    ("gemini", [], gemini("You have exhausted your daily quota on this model."), 173, Limited),
    ("gemini", [], gemini("Please retry in 12.3s"), 173, Limited),
    ("gemini", [], gemini("The model is overloaded. Please try again later."), 247, Overloaded),
    ("gemini", [], gemini("Please set an Auth method"), 41, Wrong),
    ("gemini", [], "", 0, Wrong),
    ("gemini", [{"session_id": "g", "response": "Quota exceeded is an error of ours."}], "", 0, Answered),
    # opencode: both shapes of an error, and silence
    ("opencode", [{"type": "error", "error": {"name": "E", "data": {"message": "Rate limit: x"}}}], "", 1, Limited),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "Overloaded"}}], "", 1, Overloaded),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "bad key"}}], "", 0, Wrong),
    ("opencode", [], "", 0, Wrong),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "lines", "stderr", "code", "kind"), CASES)
def test_what_a_tool_says_is_understood(preset, lines, stderr, code, kind):
    assert type(ended(preset, lines, stderr, code)) is kind


GONE = [
    ("claude", [], "No conversation found with session ID: s1", 1),
    ("claude", [{**RESULT, "result": "Prompt is too long", "terminal_reason": "prompt_too_long"}], "", 0),
    ("codex", [], "thread/resume failed: no rollout found for thread id t1 (code -32600)", 1),
    ("codex", [], "thread not loaded: t1", 1),
    ("gemini", [], 'Error resuming session: Invalid session identifier "g"', 42),
    ("opencode", [], "Session not found", 1),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "Session not found: ses_1"}}], "", 1),
]


@pytest.mark.parametrize(("preset", "lines", "stderr", "code"), GONE)
def test_a_session_is_gone_where_one_was_resumed_and_wrong_where_not(preset, lines, stderr, code):
    assert type(ended(preset, lines, stderr, code, resumed=True)) is Gone
    assert type(ended(preset, lines, stderr, code)) is Wrong


@pytest.mark.parametrize("lines", [[ALLOWED, REJECTED], [REJECTED, ALLOWED]])
def test_a_limit_ends_when_the_rejected_window_does(lines):
    ending = ended("claude", [*lines, failed("You've hit your session limit · resets 3:45pm")], code=1)
    assert ending.until == 1_786_003_600_000


def test_the_message_of_an_error_on_standard_error_is_the_reason():
    assert ended("gemini", [], gemini("Please set an Auth method"), 41).why == "Please set an Auth method"
    assert ended("gemini", [], gemini("Please retry in 12.3s"), 173).until == NOW + 12_300
