"""All tools, in the order in which they are listed."""

from __future__ import annotations

from wakeful.surfaces.mcp.tool import McpTool
from wakeful.surfaces.mcp.tools import changing, events, looking, making, runs

TOOLS: dict[str, McpTool] = {
    tool.name: tool for module in (making, looking, changing, runs, events) for tool in module.TOOLS
}
