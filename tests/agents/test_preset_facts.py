"""What each well-known tool prints, and what is made of it: the wordings that were seen, a line each."""

from __future__ import annotations

import json

import pytest

from wakeful.domains.agents.runners.judging import CallTime, EndedCall, judge
from wakeful.domains.agents.runners.output import OutputReader
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Gone, Limited, Overloaded

NOW = 1_786_000_000_000  # 2026-08-06 06:26:40 UTC
RESULT = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s1", "total_cost_usd": 0.08}
REJECTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_786_003_600}}
ALLOWED = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1_786_400_000}}


def ended(preset, lines=(), stderr="", code=0, *, resumed=False, timed_out=False):
    form, signs = PRESETS[preset].output, PRESETS[preset].signs
    stdout = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    reader = OutputReader(form, lambda _: None)
    reader.feed(stdout.encode())
    printed = reader.finish(stdout, stderr)
    said = stderr.strip().splitlines()
    error = f"exited with code {code}{f': {said[-1]}' if said else ''}" if code else None
    error = "stopped after its limit of 60 s" if timed_out else error
    call = EndedCall(code, stdout, stderr, printed, form.format == "text", resumed, error, timed_out)
    return judge(call, signs, CallTime(NOW))


def failed(text):
    return {**RESULT, "is_error": True, "result": text}


def turn_failed(text):
    return [{"type": "thread.started", "thread_id": "t1"}, {"type": "turn.failed", "error": {"message": text}}]


def gemini(message):
    return "[ERROR] " + json.dumps({"session_id": "g", "error": {"type": "Error", "message": message}}, indent=2)


CURSOR = {"type": "result", "subtype": "success", "is_error": False, "result": "Three lines.", "session_id": "e1"}
AMP = [
    {"type": "system", "subtype": "init", "session_id": "T-1"},
    {"type": "assistant", "message": {"usage": {"input_tokens": 100, "output_tokens": 5}}, "session_id": "T-1"},
    {"type": "assistant", "message": {"usage": {"input_tokens": 200, "output_tokens": 6}}, "session_id": "T-1"},
]


def goose(text, status="completed"):
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": text}]}
    metadata = {"input_tokens": 2000, "output_tokens": 100, "cost_usd": 0.004, "status": status}
    return {"messages": [{"role": "user", "content": []}, said], "metadata": metadata}


def goose_error(what):
    return f"Ran into this error: {what}.\n\nPlease retry if you think this is a transient or recoverable error."


def copilot_error(message):
    return {"type": "session.error", "data": {"errorType": "query", "message": message}}


