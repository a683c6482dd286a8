"""Programs that wait, fail or print too much: what is made of it, as calls of real programs and of lines alone."""

from __future__ import annotations

import json
import sys
from datetime import datetime

import pytest

from tests.agents.test_preset_facts import RESULT, ended, failed
from tests.agents.test_runners import NOW, Caller
from wakeful.domains.agents.limits.rules import ends_at
from wakeful.domains.agents.runners import output
from wakeful.domains.agents.runners.output import OutputForm, OutputReader
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Gone, Limited, Overloaded

HOUR = 3_600_000
FOREVER = "while :; do sleep 0.01; done"
WAITS = "Attempt 1 failed: quota exceeded, please retry in 20s"


@pytest.fixture
def call(tmp_path):
    return Caller(tmp_path)


def as_preset(call, monkeypatch, name, text):
    """A shell script that is called as the preset's program."""
    program = call.folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{call.folder}:/usr/bin:/bin")


def answer(ending):
    assert type(ending) is Answered
    return ending.reply.text


def test_a_call_that_is_stopped_while_it_waits_for_a_limit_is_limited(call, monkeypatch):
    as_preset(call, monkeypatch, "gemini", f"trap \"echo '{WAITS}' >&2; exit 143\" TERM; {FOREVER}")
    ending = call(preset="gemini", timeout=150)
    assert (type(ending), ending.until) == (Limited, NOW + 20_000)


def test_a_call_that_is_stopped_while_it_works_is_a_timeout_whatever_it_met_before():
    begins = [{"type": "init", "session_id": "s1"}, {"type": "message", "role": "user", "content": "x"}]
    works = {"type": "tool_use", "tool_name": "grep"}
    assert type(ended("gemini", begins, WAITS, -15, timed_out=True)) is Limited
    ending = ended("gemini", [*begins, works], WAITS, -15, timed_out=True)
    assert ending[:3] == ("stopped after its limit of 60 s", None, "timeout")


def test_a_complaint_stands_until_the_program_goes_on():
    lost = {"type": "error", "message": "Reconnecting... waiting for network (Connection failed)"}
    item = {"type": "item.completed", "item": {"type": "reasoning", "text": "Hm."}}
    lines = [{"type": "thread.started", "thread_id": "t1"}, lost]
    for said, kind in ((lines, Overloaded), ([*lines, item], CallFailed), ([*lines, item, lost], Overloaded)):
        assert type(ended("codex", said, code=-15, timed_out=True)) is kind


def test_what_an_agent_wrote_before_it_was_stopped_is_no_limit():
    wrote = {"type": "item.completed", "item": {"type": "agent_message", "text": "You've hit your usage limit."}}
    ending = ended("codex", [wrote], code=-15, timed_out=True)
    assert (type(ending), ending.outcome) == (CallFailed, "timeout")


@pytest.mark.parametrize(
    ("environment", "until"),
    [
        ({"TZ": "America/New_York"}, "2026-09-20T19:36Z"),
        ({"TZ": ":Asia/Shanghai"}, "2026-09-21T07:36Z"),
        ({"TZ": ""}, "2026-09-20T15:36Z"),
    ],
)
def test_a_time_without_a_zone_is_read_in_the_zone_that_the_program_sees(call, monkeypatch, environment, until):
    line = json.dumps({"type": "turn.failed", "error": {"message": "You hit your usage limit, try again at 3:36 PM."}})
    as_preset(call, monkeypatch, "codex", f"echo '{line}'; exit 1")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    env = [f"{name}={value}" for name, value in environment.items()]
    ending = call(preset="codex", env=env)
    assert (ending.until, ending.confirmed) == (_ms(until), True)
    assert call(preset="codex").until == _ms("2026-09-20T13:36Z")


def _ms(text):
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_one_object_of_more_than_a_million_bytes_is_read(call):
    script = call.script(
        "print(json.dumps({'result': 'x' * 1_200_000 + ' end', 'session_id': 's1', 'n': 'y' * 200_000}))"
    )
    ending = call(start=script, output="json")
    assert (type(ending), ending.reply.session, len(ending.reply.text)) == (Answered, "s1", 100_000)


