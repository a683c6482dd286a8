"""All tools, in the order in which they are listed."""

from __future__ import annotations

from wakeful.surfaces.mcp.tool import Tool
from wakeful.surfaces.mcp.tools import changing, events, looking, making, runs

TOOLS: dict[str, Tool] = {
    tool.name: tool for module in (making, looking, changing, runs, events) for tool in module.TOOLS
}
