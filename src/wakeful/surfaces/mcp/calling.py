"""One call of a tool: its arguments checked, the work done, and every refusal as a sentence that a model can act on."""

from __future__ import annotations

import json
import logging
import secrets
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.errors import SchedulerError
from wakeful.routing.problems import public_text
from wakeful.surfaces.mcp.arguments import checked
from wakeful.surfaces.mcp.tools import TOOLS

if TYPE_CHECKING:
    from wakeful.surfaces.mcp.tool_context import ToolContext

log = logging.getLogger("wakeful.mcp")


class Called(NamedTuple):
    """What a call came to: data, or a refusal."""

    text: str
    data: dict[str, Any] | None = None

    @property
    def is_refused(self) -> bool:
        return self.data is None


async def call(ctx: ToolContext, name: str, arguments: Any) -> Called:
    """Call a tool; nothing is raised, so that no refusal looks like a fault of the connection."""
    tool = TOOLS.get(name)
    if tool is None:
        near = get_close_matches(name, TOOLS, n=1)
        return Called(f"There is no tool {name!r:.60}: {f'did you mean {near[0]}?' if near else 'list the tools.'}")
    try:
        given = checked({} if arguments is None else arguments, tool.fields, tool.required)
        data = await tool.call(ctx, given)
    except SchedulerError as error:
        return Called(sentence(public_text(error)))
    except Exception as error:  # its whole story is in the log
        number = secrets.token_hex(6)
        log.exception("fault %s: %s", number, type(error).__name__)
        return Called(f"This is a fault in Wakeful; its log has it as {number}.")
    return Called(json.dumps(data, ensure_ascii=False), data)


def sentence(text: str) -> str:
    """The text as one line that ends like a sentence."""
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!")) else f"{line}."
