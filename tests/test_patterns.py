"""Regular expressions of others: found as `re` finds them, in linear time, or refused with the reason."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import InvalidSetting
from wakeful.patterns import Pattern

NESTED = [
    "(a+)+$",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*)*x$",
    "(x+x+)+y",
    "a*a*a*a*a*a*b",
    "(?s).*a.*a.*a.*a.*b",
    "(a?){60}a{60}$",
]
REPEATED = [r"(a|b)*a(a|b){200}\x00", r".*a.{900}\x00", r"\w*a\w{150}\x00", r"(?:.?){900}\x00", r"(?:(?:a?){30}){30}b"]


@pytest.mark.promise("X18")
@pytest.mark.parametrize("pattern", [*NESTED, *REPEATED])
def test_whatever_the_pattern_a_text_of_130_000_characters_is_searched_within_seconds(pattern):
    for text in ("a" * 130_000 + "!", "ab" * 65_000, "a\n" * 65_000, "aé日 " * 32_000):
        began = time.process_time()
        Pattern(pattern, ignore_case=True).is_in(text)
        assert time.process_time() - began < 60  # of the processor; what backtracks takes years


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^/ask ", "/ask me"), ("^/ask ", "do /ask me"), ("done$", "all done\n"), ("done$", "done\nno"),
        (r"done\Z", "all done"),
        ("(?m)^b$", "a\nb\nc"), (r"\bcat\b", "a cat."), (r"\d{4}-\d{2}", "on 2024-05"), ("é|日", "日"),
        (r"[\[\]]", "]"), ("(?s)a.c", "a\nc"), ("", "x"),
        ("(?i)DEPLOY .* to .*", "please deploy it to prod"), ("(?P<n>a)b", "ab"), ("a.c", "a\nc"),
    ],
)  # fmt: skip
def test_a_pattern_is_found_where_re_finds_it(pattern, text):
    assert Pattern(pattern).is_in(text) == (re.search(pattern, text) is not None)


@given(st.from_regex(r"\A[ab.|*+?()]{0,8}\Z"), st.text("ab\n", max_size=8))
def test_small_patterns_mean_what_they_mean_in_re(pattern, text):
    try:
        wanted = re.search(pattern, text) is not None
        ours = Pattern(pattern)
    except (re.error, InvalidSetting):
        return
    assert ours.is_in(text) == wanted


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "is no regular expression: missing ), unterminated subpattern at position 0."),
        ("a(?=b)", "has a lookahead or lookbehind, which takes too long to search for: write it without."),
        ("(?<!a)b", "has a lookahead or lookbehind, which takes too long to search for: write it without."),
        (r"(a)\1", "has a reference back to a group, which takes too long to search for: write it without."),
        ("(?>a)b", "has an atomic group, which takes too long to search for: write it without."),
        ("a++b", "has a possessive quantifier, which takes too long to search for: write it without."),
        ("(a)?(?(1)b|c)", "has a condition on a group, which takes too long to search for: write it without."),
        ("[a&&b]", "has [, &&, --, ~~ or || in a set: put a backslash before each of the characters."),
        (r"[\b]", "is not supported: invalid escape sequence found in character class."),
        ("(?:(?:a{100}){100}){100}", "repeats too much: use smaller numbers in {}, or + and * instead."),
        (r"\w{2000}", "repeats too much: use smaller numbers in {}, or + and * instead."),
        ("a{4294967295}", None), ("(" * 400 + ")" * 400, None),
        ("a" * 1001, "has 1001 characters, and may have 1,000."),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_in_linear_time_is_refused_at_once_with_the_reason(pattern, reason):
    began = time.process_time()
    with pytest.raises(InvalidSetting) as caught:
        Pattern(pattern)
    assert reason is None or str(caught.value) == reason
    assert time.process_time() - began < 60


def test_a_text_that_no_encoding_can_write_is_searched_nevertheless():
    assert Pattern("cat").is_in("\udcff cat")
