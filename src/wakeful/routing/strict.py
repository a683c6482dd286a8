"""Nothing a request says is passed over: an unknown field or parameter is refused, with the nearest that is known."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from wakeful.routing.addresses import OPEN_PATHS
from wakeful.routing.auth import anyone

UNKNOWN = "unknown_name"
"""The type of such a mistake, in the list of what is wrong with a request."""


class Strict(BaseModel):
    """The base of every request body and of its parts: takes the fields it has, and numbers only as numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known, carried = [field.alias or name for name, field in cls.model_fields.items()], cls.carried()
        unknown = [name for name in data if name not in known and name not in carried]
        if unknown:
            faults = [
                InitErrorDetails(type=_fault("field", name, known), loc=(_short(name),), input=None) for name in unknown
            ]
            raise ValidationError.from_exception_data(cls.__name__, faults)
        return {name: value for name, value in data.items() if name in known}

    @classmethod
    def carried(cls) -> tuple[str, ...]:
        """Fields of answers that a request may carry along; nothing is done with them."""
        return ()


async def refuse_unknown_names(request: Request) -> None:
    """A dependency of every route: 422 for names that the route does not take. Missing rights are reported first."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not route.include_in_schema:  # a page is shown without what it does not know
        return
    errors = [*_unknown_parameters(request, route), *await _unknown_fields(request, route)]
    if errors:
        if any(one.call is anyone for one in _parts(route.dependant)):
            await anyone(request)
        raise RequestValidationError(errors)


def _unknown_parameters(request: Request, route: APIRoute) -> list[dict[str, Any]]:
    # Others send to open addresses what they always send: a ping or a webhook is not refused for more of it.
    if not request.query_params or request.url.path.startswith(OPEN_PATHS):
        return []
    known = [field.alias for one in _parts(route.dependant) for field in one.query_params]
    return [
        _error("query", "parameter", name, known) for name in dict.fromkeys(request.query_params) if name not in known
    ]


async def _unknown_fields(request: Request, route: APIRoute) -> list[dict[str, Any]]:
    """The fields of a body that is sent where none is taken. Others are read by their models, or are free text."""
    if route.body_field is not None or request.method == "GET" or request.url.path.startswith(OPEN_PATHS):
        return []
    body = await request.body()
    try:
        data = json.loads(body) if body.strip() else None
    except ValueError:
        return [{"type": "json_invalid", "loc": ("body",), "msg": "The body is not JSON.", "input": None}]
    if isinstance(data, dict):
        return [_error("body", "field", name, ()) for name in data]
    return [] if data is None else [{"type": "no_body", "loc": ("body",), "msg": "This takes no body.", "input": None}]


def _error(where: str, what: str, name: str, known: Iterable[str]) -> dict[str, Any]:
    fault = _fault(what, name, known)
    return {"type": fault.type, "loc": (where, _short(name)), "msg": fault.message(), "input": None}


def _parts(dependant: Dependant) -> Iterator[Dependant]:
    """A route with everything it depends on."""
    yield dependant
    for one in dependant.dependencies:
        yield from _parts(one)


def _fault(what: str, name: str, known: Iterable[str]) -> PydanticCustomError:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1)
    takes = (
        f"known are {', '.join(names)}." if names else f"this takes no {'body' if what == 'field' else 'parameters'}."
    )
    hint = f"did you mean '{near[0]}'?" if near else takes
    return PydanticCustomError(UNKNOWN, f"Unknown {what} '{{name}}'; {{hint}}", {"name": _short(name), "hint": hint})


def _short(name: str) -> str:
    return name[:60]