def test_a_cost_that_nothing_can_cost_does_not_fail_a_good_run(call):
    script = call.script("""print('{"result": "fine", "total_cost_usd": 1e999, "usage": {"input_tokens": 1e999}}')""")
    assert call(start=script, output="json").reply == ("fine", None, None, None, None)


LIMITS = [
    (failed("API Error: Rate limit exceeded"), Limited),
    (failed('API Error: 429 {"error":{"type":"rate_limit_error","message":"slow down"}}'), Limited),
    ({**failed("Something new"), "api_error_status": 429}, Limited),
    ({**failed("Something new"), "api_error_type": "rate_limit_error"}, Limited),
    ({**failed("Something new"), "api_error": "usage_limit_reached"}, Limited),
    ({**failed("Something new"), "api_error_status": 529}, Overloaded),
    ({**failed("Something new"), "api_error_status": 503}, Overloaded),
    ({**failed("Something new"), "api_error_type": "overloaded_error"}, Overloaded),
    ({**failed("Something new"), "api_error": "connection_failed"}, Overloaded),
    ({**failed("Your usage limit is a number"), "api_error_status": 500}, Overloaded),
    ({**failed("Invalid API key"), "api_error_status": 401}, CallFailed),
]


@pytest.mark.parametrize(("line", "kind"), LIMITS)
def test_fields_say_what_an_error_is_before_its_words_do(line, kind):
    assert type(ended("claude", [line], code=1)) is kind


def test_an_error_that_is_not_named_is_called_what_the_result_calls_itself():
    line = {**RESULT, "is_error": True, "errors": []}
    assert ended("claude", [line], code=1).why == "it reported an error and did not say which"
    assert ended("claude", [{**line, "subtype": "error_during_execution"}], code=1).why == "error_during_execution"


ERROR = {"type": "error", "sessionID": "ses_1", "error": {"name": "E", "data": {"message": "stream broke"}}}
TEXT = {"type": "text", "sessionID": "ses_1", "part": {"type": "text", "text": "Done."}}


def test_an_error_before_a_good_answer_is_no_failure_unless_the_exit_code_says_so():
    assert answer(ended("opencode", [ERROR, TEXT])) == "Done."
    assert ended("opencode", [ERROR, TEXT], code=1).why == "stream broke"
    assert ended("opencode", [TEXT, ERROR]).why == "stream broke"


@pytest.mark.parametrize(
    ("preset", "lines"),
    [
        ("claude", [{**RESULT, "result": ""}]),
        ("codex", [{"type": "turn.completed", "usage": {}}]),
        ("gemini", [{"type": "result", "status": "success", "stats": {}}]),
        ("opencode", [{"type": "step_finish", "part": {"reason": "stop"}}]),
    ],
)
def test_a_turn_that_ended_well_without_a_word_is_an_empty_answer_of_every_preset(preset, lines):
    assert answer(ended(preset, lines)) == ""


def test_texts_that_follow_each_other_are_one_reply_and_those_before_a_tool_are_none():
    says = [
        {"type": "message", "role": "assistant", "content": text, "delta": True}
        for text in ("Loo", "king.", "Do", "ne.")
    ]
    tools = [{"type": "tool_use"}, {"type": "tool_result", "status": "error", "error": {"message": "no such file"}}]
    lines = [*says[:2], *tools, *says[2:], {"type": "result", "status": "success"}]
    assert answer(ended("gemini", lines)) == "Done."


