"""How the server says no: one shape for every error.

`error` is the sentence for people, `code` the word for programs; `type`, `title`, `status` and `detail` make it a
problem document (RFC 9457). A fault of ours shows no more than an id, under which the log has the whole story.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response

from wakeful.errors import SchedulerError, ScheduleTriggerError, StoreError, StoreFull, StoreGone

log = logging.getLogger("wakeful.api")

#: The page for a person at whose address there is nothing; None for a program.
Missing = Callable[[Request], Awaitable[Response | None]]

PROBLEM_TYPE = "application/problem+json"
ALWAYS = (400, 401, 403, 422, 429, 500, 503)
"""What any route may answer."""

CODES = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    406: "not_acceptable", 409: "conflict", 412: "changed", 413: "too_large", 415: "unsupported_media_type",
    422: "invalid", 428: "precondition_required", 429: "too_many_requests", 500: "fault", 503: "unavailable",
}  # fmt: skip

TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
    412: "Precondition Failed", 413: "Request Entity Too Large", 414: "Request-URI Too Long",
    415: "Unsupported Media Type", 417: "Expectation Failed", 422: "Unprocessable Entity",
    428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable",
}  # fmt: skip
"""What a status is called in an answer. A table of ours: the interpreter's phrases differ between its versions."""


def title(status: int) -> str:
    """What this status is called."""
    return TITLES.get(status, "Error")


class FieldProblem(BaseModel):
    """What is wrong with one part of a request."""

    field: str
    message: str


class Problem(BaseModel):
    """An error, as every route answers it."""

    model_config = ConfigDict(extra="allow")

    error: str
    code: str
    status: int
    type: str
    title: str
    detail: str
    errors: list[FieldProblem] | None = None


