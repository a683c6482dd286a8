"""A monitor that is pinged, and what is known of it."""

from __future__ import annotations

from wakeful import Every, Ping
from wakeful.domains.monitors import ping_key

DAILY = Ping(Every("24h"), grace="1h")


async def watch(scheduler, trigger=DAILY, name="offsite", **options):
    """Add a monitor; its key."""
    await scheduler.add_job(name, trigger, **options)
    return await ping_key(scheduler, name)


async def monitor(scheduler, name="offsite"):
    return (await scheduler.get_job(name)).monitor


async def state(scheduler, name="offsite"):
    return (await monitor(scheduler, name))["state"]


async def alerts(scheduler, *, open_only=True):
    return [(alert.kind, alert.message) for alert in await scheduler.list_alerts(open_only=open_only)]


async def runs(scheduler, name="offsite"):
    """Oldest first."""
    return (await scheduler.get_run_log(name))[::-1]