def copilot_fails(status):
    failure = {"type": "model.call_failure", "data": {"statusCode": status, "errorMessage": '{"message":"no"}'}}
    return [failure, {"type": "session.info", "data": {"message": "Retrying..."}}]


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
    ("claude", [failed("Credit balance is too low")], "", 1, Limited),
    ("claude", [failed("Not logged in · Please run /login")], "", 0, CallFailed),
    ("claude", [{**RESULT, "subtype": "error_max_turns", "errors": ["Reached maximum turns (3)"]}], "", 1, CallFailed),
    ("claude", [], "error: unknown option '--x'", 1, CallFailed),
    ("claude", [], "", 0, CallFailed),
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
    ("codex", turn_failed("unexpected status 401 Unauthorized"), "", 1, CallFailed),
    ("codex", [{"type": "thread.started", "thread_id": "t1"}], "", 1, CallFailed),  # interrupted
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
    ("gemini", [], gemini("Please set an Auth method"), 41, CallFailed),
    ("gemini", [], "", 0, CallFailed),
    ("gemini", [{"session_id": "g", "response": "Quota exceeded is an error of ours."}], "", 0, Answered),
    # opencode: both shapes of an error, and silence
    ("opencode", [{"type": "error", "error": {"name": "E", "data": {"message": "Rate limit: x"}}}], "", 1, Limited),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "Overloaded"}}], "", 1, Overloaded),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "bad key"}}], "", 0, CallFailed),
    ("opencode", [], "", 0, CallFailed),
    # cursor: a failure is on standard error alone
    ("cursor", [CURSOR], "", 0, Answered),
    ("cursor", [{**CURSOR, "is_error": True, "result": "no"}], "", 0, CallFailed),
    ("cursor", [], "You've hit your usage limit, will reset when your monthly cycle ends on 10/2/2026", 1, Limited),
    ("cursor", [], "ConnectError: [resource_exhausted] Error", 1, Overloaded),
    ("cursor", [], "Error: Authentication required. Please run 'agent login' first", 1, CallFailed),
    # amp: results as of Claude Code, with the error in a field of its own
    ("amp", [*AMP, {"type": "result", "is_error": False, "result": "4.", "session_id": "T-1"}], "", 0, Answered),
    ("amp", [*AMP, {"type": "result", "is_error": True, "error": "Permission denied for Bash"}], "", 1, CallFailed),
    ("amp", [*AMP, {"type": "result", "is_error": True, "error": "429 Too Many Requests"}], "", 1, Limited),
    ("amp", [], "Error: Insufficient credits. Add more at …", 1, Limited),
    ("amp", [], "Error: API request for getUserInfo failed: 503", 1, Overloaded),
    ("amp", [], "Error: API request for getUserInfo failed: 404", 1, CallFailed),
    # goose: an error of the model is its last message, and it ends well
    ("goose", [goose("Backup is fine.")], "", 0, Answered),
    ("goose", [goose(goose_error("Rate limit exceeded: slow down"))], "", 0, Limited),
    ("goose", [goose(f"I listen, and{goose_error('Server error: 502')}")], "", 0, Overloaded),
    ("goose", [goose(goose_error("Credits exhausted: top up"))], "", 0, Limited),
    ("goose", [goose(goose_error("Authentication error: 401"))], "", 0, CallFailed),
    ("goose", [goose("I ran into this error: a rate limit.")], "", 0, Answered),
    ("goose", [goose("half", status="error")], "", 1, CallFailed),
    # ollama: plain text
    ("ollama", ["All is well."], "", 0, Answered),
    ("ollama", ["You need to be signed in to Ollama to run Cloud models."], "", 0, CallFailed),
    ("ollama", [], "Error: could not connect to ollama server, run 'ollama serve' to start it", 1, Overloaded),
    ("ollama", [], "Error: pull model manifest: file does not exist", 1, CallFailed),
    # copilot: a retry is no failure, and limits are worded in many ways
    ("copilot", [*copilot_fails(500), {"type": "assistant.message", "data": {"content": "Done."}}], "", 0, Answered),
    ("copilot", [copilot_error("Sorry, you've hit a rate limit. Please try again in 2 hours")], "", 1, Limited),
    ("copilot", [copilot_error("exceeded your 5 hour session limits. Please retry later")], "", 1, Limited),
    ("copilot", [copilot_error("You have no quota")], "", 1, Limited),
    ("copilot", [copilot_error("something else")], "", 1, CallFailed),
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
    ("amp", [], "Error: Thread T-1 not found", 1),
    ("goose", [], "Error: No session found with name 's1'", 1),
    ("cursor", [], "Error: Chat e1 not found", 1),
    ("opencode", [{"type": "error", "error": {"type": "e", "message": "Session not found: ses_1"}}], "", 1),
]


@pytest.mark.parametrize(("preset", "lines", "stderr", "code"), GONE)
def test_a_session_is_gone_where_one_was_resumed_and_wrong_where_not(preset, lines, stderr, code):
    assert type(ended(preset, lines, stderr, code, resumed=True)) is Gone
    assert type(ended(preset, lines, stderr, code)) is CallFailed


@pytest.mark.parametrize("lines", [[ALLOWED, REJECTED], [REJECTED, ALLOWED]])
def test_a_limit_ends_when_the_rejected_window_does(lines):
    ending = ended("claude", [*lines, failed("You've hit your session limit · resets 3:45pm")], code=1)
    assert ending.until == 1_786_003_600_000


def test_the_message_of_an_error_on_standard_error_is_the_reason():
    assert ended("gemini", [], gemini("Please set an Auth method"), 41).why == "Please set an Auth method"
    assert ended("gemini", [], gemini("Please retry in 12.3s"), 173).until == NOW + 12_300


def used(ending):
    return (ending.reply.cost, ending.reply.tokens_in, ending.reply.tokens_out)


