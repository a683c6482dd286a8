"""The description of the API: OpenAPI for programs, one page for people. It shows nothing that is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from wakeful.routing import json_schema
from wakeful.routing.problems import PROBLEM_TYPE
from wakeful.surfaces.api.page import METHODS, STYLE_HASH, render
from wakeful.surfaces.api.vocabulary import PARAMETERS, meaning
from wakeful.threads import room

PROBLEM = "#/components/schemas/Problem"
REFUSED_BODIES = ("408", "413", "415")
NO_NUL = r"^[^\u0000]*$"

router = APIRouter(tags=["description"])


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: what the routes say of themselves, and what the guard in front of them answers."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        for path in schema.get("paths", {}).values():
            for method, operation in path.items():
                if method in METHODS:
                    _complete(method, operation)
                    _parameters(operation)
        schemas = schema.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schema = json_schema.shared(schema)
        schema["components"]["schemas"] |= {
            name: json_schema.shared(one, name) for name, one in json_schema.SHARED.items()
        }
        for name, one in schema["components"]["schemas"].items():
            _explain(name, one)
        app.openapi_schema = schema
    return app.openapi_schema


def allowed(routes: Iterable[BaseRoute], path: str) -> list[str]:
    """The methods of an address, for a caller that used another; nothing for one that is not described."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, APIRoute) and route.include_in_schema and route.path_regex.match(path):
            found |= route.methods or set()
    return sorted(found | {"HEAD"} if "GET" in found else found)


def _complete(method: str, operation: dict[str, Any]) -> None:
    """Errors are problem documents, from every part of the server."""
    responses: dict[str, Any] = operation.setdefault("responses", {})
    if method != "get":
        for status in REFUSED_BODIES:
            responses.setdefault(status, {"description": "The body was refused."})
    for status, response in responses.items():
        contents = response.get("content", {}).values()
        references = [str(content.get("schema", {}).get("$ref", "")) for content in contents]
        is_problem = any(one == PROBLEM or one.endswith("/HTTPValidationError") for one in references)
        if is_problem or (status in REFUSED_BODIES and not references):
            response["content"] = {PROBLEM_TYPE: {"schema": {"$ref": PROBLEM}}}


def _explain(model: str, part: Any) -> None:
    """Every field says what it means and shows an example, its own or that of the vocabulary."""
    if isinstance(part, list):
        for one in part:
            _explain(model, one)
    if not isinstance(part, dict):
        return
    fields = part.get("properties")
    if isinstance(fields, dict):
        part["properties"] = {name: _explained(one, meaning(model, name)) for name, one in fields.items()}
    for one in part.values():
        _explain(model, one)


def _explained(field: dict[str, Any], known: tuple[str, Any] | None) -> dict[str, Any]:
    """A copy: what many models share is one object before it is written."""
    field = dict(field)
    about = str(field.get("description") or (known[0] if known is not None else ""))
    if about:
        field["description"] = f"{about[0].upper()}{about[1:]}".rstrip(".") + "."
    if known is not None and field.get("type") != "null" and not field.keys() & {"examples", "enum", "const"}:
        field["examples"] = [known[1]]
    return field


def _parameters(operation: dict[str, Any]) -> None:
    """A parameter is given or left out: an address or a header cannot hold null, and no NUL character."""
    for parameter in operation.get("parameters", []):
        schema = parameter["schema"]
        said = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
        if len(said) == 1:
            del schema["anyOf"]
            schema.update(said[0])
        if schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format", "pattern"}:
            schema["pattern"] = NO_NUL
        known = PARAMETERS.get(parameter["name"])
        if known is not None:
            parameter["description"] = known[0]
            if known[1] is not None and not schema.keys() & {"enum", "examples"}:
                schema["examples"] = [known[1]]


class Texts(NamedTuple):
    """The description as it is sent. It is written once: everybody may ask for it, and jobs are due meanwhile."""

    for_programs: bytes
    for_people: bytes


def _write(app: FastAPI) -> Texts:
    schema = describe(app)
    return Texts(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode(), render(schema).encode())


async def _texts(app: FastAPI) -> Texts:
    """Outside the event loop: putting it together takes a third of a second."""
    if not hasattr(app.state, "description"):
        app.state.description = await room("API description").call(_write, app)
    found: Texts = app.state.description
    return found


@router.get("/api/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The description, for programs."""
    return Response((await _texts(request.app)).for_programs, media_type="application/json")


@router.get("/api/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """All routes on one page: no script, nothing from elsewhere."""
    policy = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'"
    return HTMLResponse((await _texts(request.app)).for_people, headers={"Content-Security-Policy": policy})
