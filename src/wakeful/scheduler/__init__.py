"""The scheduler as a library: open a store, add jobs, say who handles what, start.

The public object, put together from its parts. They only wire: rules live in the kernel, SQL in the store.
"""

from __future__ import annotations

from wakeful.scheduler.access import AccessApi
from wakeful.scheduler.domains import Domains
from wakeful.scheduler.life import Life
from wakeful.scheduler.nodes import NodesApi
from wakeful.scheduler.overview import Overview, SchedulerState, Summary
from wakeful.scheduler.requests import Requests
from wakeful.scheduler.runs import RunsApi

__all__ = ["Scheduler", "SchedulerState", "Summary"]


class Scheduler(Life, RunsApi, Overview, NodesApi, AccessApi, Domains, Requests):
    """Wakes jobs at the right time, once, and remembers.

    `async with scheduler:` opens the store; nothing fires until `start()`. All methods belong to the event loop the
    scheduler was opened on.
    """
