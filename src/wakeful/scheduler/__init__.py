"""The scheduler as a library: open a store, add jobs, say who handles what, start.

The public object, put together from its parts. They only wire: rules live in the kernel, SQL in the store.
"""

from __future__ import annotations

from functools import cached_property

from wakeful.scheduler.access import AccessApi
from wakeful.scheduler.delivery import DeliveryApi
from wakeful.scheduler.domains import Domains
from wakeful.scheduler.life import Life
from wakeful.scheduler.nodes import NodesApi
from wakeful.scheduler.overview import Overview, SchedulerState, Summary
from wakeful.scheduler.runs import RunsApi
from wakeful.scheduler.server_side import ServerSide

__all__ = ["Scheduler", "SchedulerState", "Summary"]


class Scheduler(Life, RunsApi, Overview, NodesApi, AccessApi, DeliveryApi, Domains):
    """Wakes jobs at the right time, once, and remembers.

    `async with scheduler:` opens the store; nothing fires until `start()`. All methods belong to the event loop the
    scheduler was opened on.
    """

    @cached_property
    def server_side(self) -> ServerSide:
        """What a server needs beyond all this: requests within a caller's rights, callbacks, token checks."""
        return ServerSide(self._wiring())
