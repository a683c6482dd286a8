"""The MCP server, made with the official SDK: tools and resources for the callers that `find` recognises."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from wakeful.errors import SchedulerError
from wakeful.routing.problems import public_text
from wakeful.surfaces.mcp import resources
from wakeful.surfaces.mcp.calling import call, sentence
from wakeful.surfaces.mcp.tools import TOOLS
from wakeful.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from wakeful.surfaces.mcp.tool_context import ToolContext

NAME = "wakeful"
INSTRUCTIONS = (
    "Wakeful is a durable scheduler. Schedules that you make here run whether or not this connection is open. Say when "
    "in words (`when`), such as weekdays at 9am. A refusal says what would be accepted. A schedule with the status "
    "waits_for_approval starts nothing before a person has approved it."
)
Find = Callable[[Any], Awaitable["ToolContext"]]
"""From the request that a call came with, None on stdio, to the ctx of its caller."""


def listed_tools() -> list[Tool]:
    """All tools, as clients are told of them."""
    return [
        Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.input_schema,
            output_schema=dict(tool.output),
            annotations=ToolAnnotations(
                read_only_hint=tool.reads,
                destructive_hint=tool.destroys,
                idempotent_hint=tool.repeatable,
                open_world_hint=False,
            ),
        )
        for tool in TOOLS.values()
    ]


def make_server(find: Find) -> Server[Any]:
    """A server for the callers that `find` recognises."""
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it writes several lines for each request

    async def list_tools(_ctx: ServerRequestContext[Any], _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed_tools())

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        try:
            found = (await find(ctx.request))._replace(progress=ctx.session.report_progress)
        except SchedulerError as error:
            return CallToolResult(content=[TextContent(text=sentence(public_text(error)))], is_error=True)
        done = await call(found, params.name, params.arguments)
        return CallToolResult(
            content=[TextContent(text=done.text)], structured_content=done.data, is_error=done.is_refused
        )

    async def list_resources(ctx: ServerRequestContext[Any], _params: Any) -> ListResourcesResult:
        found = await resources.listed(await find(ctx.request))
        return ListResourcesResult(
            resources=[
                Resource(uri=uri, name=name, description=about, mime_type="application/json")
                for uri, name, about in found
            ]
        )

    async def list_templates(_ctx: ServerRequestContext[Any], _params: Any) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(uri_template=uri, name=name, description=about, mime_type="application/json")
                for uri, name, about in resources.TEMPLATES
            ]
        )

    async def read_resource(ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            said = await resources.read(await find(ctx.request), uri)
        except SchedulerError as error:
            raise MCPError(INVALID_PARAMS, sentence(public_text(error))) from None
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="application/json", text=said)])

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
    )
