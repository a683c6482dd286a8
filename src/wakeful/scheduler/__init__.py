"""The scheduler as a library: open a store, add jobs, say who handles what, start.

The public object, put together from its parts. They only wire: rules live in the kernel, SQL in the store.
"""

from __future__ import annotations

from wakeful.scheduler.access import AccessApi
from wakeful.scheduler.agents import AgentsApi
from wakeful.scheduler.delivery import DeliveryApi
from wakeful.scheduler.lifecycle import Lifecycle
from wakeful.scheduler.nodes import NodesApi
from wakeful.scheduler.overview import Overview, SchedulerState, Summary
from wakeful.scheduler.record import RecordApi
from wakeful.scheduler.runs import RunsApi
from wakeful.scheduler.workflows import WorkflowsApi

__all__ = ["Scheduler", "SchedulerState", "Summary"]


class Scheduler(Lifecycle, RunsApi, Overview, NodesApi, AccessApi, DeliveryApi, AgentsApi, WorkflowsApi, RecordApi):
    """Runs jobs when they are due, and stores what happened.

    `async with scheduler:` opens the store; nothing fires until `start()`. All methods belong to the event loop the
    scheduler was opened on.

    - `url`: the store, `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://user@host/database`.
    - `timezone`: the zone of triggers that name none; the system's by default.
    - `job_defaults`: options of jobs that have none of their own, see `JobOptions`.
    - `max_running`: how many runs may be active at once.
    - `min_interval`: the shortest interval that jobs from the network may have; None for no limit.
    - `node`, `labels`: the name of this node, and what jobs may require of it.
    - `retention`: how long history is kept.
    - `clock`, `seed`: time and random numbers, for tests; see `wakeful.testing`.
    - `kinds`, `tuning`: kinds of job with rules of their own, and the engine's times.

    >>> scheduler = Scheduler("sqlite:///app.db", timezone="Europe/Berlin", job_defaults={"timeout": "30m"})
    """
