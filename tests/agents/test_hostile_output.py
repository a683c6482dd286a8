"""What a program prints cannot keep the server busy: the patterns of presets and of users on text made against them."""

from __future__ import annotations

import json
import re
import time

import pytest

from wakeful.domains.agents.runners.judging import CallTime, EndedCall, Signs, judge
from wakeful.domains.agents.runners.output import OutputReader
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.patterns import Pattern

LENGTH = 200_000
FRAGMENTS = [
    " ", "\n", " \n", "a", "1", "in 1", "again ", "resets at ", "litellm.A: x\n", "Repo-map:\n", "Tokens: 1k sent ",
    "timestamp=", "timestamp=1 level=ERROR ", "hit your ", "Ran into this error: ", "rate", "eval count: 1\n",
    "{", "\x1b[", '{"a":[',
]  # fmt: skip


def fragments(preset):
    """Texts from which hostile output is made: some that are hard for many, and the words of the preset's patterns."""
    form = preset.output
    patterns = [str(text) for text in (*preset.signs, form.said, form.trouble, form.counted, form.apology) if text]
    return [*FRAGMENTS, *sorted({word for text in patterns for word in re.findall(r"[A-Za-z][A-Za-z :.]{5,}", text)})]


def read(form, signs, stdout, stderr):
    reader = OutputReader(form, lambda session: None)
    reader.feed(stdout.encode())  # in small pieces in a server, as it is printed
    began = time.process_time()
    printed = reader.finish(stdout, stderr)
    call = EndedCall(
        1, stdout, stderr, printed, is_text=form.format == "text", resumed=True, error="exited with code 1"
    )
    return judge(call, signs, CallTime(0)), time.process_time() - began


@pytest.mark.parametrize("name", PRESETS)
def test_long_hostile_output_is_read_within_seconds(name):
    preset = PRESETS[name]
    for fragment in fragments(preset):
        hostile = (fragment * (LENGTH // len(fragment)))[: LENGTH - 1] + "~"
        reply = json.dumps({"type": "result", "is_error": True, "result": hostile, "error": {"message": hostile}})
        for stdout, stderr in ((hostile, ""), (reply, hostile)):
            _, took = read(preset.output, preset.signs, stdout, stderr)
            assert took < 30, (fragment, len(stdout))


@pytest.mark.promise("X18")
@pytest.mark.timeout(600)
def test_users_patterns_do_not_backtrack_on_what_a_program_prints():
    given = {
        name: Pattern("(a+)+~", ignore_case=True) for name in ("failure", "rate_limit", "session_gone", "overload")
    }
    ending, took = read(PRESETS["scripted"].output, Signs(success=Pattern("(.*)*~"), **given), "a" * LENGTH, "A" * 1000)
    assert type(ending).__name__ == "CallFailed"
    assert took < 30
