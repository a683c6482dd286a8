"""`GET /` for programs: the list of addresses. It needs no token and shows nothing that is stored."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from wakeful import __version__

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
    "metrics": "/metrics",
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


def listing() -> Response:
    """What there is."""
    return JSONResponse({"name": "wakeful", "version": __version__, "access": ACCESS, **PLACES})
