"""Regular expressions that a configuration or a request brings, searched in time that is linear in the text.

`re` backtracks: `(a+)+$` takes years on forty letters, and nothing else runs meanwhile. These patterns are searched by
the engine of pydantic, Rust's `regex`, which never backtracks. It has no lookarounds and no references back to a group;
what it does not have, or reads in another way than `re`, is refused when the pattern is given.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]  # its tree says how much a pattern repeats
from typing import Any

from wakeful.counting import counted
from wakeful.errors import InvalidSetting

LONGEST_PATTERN = 1_000  # characters
MOST_STEPS = 1_000  # for each character of the text, about
CLASS_STEPS = 5  # \w, \d and \s stand for many ranges
_END = re.compile(r"\\(.)", re.DOTALL)
_SET = re.compile(r"\\.|\[\^?\]?((?:\\.|[^\]\\])*)\]", re.DOTALL)
_UNCLEAR = re.compile(r"\[|&&|--|~~|\|\|")
_UNKNOWN = {
    "ASSERT": "a lookahead or lookbehind", "ASSERT_NOT": "a lookahead or lookbehind",
    "GROUPREF": "a reference back to a group", "GROUPREF_IGNORE": "a reference back to a group",
    "GROUPREF_EXISTS": "a condition on a group",
    "POSSESSIVE_REPEAT": "a possessive quantifier", "ATOMIC_GROUP": "an atomic group",
}  # fmt: skip


class Pattern:
    """A pattern that was accepted."""

    def __init__(self, text: Any, *, ignore_case: bool = False) -> None:
        """InvalidSetting says what is wrong, as the rest of a sentence about the pattern."""
        if not isinstance(text, str):
            raise InvalidSetting(f"is no text: {text!r:.60}.")
        self._engine = _compiled(text, ignore_case)

    def is_in(self, text: str) -> bool:
        """Whether it is found in a text; `$` also stands before a newline at its end, as in `re`."""
        text = text.encode(errors="replace").decode()
        found: bool = self._engine.isinstance_python(text)
        return found or (text.endswith("\n") and self._engine.isinstance_python(text[:-1]))


@lru_cache(maxsize=1024)
def _compiled(text: str, ignore_case: bool) -> Any:  # noqa: FBT001 - lru_cache keeps positions apart
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    _check(text)
    own = _END.sub(lambda found: r"\z" if found[1] == "Z" else found[0], text)
    pattern = f"(?i){own}" if ignore_case else own
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = str(error).strip().rpartition("\n")[2].rpartition("rror: ")[2].strip(" .")
        raise InvalidSetting(f"is not supported: {reason}.") from None


def _check(text: str) -> None:
    if len(text) > LONGEST_PATTERN:
        raise InvalidSetting(f"has {counted(len(text), 'character')}, and may have {LONGEST_PATTERN:,}.")
    for found in _SET.finditer(text):
        if _UNCLEAR.search(_END.sub("", found[1] or "")):
            raise InvalidSetting("has [, &&, --, ~~ or || in a set: put a backslash before each of the characters.")
    try:
        steps = _steps(_parser.parse(text))
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidSetting(f"is no regular expression: {error}.") from None
    if steps > MOST_STEPS:
        raise InvalidSetting("repeats too much: use smaller numbers in {}, or + and * instead.")


def _steps(tree: Any) -> int:
    """How many places of a pattern one character may be compared with; repetitions count as often as they may be."""
    total = 0
    for kind, value in tree:
        name = str(kind)
        if name in _UNKNOWN:
            raise InvalidSetting(f"has {_UNKNOWN[name]}, which takes too long to search for: write it without.")
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, repeated = value
            times = most if isinstance(most, int) and str(most) != "MAXREPEAT" else least + 1
            total += max(1, times) * _steps(repeated)
        elif name == "SUBPATTERN":
            total += _steps(value[-1])
        elif name == "BRANCH":
            total += sum(_steps(part) for part in value[1])
        else:
            is_class = name == "IN" and any(str(member) == "CATEGORY" for member, _ in value)
            total += CLASS_STEPS if is_class else 1
    return total
