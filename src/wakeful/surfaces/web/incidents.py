"""`/alerts` and `/monitors`: what went wrong, who has seen it, and what outside has not reported."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from wakeful import ids
from wakeful.kernel.model.job import job_views
from wakeful.kernel.views.records import Alert, alert_views
from wakeful.store.interface import Transaction
from wakeful.store.listing import JobFilter
from wakeful.surfaces.web.marks import StatusMark
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage
from wakeful.surfaces.web.rendering import part

SHOWN = 50
ASKS = "approval"  # the kind of an alert about a run that waits for a person
OF_WORKFLOWS, BUDGET, OF_AGENT = ("workflow", "parked"), "budget", "agent:"
#: Where one reads more about incidents that are not those of one job.
PLACES = {
    "delivery_failed": "/deliveries?status=failed",
    "no_connector": "/deliveries?status=pending",
    **dict.fromkeys(("dead_node", "no_handler", "no_node", "stalled", "not_listening"), "/nodes"),
}
MONITORS = {
    "new": StatusMark("idle", "", "new"),
    "up": StatusMark("ok", "ok", "up"),
    "late": StatusMark("missing", "wait", "late"),
    "down": StatusMark("missing", "bad", "down"),
    "paused": StatusMark("paused", "", "paused"),
}


async def alerts(asked: PageRequest) -> dict[str, Any]:
    everything, before = asked.query.get("all") == "1", ids.alert_number(asked.query.get("cursor", ""))

    def work(tx: Transaction) -> list[Alert]:
        return alert_views(tx, tx.alerts.latest(SHOWN + 1, before=before, open_only=not everything))

    found = await asked.scheduler.read(work)
    older = {**({"all": "1"} if everything else {}), "cursor": found[SHOWN - 1].id} if len(found) > SHOWN else None
    return {
        "alerts": [(alert, question_of(alert), place_of(alert)) for alert in found[:SHOWN]],
        "all": everything,
        "open": sum(alert.closed_at is None for alert in found),
        "most": SHOWN,
        "more": f"/alerts?{urlencode(older)}" if older is not None else None,
    }


def place_of(alert: Alert) -> str | None:
    """The page that says why: of the run that asks, the workflow, the agent, the messages, the nodes, or the job."""
    asks, about = question_of(alert), alert.key.partition(":")[2]
    if asks is not None:
        return f"/runs/{asks}"
    if alert.kind in OF_WORKFLOWS:
        return f"/workflows/{part(about)}"
    if alert.kind == BUDGET and about.startswith(OF_AGENT):
        return f"/agents/{part(about.removeprefix(OF_AGENT))}"
    if alert.kind in PLACES:
        return PLACES[alert.kind]
    return f"/jobs/{part(alert.job)}" if alert.job is not None else None


def subject_of(alert: Alert) -> str:
    """What it is about, by name: the job, or else the agent, workflow, connector or node."""
    return alert.job if alert.job is not None else alert.key.partition(":")[2].removeprefix(OF_AGENT)


def question_of(alert: Alert) -> str | None:
    """The run that waits for the answer of a person; None for an incident of another kind, or one that is over."""
    number = alert.key.partition(":")[2]
    asks = alert.kind == ASKS and alert.closed_at is None and number.isdigit()
    return ids.run_text(int(number)) if asks else None


alerts_page = WebPage(
    "alerts", "/alerts", lambda _: "Alerts", (Region("alerts", ("alert",), alerts),),
    lambda asked: "wakeful alert list --all" if asked.query.get("all") == "1" else "wakeful alert list",
)  # fmt: skip


async def monitors(asked: PageRequest) -> dict[str, Any]:
    wanted = JobFilter(kind="monitor", after=asked.query.get("cursor") or None, limit=SHOWN + 1)
    jobs = await asked.scheduler.read(lambda tx: job_views(tx, tx.jobs.matching(wanted)))
    shown = [(job, job.monitor, MONITORS[job.monitor["state"]]) for job in jobs[:SHOWN] if job.monitor is not None]
    more = f"/monitors?{urlencode({'cursor': jobs[SHOWN - 1].name})}" if len(jobs) > SHOWN else None
    return {"monitors": shown, "more": more}


monitors_page = WebPage(
    "monitors", "/monitors", lambda _: "Monitors", (Region("monitors", ("run", "job", "alert"), monitors),),
    lambda _: "wakeful list --kind monitor",
)  # fmt: skip
