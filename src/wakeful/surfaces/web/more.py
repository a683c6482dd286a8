"""`/more`: the pages that have no place in the bar, who did what, the theme, and signing out."""

from __future__ import annotations

from typing import Any

from wakeful.surfaces.web.pages import Asked, Page, Region

SHOWN = 20


async def actions(asked: Asked) -> dict[str, Any]:
    """What people and programs did last, and what of it can be undone."""
    return {"actions": await asked.scheduler.server_side.list_actions(None, SHOWN)}


page = Page(
    "more",
    "/more",
    lambda _: "More",
    (Region("actions", ("job", "alert", "run", "node", "workflow"), actions),),
    lambda _: "wakeful undo --list",
)
