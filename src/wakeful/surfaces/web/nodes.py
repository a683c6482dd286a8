"""`/nodes` and `/events`: who does the work, and what happens this second."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from wakeful.kernel.views.events import STREAMS
from wakeful.surfaces.web.drawings.bars import meter
from wakeful.surfaces.web.marks import Look
from wakeful.surfaces.web.pages import Asked, Page, Region

LANES_SHOWN = 50
LOOKS = {
    "alive": Look("ok", "ok", "alive"),
    "draining": Look("paused", "wait", "draining"),
    "drained": Look("paused", "", "drained"),
    "dead": Look("crashed", "crash", "dead"),
    "stopped": Look("idle", "", "stopped"),
}


async def nodes(asked: Asked) -> dict[str, Any]:
    found = await asked.scheduler.list_nodes()
    shown = [(node, LOOKS.get(node.state, Look("unknown", "", node.state))) for node in reversed(found)]
    parked, lanes = await asked.scheduler.read(
        lambda tx: (tx.jobs.parked_counts(asked.scheduler.host.hidden_kinds), tx.lanes.busiest(LANES_SHOWN))
    )
    drawn = [Lane(key, used, size, parked.pop(key, 0), meter(used, size or max(1, used))) for key, used, size in lanes]
    return {
        "nodes": shown,
        "lanes": drawn,
        "several": sum(node.state == "alive" for node, _ in shown) > 1,
        "parked": parked,
    }


class Lane(NamedTuple):
    """How full a lane is, and how many jobs wait for it."""

    name: str
    used: int
    size: int | None
    waiting: int
    drawing: Markup


page = Page(
    "nodes", "/nodes", lambda _: "Nodes", (Region("nodes", ("node", "run"), nodes),), lambda _: "wakeful node list"
)


async def tail(asked: Asked) -> dict[str, Any]:
    return {"streams": list(STREAMS), "chosen": asked.query.get("stream", "")}


events_page = Page("events", "/events", lambda _: "Events", (), lambda _: "wakeful logs -f", facts=tail)
