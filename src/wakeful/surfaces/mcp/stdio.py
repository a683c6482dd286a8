"""MCP over standard input and output: on a store of this machine, or as a bridge to a server's `/mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult, TextContent

from wakeful.console.remote import ServerRefused
from wakeful.surfaces.mcp.server import INSTRUCTIONS, NAME, make_server
from wakeful.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.types import CallToolRequestParams, ReadResourceRequestParams

    from wakeful.surfaces.mcp.tool_context import ToolContext


async def serve_here(ctx: ToolContext) -> None:
    """Answer until standard input ends, with the rights of this ctx."""

    async def find(_request: Any) -> ToolContext:
        return ctx

    await _serve(make_server(find))


async def serve_bridge(url: str, token: str) -> None:
    """Pass everything on to the server at `url`, with its token."""
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    client = Client(streamable_http_client(f"{url}/mcp", http_client=http))
    async with http:
        try:
            there = await client.__aenter__()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is said
            raise ServerRefused(f"The server at {url} cannot be used for MCP: {_first(error)}.") from None
        try:
            await _serve(_bridge(there))
        finally:
            await client.__aexit__(None, None, None)


def _first(error: BaseException) -> str:
    """What is behind errors of tasks that ran together."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _bridge(there: Client) -> Server[Any]:
    async def list_tools(_ctx: ServerRequestContext[Any], _params: Any) -> Any:
        return await there.list_tools()

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> Any:
        progress = ctx.session.report_progress
        try:
            return await there.call_tool(params.name, params.arguments, progress_callback=progress)
        except Exception as error:  # noqa: BLE001 - whatever is in the way, a model is told it as every refusal
            said = f"The server does not answer ({_first(error)}): try again, unless the run that you are has ended."
            return CallToolResult(content=[TextContent(text=said)], is_error=True)

    async def list_resources(_ctx: ServerRequestContext[Any], _params: Any) -> Any:
        return await there.list_resources()

    async def list_templates(_ctx: ServerRequestContext[Any], _params: Any) -> Any:
        return await there.list_resource_templates()

    async def read_resource(_ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> Any:
        return await there.read_resource(str(params.uri))

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
