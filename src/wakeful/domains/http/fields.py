"""What a job that sends a request is written with: `url: https://…`, and the keys besides it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.domains.http.referring import PARTS, refers, sample
from wakeful.errors import InvalidJob
from wakeful.fields import Field, Flag, Schema, one_of
from wakeful.references import absolute, map_texts, unescaped

_TEXT: Schema = {"type": "string"}
_CODE: Schema = {"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, _TEXT]}
_REDIRECTS = {"follow": {}, "refuse": {"follow_redirects": False}}


def _same(key: str, value: Any) -> Mapping[str, Any]:
    from wakeful.domains.http.spec import check_field  # loads the rules about addresses

    check_field(key, value)
    return {key: value}


def _referring(key: str, value: Any) -> Mapping[str, Any]:
    """A part that may refer to values: checked with something in their place, and kept as it is written."""
    for name, text in value.items() if key == "headers" and isinstance(value, dict) else ():
        if not isinstance(text, str):
            raise InvalidJob(f"headers.{name} is {text!r:.40}, which is not text: put it in quotes.")
    _same(key, sample({key: value})[key])
    try:
        map_texts(value, lambda text: absolute(text, Path("/")))
    except RuntimeError as error:
        raise InvalidJob(f"{key}: {error}") from None
    return {key: value}


def _redirects(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, str) or value not in _REDIRECTS:
        raise InvalidJob(f"{key} is follow or refuse, not {value!r:.40}.")
    return _REDIRECTS[value]


def finish(payload: dict[str, Any], folder: Path) -> Mapping[str, Any]:
    """With references, all of it is filled in when it runs; without, `$${` is what it stands for."""
    referring = any(refers(payload.get(key)) for key in PARTS)

    def change(text: str) -> str:
        return absolute(text, folder) if referring else unescaped(text)

    found = {key: map_texts(value, change) if key in PARTS else value for key, value in payload.items()}
    return {**found, "references": True} if referring else found


# fmt: off
FIELDS = (
    Field("url", _referring, _TEXT,
          "Send an HTTP request to this address instead of running a command.",
          "https://example.org/health", Flag("ADDRESS"), refers=True),
    Field("method", _same, _TEXT,
          "With `url`: the method, GET (default), POST, ...", "POST", Flag("METHOD", "capitals")),
    Field("headers", _referring, {"type": "object", "additionalProperties": _TEXT},
          "With `url`: headers, such as 'Accept: text/html'.",
          {"Accept": "text/html"}, Flag("HEADER", "header", many=True, name="--header"), refers=True),
    Field("body", _referring, {"type": ["string", "object", "array"]},
          "With `url`: the request body.", "ping", Flag("TEXT"), refers=True),
    Field("expect", _same, {"anyOf": [_CODE, {"type": "array", "items": _CODE, "minItems": 1}]},
          "With `url`: status codes that mean success (default: 2xx).",
          [200, 204], Flag("CODE", "statuses", many=True)),
    Field("redirects", _redirects, one_of(*_REDIRECTS),
          "With `url`: whether redirects are followed, `follow` (default) or `refuse`.",
          "refuse", Flag("POLICY", "redirects"), stored="follow_redirects"),
)
# fmt: on
