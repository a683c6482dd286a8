"""`/nodes` and `/events`: who does the work, and what happens this second."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from wakeful.kernel.views.events import STREAMS
from wakeful.surfaces.web.drawings.bars import meter
from wakeful.surfaces.web.marks import StatusMark
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage

LANES_SHOWN = 50
LOOKS = {
    "alive": StatusMark("ok", "ok", "alive"),
    "draining": StatusMark("paused", "wait", "draining"),
    "drained": StatusMark("paused", "", "drained"),
    "dead": StatusMark("crashed", "crash", "dead"),
    "stopped": StatusMark("idle", "", "stopped"),
}


async def nodes(asked: PageRequest) -> dict[str, Any]:
    found = await asked.scheduler.list_nodes()
    shown = [(node, LOOKS.get(node.state, StatusMark("unknown", "", node.state))) for node in reversed(found)]
    parked, lanes = await asked.scheduler.read(
        lambda tx: (tx.jobs.parked_counts(asked.scheduler.host.hidden_kinds), tx.lanes.busiest(LANES_SHOWN))
    )
    drawn = [
        LaneUsage(key, used, size, parked.pop(key, 0), meter(used, size or max(1, used))) for key, used, size in lanes
    ]
    return {
        "nodes": shown,
        "lanes": drawn,
        "several": sum(node.state == "alive" for node, _ in shown) > 1,
        "parked": parked,
    }


class LaneUsage(NamedTuple):
    """How full a lane is, and how many jobs wait for it."""

    name: str
    used: int
    size: int | None
    waiting: int
    drawing: Markup


page = WebPage(
    "nodes", "/nodes", lambda _: "Nodes", (Region("nodes", ("node", "run"), nodes),), lambda _: "wakeful node list"
)


async def tail(asked: PageRequest) -> dict[str, Any]:
    return {"streams": list(STREAMS), "chosen": asked.query.get("stream", "")}


events_page = WebPage("events", "/events", lambda _: "Events", (), lambda _: "wakeful logs -f", facts=tail)