class ApiError(SchedulerError):
    """A refusal that only this surface makes: `raise ApiError(403, "forbidden", "Only an admin may …")`."""

    def __init__(
        self, status: int, code: str, sentence: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        self.more = more


def problem(
    status: int, code: str, sentence: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """The answer for this problem."""
    body = {
        "error": sentence,
        "code": code,
        "status": status,
        "type": "about:blank",
        "title": title(status),
        "detail": sentence,
        **more,
    }
    # In ASCII: a message may quote half of a surrogate pair, which no other encoding can carry.
    text = json.dumps(body)
    return Response(text, status_code=status, headers=dict(headers or {}), media_type=PROBLEM_TYPE)


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route: these errors, and those that any route may answer."""
    return {status: {"model": Problem, "description": title(status)} for status in sorted({*ALWAYS, *statuses})}


def add_handlers(app: FastAPI) -> None:
    """Every error of an app is answered in the same shape."""
    app.add_exception_handler(SchedulerError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _broken)


async def _refused(_: Request, error: Exception) -> Response:
    status, code = getattr(error, "status", 500), getattr(error, "code", "error")
    more = dict(getattr(error, "more", {}))
    if (field := getattr(error, "field", None)) is not None:
        more.setdefault("field", str(field))
    if (detail := getattr(error, "detail", None)) is not None:
        more.setdefault("detail", str(detail))
    if isinstance(error, ScheduleTriggerError) and "reason" in error.context:
        more.setdefault("reason", str(error.context["reason"]))
    if status >= 500 and status != 503:
        return fault(error)
    return problem(status, code, public_text(error), headers=getattr(error, "headers", None), **more)


GONE = "The store's file was removed or replaced while it was in use: put the right file there, then start the server."


def public_text(error: Exception) -> str:
    """What a caller is told. A failing database is named to nobody: while it fails, no token can be checked."""
    if not isinstance(error, StoreError):
        return str(error)
    log.info("%s", error)
    if isinstance(error, StoreFull):
        return "The disk is full."
    if isinstance(error, StoreGone):
        return GONE
    return "The database is unavailable: try again later. The server's log says why."


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    found = error.errors()
    for one in found:
        if one["type"] == "json_invalid":
            return problem(400, "invalid_json", _not_json(one))
    errors = [{"field": _place(one["loc"]), "message": _wanted(one) or str(one["msg"])} for one in found]
    return problem(422, "invalid", _sentence(found[0]) if found else "The request cannot be read.", errors=errors)


def _not_json(error: dict[str, Any]) -> str:
    said, place = str(error.get("ctx", {}).get("error", "")), error["loc"][-1]
    if not said or not isinstance(place, int):
        return "The body is not JSON."
    return f"The body is not JSON: {said[:1].lower()}{said[1:]} at character {place + 1}."


_WORDS = {
    "missing": "is required", "bool_type": "must be true or false", "bool_parsing": "must be true or false",
    "list_type": "must be a list", "dict_type": "must be an object", "model_type": "must be an object",
    "model_attributes_type": "must be an object", "string_type": "must be a text",
    "int_type": "must be a whole number", "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number", "float_type": "must be a number", "float_parsing": "must be a number",
    "finite_number": "must be a finite number", "string_unicode": "must be a text of valid Unicode characters",
    "int_parsing_size": "must be a smaller number",
}  # fmt: skip
_BOUNDS = {
    "greater_than_equal": ("ge", "be at least {}"), "less_than_equal": ("le", "be at most {}"),
    "greater_than": ("gt", "be more than {}"), "less_than": ("lt", "be less than {}"),
    "string_too_short": ("min_length", "have at least {} character{s}"),
    "string_too_long": ("max_length", "have at most {} character{s}"),
    "too_short": ("min_length", "have at least {} item{s}"), "too_long": ("max_length", "have at most {} item{s}"),
    "string_pattern_mismatch": ("pattern", "match {}"),
}  # fmt: skip
_FRAMEWORK = re.compile("(?:Input|String|Value) should ")


PATTERN_WORDS: dict[str, str] = {}
"""What a pattern of a request's model asks for, where that is easier said: `have a visible character`."""


def _wanted(error: dict[str, Any]) -> str | None:
    """What a value must be, in words that need no knowledge of Python; None where the message says it as it is."""
    if error["type"] in _BOUNDS:
        name, words = _BOUNDS[error["type"]]
        bound = error["ctx"][name]
        if bound in PATTERN_WORDS:
            return f"must {PATTERN_WORDS[bound]}"
        return "must " + words.format(bound, s="" if bound == 1 else "s")
    if error["type"] == "literal_error":
        return f"must be {str(error['ctx']['expected']).replace('True', 'true').replace('False', 'false')}"
    if (known := _WORDS.get(error["type"])) is not None:
        return known
    said = str(error["msg"])
    return _FRAMEWORK.sub("must ", said, count=1) if _FRAMEWORK.match(said) else None


def _sentence(first: dict[str, Any]) -> str:
    place, message = _place(first["loc"]), str(first["msg"])
    if first["type"] == "no_body":
        return message
    if (wanted := _wanted(first)) is not None:
        return f"{'The body' if first['loc'] == ('body',) else place or 'The request'} {wanted}."
    if first["type"] != "unknown_name":
        return f"{place or 'The request'}: {message}"
    section = ".".join(place.split(".")[:-1])
    return message.replace("';", f"' in {section};", 1) if section else message


def _place(path: tuple[Any, ...]) -> str:
    """Where in the request; what the route calls it without saying whether it was in the body or the query."""
    return ".".join(str(part) for part in (path[1:] if len(path) > 1 else path))


async def _plain(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: unknown paths, wrong methods."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    missing: Missing | None = request.app.state.missing if error.status_code == 404 else None
    if missing is not None and (page := await missing(request)) is not None:
        return page
    code = CODES.get(error.status_code, "error")
    methods = request.app.state.allowed(request.url.path) if error.status_code == 405 else []
    sentences = {
        404: "There is nothing at this address: / lists what there is.",
        405: f"{request.method} is not possible at this address: use {', '.join(methods) or 'another method'}.",
    }
    default = f"{title(error.status_code)}."
    is_bare = error.detail == HTTPStatus(error.status_code).phrase  # the framework's default text
    sentence = sentences.get(error.status_code, default) if is_bare else str(error.detail)
    headers = dict(error.headers or {})
    if methods:
        headers["Allow"] = ", ".join(methods)  # the framework names those of one route; an address may have several
    return problem(error.status_code, code, sentence, headers=headers)


async def _broken(_: Request, error: Exception) -> Response:
    return fault(error)


def fault(error: BaseException) -> Response:
    """Something of ours broke: an id for the person, the whole story for the log."""
    error_id = secrets.token_hex(6)
    log.error("fault %s: %s: %s", error_id, type(error).__name__, error, exc_info=error)
    return problem(500, "fault", f"This is a fault in Wakeful; the server's log has it as {error_id}.", id=error_id)
