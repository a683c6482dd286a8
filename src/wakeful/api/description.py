"""The API's description of itself: OpenAPI for programs, one page for people. It says nothing about what is stored."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import BaseRoute

from wakeful.api import forms
from wakeful.api.problems import PROBLEM_TYPE

PROBLEM = "#/components/schemas/Problem"
REFUSED_BODIES = ("408", "413", "415")
NO_NUL = r"^[^\u0000]*$"
METHODS = ("get", "post", "put", "patch", "delete")

router = APIRouter(tags=["description"])

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1e; background: #fff }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd } code { font-size: 0.95em } .verb { font-weight: 700; display: inline-block; min-width: 4.5rem }
section { margin: 1.25rem 0 } p { margin: 0.25rem 0 } .quiet { color: #5c5c66 }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #16161a } .quiet { color: #a5a5b0 } h2 { border-color: #444 } a { color: #9cf } }
"""  # noqa: E501 - a style sheet
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


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
        schema = forms.shared(schema)
        schema["components"]["schemas"] |= {name: forms.shared(one, name) for name, one in forms.SHARED.items()}
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


def _parameters(operation: dict[str, Any]) -> None:
    """A parameter is given or left out: an address or a header cannot hold null; nor may there be a NUL."""
    for parameter in operation.get("parameters", []):
        schema = parameter["schema"]
        said = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
        if len(said) == 1:
            del schema["anyOf"]
            schema.update(said[0])
        if schema.get("type") == "string" and not schema.keys() & {"enum", "const", "format", "pattern"}:
            schema["pattern"] = NO_NUL


@router.get("/api/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The description, for programs."""
    return JSONResponse(await _described(request.app))


async def _described(app: FastAPI) -> dict[str, Any]:
    """Beside the event loop: putting it together takes a third of a second, once, and jobs are due meanwhile."""
    return await asyncio.to_thread(describe, app) if app.openapi_schema is None else app.openapi_schema


@router.get("/api/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """All routes on one page: no script, nothing from elsewhere."""
    page = _page(await _described(request.app))
    policy = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _page(schema: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in schema.get("paths", {}).items():
        for method, operation in operations.items():
            if method in METHODS:
                group = (operation.get("tags") or ["other"])[0]
                groups.setdefault(str(group), []).append(_operation(method, path, operation))
    parts = [f"<h2>{escape(name)}</h2>{''.join(found)}" for name, found in groups.items()]
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    intro = (
        "<p>Send a token with every request: <code>Authorization: Bearer wk_…</code> "
        "(<code>wakeful token create NAME --role ROLE</code>). The same for programs: "
        '<a href="/api/openapi.json">openapi.json</a>.</p>'
    )
    head = f'<meta charset="utf-8"><title>{title}: API</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{title}</h1>{intro}{"".join(parts)}</body></html>'
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    about = escape(str(operation.get("description") or operation.get("summary") or ""))
    named = [escape(str(one["name"])) for one in operation.get("parameters", []) if one.get("in") != "path"]
    given = f'<p class="quiet">takes {", ".join(named)}</p>' if named else ""
    statuses = ", ".join(sorted(operation.get("responses", {})))
    return (
        f'<section><p><span class="verb">{method.upper()}</span> <code>{escape(path)}</code></p>'
        f'<p>{about}</p>{given}<p class="quiet">answers {escape(statuses)}</p></section>'
    )
