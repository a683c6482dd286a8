"""What a tool is: a name, its arguments and answer, what it changes, and the function that does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from wakeful.surfaces.mcp.arguments import Schema
from wakeful.surfaces.mcp.tool_context import Answer, Given, ToolContext


class McpTool(NamedTuple):
    """One tool. The hints are true: whether it only reads, destroys something, and may be repeated without effect."""

    name: str
    description: str
    call: Callable[[ToolContext, Given], Awaitable[Answer]]
    fields: Mapping[str, Schema]
    output: Mapping[str, Any]
    required: tuple[str, ...] = ()
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.fields),
            "required": list(self.required),
            "additionalProperties": False,
        }
