"""Running one job of an agent without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.console.running_here import adopt_env_file

if TYPE_CHECKING:
    from pathlib import Path

    from wakeful.kernel.model.job import Job
    from wakeful.scheduler import Scheduler


def prepare_here(scheduler: Scheduler, job: Job, file: Path | None) -> str | None:
    """Handle agents here; what only wakes an agent leaves the rest to a server, and that is said."""
    adopt_env_file(file)
    _ = scheduler.agents  # which handles them
    if job.payload.get("does") not in ("beat", "event"):
        return None
    agent = job.payload["agent"]
    return f"{agent} is woken when a server runs (wakeful serve), or now with wakeful run {agent}.wake."
