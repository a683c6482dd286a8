"""`GET /`: the list of addresses. It needs no token and shows nothing that is stored."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from wakeful import __version__

router = APIRouter()

PLACES = {
    "docs": "/api/docs",
    "openapi": "/api/openapi.json",
    "health": "/healthz",
    "me": "/api/me",
    "jobs": "/api/jobs",
    "runs": "/api/runs",
    "schedules": "/api/schedule",
    "events": "/api/events",
    "stats": "/api/stats",
    "verdict": "/api/verdict",
    "actions": "/api/actions",
    "approvals": "/api/approvals",
    "alerts": "/api/alerts",
    "nodes": "/api/nodes",
    "ledger": "/api/ledger",
    "deliveries": "/api/deliveries",
    "connectors": "/api/connectors",
    "agents": "/api/agents",
    "work": "/api/work",
    "requests": "/api/requests",
    "workflows": "/api/workflows",
}
ACCESS = "All of /api but docs and openapi needs a token: send it as Authorization: Bearer wk_…"


@router.get("/", include_in_schema=False)
async def index(request: Request) -> Response:
    """A list of addresses as JSON; a page for browsers, which ask for one."""
    if "text/html" in request.headers.get("accept", ""):
        return HTMLResponse(_page())
    return JSONResponse({"name": "wakeful", "version": __version__, "access": ACCESS, **PLACES})


def _page() -> str:
    items = "".join(
        f'<li><a href="{path}">{escape(name)}</a> <code>{path}</code></li>' for name, path in PLACES.items()
    )
    head = f'<meta charset="utf-8"><title>Wakeful {__version__}</title>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head>'
        f"<body><h1>Wakeful {__version__}</h1><ul>{items}</ul><p>{escape(ACCESS)}</p></body></html>"
    )
