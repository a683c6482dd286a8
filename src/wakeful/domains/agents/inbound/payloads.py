"""What a request brings, from bytes to values, and how a prompt refers to them. Pure.

`{payload.sender.login}` in a prompt becomes the label `[payload.sender.login]`; the value follows that label in
the marked block, and nowhere else. Names are looked up in maps and numbers in lists, never attributes of objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from wakeful.counting import counted
from wakeful.domains.agents.prompting import Outside
from wakeful.domains.agents.runners.paths import values_at
from wakeful.kernel.rules.outcome import clean

LONGEST_VALUE = 10_000
LONGEST_PAYLOAD = 40_000
MOST_FIELDS = 100
DEEPEST = 64
TOO_DEEP = f"The JSON in the body is nested more than {DEEPEST} levels deep."
ABSENT = "(not there)"
ON_WEBHOOK = "A webhook was called. Look at what it brought, and do what you are there for."
ON_MESSAGE = "A person wrote to you. Answer their message: your reply is sent to them."
_FIELD = re.compile(r"\{payload((?:\.[A-Za-z0-9_-]{1,64}|\[-?[0-9]{1,6}\])*)\}")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"


class UnreadableBody(ValueError):
    """A body that is not what its headers say; the message is a sentence."""


def read_body(body: bytes, content_type: str | None) -> tuple[str, Any]:
    """The body as text, and as values: JSON, the fields of a form, or the text itself. UnreadableBody says why not."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableBody("The body is not UTF-8.") from None
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == _FORM and "=" in text:  # curl calls any text a form
        return text, _form(text)
    if _JSON.fullmatch(kind):
        return text, _json(text) if text.strip() else None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return text, _json(text)
        except UnreadableBody:
            return text, text
    return text, text or None


def values_in(text: str, content_type: str | None) -> Any:
    """The values in a text that was read before."""
    try:
        return read_body(text.encode("utf-8", "replace"), content_type)[1]
    except UnreadableBody:
        return text


def _form(text: str) -> Any:
    """Fields of a form; GitHub and Slack put JSON into the one called payload."""
    try:
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=1000, errors="replace"))
    except ValueError:
        raise UnreadableBody("The form has more than 1,000 fields.") from None
    return _json(fields["payload"]) if fields.keys() == {"payload"} else fields


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise UnreadableBody(TOO_DEEP) from None
    except ValueError:
        raise UnreadableBody("The body is not valid JSON.") from None
    level, depth = [value], 0
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
        if depth > DEEPEST:
            raise UnreadableBody(TOO_DEEP)
    return value


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _refuse(name: str) -> Any:
    raise ValueError(name)


class Filled(NamedTuple):
    """A prompt whose fields are labels, and what they stand for."""

    prompt: str
    outside: list[Outside]


def fill(prompt: str, payload: Any) -> Filled:
    """The prompt with labels for its fields. One that names none is given the whole payload."""
    found: dict[str, str] = {}

    def label(match: re.Match[str]) -> str:
        path = match[1].removeprefix(".")
        name = f"[payload{match[1]}]"
        if name not in found and len(found) < MOST_FIELDS:
            found[name] = _value(payload, path)
        return name

    text = _FIELD.sub(label, prompt)
    if not found:
        found["[payload]"] = _shown(payload, LONGEST_PAYLOAD)
    return Filled(text, _bounded(found))


def _bounded(found: Mapping[str, str]) -> list[Outside]:
    """As much of the values as a prompt may hold."""
    left, outside = LONGEST_PAYLOAD, list[Outside]()
    for name, value in found.items():
        outside.append(Outside(name, _cut(value, left)))
        left = max(0, left - len(value))
    return outside


def _value(payload: Any, path: str) -> str:
    values = values_at(payload, path) if path else [payload]
    return _shown(values[0], LONGEST_VALUE) if values else ABSENT


def _shown(value: Any, most: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(clean(text), most)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({counted(len(text) - most, 'more character')})"
