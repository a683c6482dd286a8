"""`/deliveries` and `/deliveries/ID`: did it reach them?"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from wakeful.domains.delivery.tables import DeliveryFilter
from wakeful.domains.delivery.views import delivery_number, get_delivery, list_connectors, list_deliveries
from wakeful.surfaces.web.marks import StatusMark
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage, command

SHOWN = 50
LOOKS = {
    "pending": StatusMark("queued", "", "waits"),
    "sending": StatusMark("active", "run", "sending"),
    "held": StatusMark("deferred", "", "held"),
    "sent": StatusMark("ok", "ok", "sent"),
    "failed": StatusMark("error", "bad", "failed"),
    "expired": StatusMark("skipped", "", "expired"),
    "cancelled": StatusMark("cancelled", "", "cancelled"),
    "unknown": StatusMark("unknown", "wait", "unknown"),
}


def look_of(delivery: dict[str, Any]) -> StatusMark:
    return LOOKS.get(delivery["status"], StatusMark("unknown", "", delivery["status"]))


async def listed(asked: PageRequest) -> dict[str, Any]:
    query = asked.query
    before = delivery_number(query["cursor"]) if query.get("cursor") else None
    wanted = DeliveryFilter(query.get("status") or None, query.get("connector") or None, before=before, limit=SHOWN + 1)
    found = await asked.scheduler.read(lambda tx: list_deliveries(tx, wanted))
    kept = {key: value for key, value in query.items() if key != "cursor" and value}
    more = f"/deliveries?{urlencode({**kept, 'cursor': found[SHOWN - 1]['id']})}" if len(found) > SHOWN else None
    connectors = await asked.scheduler.read(list_connectors)
    return {
        "deliveries": [(one, look_of(one)) for one in found[:SHOWN]],
        "more": more,
        "connectors": connectors,
        "looks": LOOKS,
        "failed": sum(one["failed"] for one in connectors),
        "pending": sum(one["pending"] for one in connectors),
    }


page = WebPage(
    "deliveries", "/deliveries", lambda _: "Deliveries", (Region("deliveries", ("delivery",), listed),),
    lambda asked: command("delivery list", asked.query, {"status": "--status", "connector": "--connector"}),
)  # fmt: skip


async def one(asked: PageRequest) -> dict[str, Any]:
    number = delivery_number(asked.path["id"])
    found = await asked.scheduler.read(lambda tx: get_delivery(tx, number))
    return {"delivery": found, "look": look_of(found)}


delivery_page = WebPage(
    "delivery", "/deliveries/{id}", lambda asked: asked.path["id"], (Region("delivery", ("delivery",), one),),
    lambda asked: f"wakeful show {asked.path['id']}", tab="deliveries",
)  # fmt: skip
