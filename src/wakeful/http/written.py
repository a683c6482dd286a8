"""How a request is written in a configuration file: `url: https://…`, and the keys beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wakeful.errors import InvalidJob
from wakeful.http.referring import map_texts, refers, sample
from wakeful.http.spec import check_field
from wakeful.kernel.kinds import WrittenForm
from wakeful.references import absolute, unescaped

_REFERRING = ("url", "headers", "body")
_REDIRECTS = {"follow": {}, "refuse": {"follow_redirects": False}}


def _same(key: str) -> Callable[[Any, Path], Mapping[str, Any]]:
    def read(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
        check_field(key, value)
        return {key: value}

    return read


def _referring(key: str) -> Callable[[Any, Path], Mapping[str, Any]]:
    """A part that may refer to values: checked with something in their place, and kept as it is written."""

    def read(value: Any, folder: Path) -> Mapping[str, Any]:
        if key == "headers":
            _refuse_other_than_texts(value)
        check_field(key, sample({key: value})[key])
        try:
            return {key: map_texts(value, lambda text: absolute(text, folder))}
        except RuntimeError as error:
            raise InvalidJob(f"{key}: {error}") from None

    return read


def _refuse_other_than_texts(headers: Any) -> None:
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if not isinstance(value, str):
            raise InvalidJob(f"headers.{name} is {value!r:.40}, which is not text: put it in quotes.")


def _redirects(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
    if not isinstance(value, str) or value not in _REDIRECTS:
        raise InvalidJob(f"redirects is follow or refuse, not {value!r:.40}.")
    return _REDIRECTS[value]


def _finish(payload: dict[str, Any], folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - as above
    """With references, all of it is filled in when it runs; without, `$${` is what it stands for."""
    if any(refers(payload.get(key)) for key in _REFERRING):
        return {**payload, "references": True}
    return {key: map_texts(value, unescaped) if key in _REFERRING else value for key, value in payload.items()}


_CODE = {"anyOf": [{"type": "integer", "minimum": 100, "maximum": 599}, {"type": "string"}]}

FORM = WrittenForm(
    key="url",
    fields={
        "url": _referring("url"),
        "method": _same("method"),
        "headers": _referring("headers"),
        "body": _referring("body"),
        "expect": _same("expect"),
        "redirects": _redirects,
    },
    finish=_finish,
    with_references=frozenset(_REFERRING),
    names={"follow_redirects": "redirects"},
    schema={
        "url": {"type": "string"},
        "method": {"type": "string"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": ["string", "object", "array"]},
        "expect": {"anyOf": [_CODE, {"type": "array", "items": _CODE, "minItems": 1}]},
        "redirects": {"enum": list(_REDIRECTS)},
    },
)
