"""The jobs, agents, connectors and the workflow of the demo, the same in the week before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.clock import Clock, sleep
from wakeful.demo.phone import PHONE, Phone
from wakeful.demo.scripts import chance_of
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.outcome import ApprovalNeeded, Failed, Noop, Output
from wakeful.scheduler import Scheduler
from wakeful.triggers import After, Cron, Every

if TYPE_CHECKING:
    from datetime import datetime

    from wakeful.demo.place import DemoFolder
    from wakeful.kernel.model.run import Run

SCRIPT = "script"
INBOX, DEPLOY, SORT = "inbox", "deploy-site", "triage.sort"
#: What triage may spend in a day: it sorts until the evening.
BUDGET = 1.80


def make_scheduler(place: DemoFolder, clock: Clock, tuning: Tuning | None = None) -> Scheduler:
    """The scheduler of the demo, without its workflow; nothing of it is stored yet."""
    scheduler = Scheduler(place.url, clock=clock, node="demo", job_defaults={"timeout": "6h"}, tuning=tuning)
    scheduler.on_job_due(SCRIPT, run_script)
    scheduler.connectors.register(PHONE, Phone(place).send)
    _ = scheduler.agents  # from here on it runs them
    return scheduler


def jobs() -> list[NewJob]:
    """Several kinds of rhythm, a chain, a lane, one that fails at times and one that asks."""
    lane: dict[str, Any] = {"lanes": {"studio": 1}}
    return [
        _script(INBOX, Every("15m"), does="look", seconds=4),
        _script("invoices", Cron("*/20 8-18 * * *"), seconds=2),
        _script("price-feed", Every("30m"), does="flaky", seconds=3, retry=["20s", "1m"], max_errors=0),
        _script("link-check", Cron("7 * * * *"), seconds=5),
        _script("backup", Cron("0 3 * * *"), seconds=10),
        _script("check-backup", After("backup"), seconds=5),
        _script("thumbnails", Cron("15 */2 * * *"), seconds=4, **lane),
        _script("previews", Cron("15 */2 * * *"), seconds=3, **lane),
        _script(DEPLOY, Cron("0 17 * * 1-5"), does="ask", seconds=4),
        _script("spring-cleaning", Cron("0 3 1 4 *"), seconds=1),
    ]


def _script(name: str, trigger: Any, *, seconds: float, does: str = "work", **options: Any) -> NewJob:
    return NewJob(name, trigger, kind=SCRIPT, payload={"does": does, "seconds": seconds}, **options)


def agents(sort_from: datetime | None = None) -> dict[str, Any]:
    """The agents as wakeful.yaml would have them; `sort_from`: when triage sorts next, on the dot."""
    sort: dict[str, Any] = {"every": "20m", "prompt": "Sort what is new."}
    if sort_from is not None:
        sort["anchor"] = sort_from.isoformat()
    return {
        "watcher": {
            "description": "Looks around every hour",
            "runner": {"python": "wakeful.demo.scripts:watcher"},
            "heartbeat": {"enabled": True, "every": "1h", "prompt": "Look around. Reply HEARTBEAT_OK if all is well."},
            "deliver": PHONE,
        },
        "reporter": {
            "description": "Writes a digest",
            "runner": {"python": "wakeful.demo.scripts:reporter"},
            "schedules": {"digest": {"cron": "0 9,18 * * *", "prompt": "Write the digest."}},
            "deliver": PHONE,
        },
        "triage": {
            "description": "Sorts letters, within its budget",
            "runner": {"python": "wakeful.demo.scripts:triage"},
            "schedules": {"sort": sort},
            "budget": {"cost_per_day": BUDGET},
            "deliver": "none",
        },
    }


async def run_script(run: Run) -> Any:
    """The handler of all jobs that are not agents."""
    chance, does = chance_of(run.job, run.due_at, run.attempt), run.payload["does"]
    if does == "ask" and run.approved_by is None:
        raise ApprovalNeeded("Deploy 14 files to shop.example?")
    await sleep(run.payload["seconds"])
    if does == "flaky" and chance.random() < 0.15:
        raise Failed("the feed did not answer within 3 s", Output(None))
    if does == "look":
        found = 1 if run.reason == "recovery" else chance.choice([0, 0, 1, 3])
        return {"letters": found} if found else Noop("nothing new")
    return {"pages": chance.randint(1, 40)}