def test_tokens_are_those_that_the_tool_reports():
    usage = {"inputTokens": 8800, "outputTokens": 180, "cacheReadTokens": 44000, "cacheWriteTokens": 20}
    assert used(ended("cursor", [{**CURSOR, "usage": usage}])) == (None, 52820, 180)
    result = {"type": "result", "is_error": False, "result": "4.", "session_id": "T-1"}
    assert used(ended("amp", [*AMP, result])) == (None, 300, 11)
    assert used(ended("goose", [goose("fine")])) == (None, 2000, 100)  # its cost is that of the session
    verbose = "total duration:  1s\nprompt eval count:    26 token(s)\neval count:           298 token(s)\n"
    assert used(ended("ollama", ["fine"], verbose)) == (None, 26, 298)
    messages = [{"type": "assistant.message", "data": {"content": "x", "outputTokens": count}} for count in (60, 4)]
    assert used(ended("copilot", messages)) == (None, None, 64)


def test_a_limit_of_copilot_ends_when_its_message_says():
    text = "exceeded your 5 hour session limits. Please retry after 2733 seconds"
    assert ended("copilot", [copilot_error(text)], code=1).until == NOW + 2_733_000


def gemini_says(text):
    return [{"type": "result", "status": "error", "error": {"message": text}}]


def codex_says(text):
    return [{"type": "turn.failed", "error": {"message": text}}]


def opencode_says(text):
    return [{"type": "error", "error": {"message": text}}]


WORDS = [
    ("claude", [failed("You are at your usage limit")], Limited),
    ("claude", [failed("getaddrinfo ENOTFOUND api")], Overloaded),
    ("claude", [failed("getaddrinfo EAI_AGAIN api")], Overloaded),
    ("claude", [failed("Connection reset by peer")], Overloaded),
    ("gemini", gemini_says("You have exhausted your capacity on this model"), Limited),
    ("gemini", gemini_says("Quota exceeded for requests per minute"), Limited),
    ("gemini", gemini_says("Rate limit exceeded"), Limited),
    ("gemini", gemini_says("RESOURCE_EXHAUSTED"), Limited),
    ("gemini", gemini_says("Attempt 1 failed with status 429"), Limited),
    ("gemini", gemini_says("The service is currently unavailable"), Overloaded),
    ("gemini", gemini_says("An internal error has occurred"), Overloaded),
    ("gemini", gemini_says("Attempt 1 failed with status 502"), Overloaded),
    ("codex", codex_says("Rate limit reached"), Limited),
    ("codex", codex_says("Connection failed: error sending request"), Overloaded),
    ("opencode", opencode_says("Too Many Requests"), Limited),
    ("opencode", opencode_says("You have insufficient funds"), Limited),
    ("opencode", opencode_says("Quota exceeded"), Limited),
    ("opencode", opencode_says("Internal Server Error"), Overloaded),
    ("opencode", opencode_says("Unable to connect"), Overloaded),
    ("opencode", opencode_says("Cannot connect to API"), Overloaded),
    ("opencode", opencode_says("connect ECONNREFUSED"), Overloaded),
    ("opencode", opencode_says("status 529"), Overloaded),
    ("opencode", opencode_says("status 503"), Overloaded),
]


@pytest.mark.parametrize(("preset", "lines", "kind"), WORDS)
def test_the_words_of_an_error_say_what_it_is_where_no_field_does(preset, lines, kind):
    assert type(ended(preset, lines, code=1)) is kind


@pytest.mark.parametrize(
    ("preset", "lines"),
    [
        ("claude", [failed("Prompt is too long")]),
        ("codex", codex_says("Your input exceeds the context window of this model.")),
        ("codex", codex_says("context_length_exceeded")),
        ("opencode", opencode_says("Your input exceeds the context window of this model.")),
    ],
)
def test_a_session_that_has_become_too_long_is_gone(preset, lines):
    assert type(ended(preset, lines, code=1, resumed=True)) is Gone
    assert type(ended(preset, lines, code=1)) is CallFailed


def test_the_code_of_an_error_on_standard_error_says_what_it_is():
    error = json.dumps({"session_id": "g", "error": {"type": "Error", "message": "No.", "code": 429}}, indent=2)
    ending = ended("gemini", [], f"Warning: x\n{error}", 173)
    assert (type(ending), ending.why) == (Limited, "No.")


def test_a_retry_without_a_status_says_in_words_what_it_waits_for():
    retry = {"type": "system", "subtype": "api_retry", "error_status": None, "error": "server_error"}
    assert type(ended("claude", [retry], code=143, timed_out=True)) is Overloaded
