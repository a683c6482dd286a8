"""`/more`: the pages that have no place in the bar, who did what, the theme, and signing out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful import ids
from wakeful.kernel.views.actions import Action
from wakeful.store.interface import Transaction
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage

SHOWN = 20


async def actions(asked: PageRequest) -> dict[str, Any]:
    """What people and programs did last, and what of it can be undone."""
    found = await asked.scheduler.server_side.list_actions(None, SHOWN)
    return {"actions": found, "about": await asked.scheduler.read(lambda tx: about(tx, found))}


def about(tx: Transaction, found: Sequence[Action]) -> dict[str, str]:
    """What the alerts say that were acknowledged: their ids say nothing."""
    numbers = {one.name: number for one in found if (number := ids.alert_number(one.name)) is not None}
    rows = {name: tx.alerts.get(number) for name, number in numbers.items()}
    return {name: row.message for name, row in rows.items() if row is not None}


page = WebPage(
    "more",
    "/more",
    lambda _: "More",
    (Region("actions", ("job", "alert", "run", "node", "workflow"), actions),),
    lambda _: "wakeful undo --list",
)
