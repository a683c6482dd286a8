"""`/mcp`: MCP over HTTP with a bearer token. Each request stands alone, so that nothing is kept for a client."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from wakeful.routing.auth import Anyone
from wakeful.routing.problems import ApiError, problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from wakeful.surfaces.mcp.tool_context import ToolContext

PATH = "/mcp"
MISSING = "MCP needs the package mcp on the server: pip install 'wakeful[mcp]'."
router = APIRouter(include_in_schema=False)


class SdkResponse(Response):
    """An answer that the SDK writes."""

    def __init__(self) -> None:
        super().__init__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(app=_server(), stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


@router.post(PATH)
async def post(_: Anyone) -> Response:
    """One message of a client."""
    try:
        _server()
    except ImportError:
        return problem(501, "not_installed", MISSING)
    return SdkResponse()


@router.get(PATH)
@router.delete(PATH)
async def other(_: Anyone) -> Response:
    """There are no streams to listen to, and no sessions to end."""
    raise ApiError(405, "method_not_allowed", "Send messages with POST.", headers={"Allow": "POST"})


@cache
def _server() -> Any:
    from wakeful.surfaces.mcp.server import make_server

    return make_server(_context)


async def _context(request: Request) -> ToolContext:
    """The caller was recognised before the message was read."""
    from wakeful.surfaces.mcp.tool_context import context_of

    state = request.app.state
    return await context_of(state.scheduler, state.settings, request.state.caller)