def test_a_used_up_quota_is_tried_again_every_hour_and_a_limit_without_a_time_every_quarter():
    quota = ended("codex", [{"type": "turn.failed", "error": {"message": "Quota exceeded. Check your plan."}}], code=1)
    limit = ended("codex", [{"type": "turn.failed", "error": {"message": "You hit your spend cap"}}], code=1)
    assert (ends_at(quota, NOW) - NOW, ends_at(limit, NOW) - NOW) == (HOUR, HOUR // 4)


def test_colours_are_no_part_of_a_message():
    ending = ended("opencode", [], "\x1b[91m\x1b[1mError: \x1b[0mSession not found", 1, resumed=True)
    assert (type(ending), ending.why) == (Gone, "Error: Session not found")


EXITS_AT_ONCE = """
os.set_blocking(1, False)
text = json.dumps({"result": "x" * 900_000}).encode()
try:
    while text:
        text = text[os.write(1, text):]
except BlockingIOError:
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pipes have one size elsewhere")
def test_a_long_answer_is_whole_although_the_program_exits_without_waiting_for_its_reader(call):
    assert type(call(start=call.script(EXITS_AT_ONCE), output="json")) is Answered


DONE = json.dumps({**RESULT, "result": "Done."})


def test_an_answer_that_came_in_time_counts_though_the_program_goes_on(call, monkeypatch):
    as_preset(call, monkeypatch, "claude", f"echo '{DONE}'; {FOREVER}")
    assert answer(call(preset="claude", timeout=150)) == "Done."


def test_an_answer_to_being_stopped_is_a_timeout_with_its_cost(call, monkeypatch):
    as_preset(call, monkeypatch, "claude", f"says() {{ echo '{DONE}'; exit 0; }}; trap says TERM; {FOREVER}")
    late = call(preset="claude", timeout=150)
    assert (type(late), late.outcome, late.reply.cost) == (CallFailed, "timeout", 0.08)


def test_what_a_run_cost_is_its_own_though_the_tool_also_names_the_sum_of_its_session():
    session = {**RESULT, "result": "ok", "total_cost_usd": 0.06, "usage": {"input_tokens": 9, "output_tokens": 9}}
    own = {"m": {"costUSD": 0.01, "inputTokens": 1, "outputTokens": 2}, "n": {"costUSD": 0.02, "inputTokens": 3}}
    assert ended("claude", [{**session, "model_usage_since_last_result": own}]).reply[2:] == (0.03, 4, 2)
    failed_at_once = {**session, "is_error": True, "model_usage_since_last_result": {}}
    assert ended("claude", [failed_at_once], code=1).reply[2:] == (0, 0, 0)
    assert ended("claude", [session]).reply[2:] == (0.06, 9, 9)
    assert ended("claude", [{**session, "model_usage_since_last_result": {"m": {"costUSD": 0.01}}}]).reply[3:] == (9, 9)


def test_tokens_include_the_cache_and_thoughts():
    cached = {"cache_creation_input_tokens": 20, "cache_read_input_tokens": 300}
    line = {**RESULT, "result": "ok", "usage": {"input_tokens": 1, "output_tokens": 2, **cached}}
    assert ended("claude", [line]).reply[3:] == (321, 2)
    part = {"reason": "stop", "tokens": {"input": 1, "output": 2, "reasoning": 40, "cache": {"read": 300, "write": 20}}}
    assert ended("opencode", [{"type": "step_finish", "part": part}] * 2).reply[3:] == (642, 84)
    stats = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 150, "cached": 90}
    assert ended("gemini", [{"type": "result", "status": "success", "stats": stats}]).reply[3:] == (100, 50)


@pytest.mark.parametrize(("status", "kind"), [(429, Limited), (529, Overloaded), (401, CallFailed)])
def test_what_a_tool_is_waiting_for_when_it_is_stopped_is_known_by_its_retries(status, kind):
    retry = {"type": "system", "subtype": "api_retry", "error_status": status, "error": "unknown"}
    begins, goes_on = {"type": "system", "subtype": "init"}, {"type": "assistant", "message": {}}
    assert type(ended("claude", [begins, retry], code=143, timed_out=True)) is kind
    assert type(ended("claude", [begins, retry, goes_on], code=143, timed_out=True)) is CallFailed


@pytest.mark.parametrize(("code", "kind"), [(429, Limited), (503, Overloaded), (400, CallFailed)])
def test_an_error_that_is_wrapped_in_json_is_unwrapped_and_its_code_read(code, kind):
    message = f'[API Error: {{"error":{{"code":{code},"message":"No.","status":"X"}}}}]'
    ending = ended("gemini", [{"type": "result", "status": "error", "error": {"message": message}}], code=1)
    assert (type(ending), ending.why) == (kind, "No.")


def test_a_time_in_the_words_of_a_failed_reply_is_not_confirmed_and_one_in_a_field_of_its_own_is():
    text = "You've hit your usage limit · resets 3:45pm"
    assert not ended("claude", [failed(text)], code=1).confirmed
    assert ended("claude", [{**failed(text), "api_error_status": 429}], code=1).confirmed
    assert ended("codex", [{"type": "turn.failed", "error": {"message": text}}], code=1).confirmed


def test_an_entry_of_a_log_is_shown_as_its_message():
    log = 'timestamp=2026-11-16T11:43:57Z level=ERROR run=4 error.error="APICallError: The usage limit was reached" a=b'
    ending = ended("opencode", [], log, -15, timed_out=True)
    assert (type(ending), ending[:2]) == (Limited, ("APICallError: The usage limit was reached", None))


def test_a_message_that_a_turn_is_empty_is_an_empty_answer_and_one_that_it_went_round_in_circles_an_error():
    says = [{"type": "error", "severity": "error", "message": "The model returned an empty response with no text."}]
    assert answer(ended("gemini", [*says, {"type": "result", "status": "error"}])) == ""
    loops = [{"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}]
    assert ended("gemini", [*loops, {"type": "result", "status": "success"}]).why == "Loop detected, stopping execution"


def test_one_object_is_read_where_lines_were_expected_if_it_is_the_whole_output():
    whole = {"session_id": "s1", "response": "Done.", "stats": {"models": {"m": {"tokens": {"prompt": 5}}}}}
    assert answer(ended("gemini", [whole])) == "Done."
    assert ended("gemini", [whole]).reply.session == "s1"
    begun = ended("gemini", [{"type": "init", "session_id": "s1"}])
    assert (type(begun), begun.why.split(":")[0]) == (CallFailed, "it ended without a result")


def test_a_list_of_events_is_read_where_each_was_to_have_a_line():
    begun, result = {"type": "system", "session_id": "s1"}, {"type": "result", "result": "Done.", "is_error": False}
    ending = ended("qwen", [[begun, {"type": "assistant"}, {**result, "usage": {"input_tokens": 5}}]])
    assert (answer(ending), ending.reply.session, ending.reply.tokens_in) == ("Done.", "s1", 5)
    failed = {"type": "result", "is_error": True, "error": {"message": "401 Incorrect API key provided"}}
    assert ended("qwen", [[begun, failed]]).why == "401 Incorrect API key provided"


def test_a_reply_counts_though_the_program_complained_after_it():
    reply = {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}}
    lines = [reply, {"type": "error", "message": "Reconnecting... 1/5"}, {"type": "turn.completed", "usage": {}}]
    assert answer(ended("codex", lines)) == "Done."


def test_words_in_place_of_an_object_are_what_a_failed_program_says(call):
    script = call.script("print('limit reached, try again in 2 hours'); sys.exit(1)")
    ending = call(start=script, output="json", rate_limit={"pattern": "limit reached"})
    assert (type(ending), ending.until, ending.confirmed) == (Limited, NOW + 2 * HOUR, False)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_what_is_longer_than_memory_may_hold_is_no_result(form, monkeypatch):
    monkeypatch.setattr(output, "LONGEST", 100)
    line = json.dumps({"type": "result", "result": "x" * 100})
    reader = OutputReader(OutputForm(form, reply="result"), lambda _: None)
    for byte in range(0, len(line), 40):
        reader.feed(line[byte : byte + 40].encode())
    assert not reader.finish("").has_result
