"""A job that asks a person."""

from __future__ import annotations

from tests.kernel.scene import at
from wakeful import ApprovalNeeded, Every


async def deploy(run):
    """A handler that asks the first time, and says who let it."""
    if run.approved_by is None:
        raise ApprovalNeeded("Deploy to production?")
    return {"by": run.approved_by, "note": run.approval_note, "payload": run.payload}


async def asking(scene, scheduler, trigger=None, **options):
    """A started scheduler whose job `a` has just asked; the run that waits."""
    scene.act = scene.act or deploy
    await scheduler.add_job("a", trigger or Every("1h"), **options)
    await scheduler.start()
    await scene.until(at(1, 0, 5))
    (run,) = await scheduler.get_run_log("a")
    assert (run.status, run.phase, run.outcome) == ("waiting", "approval", None)
    return run
