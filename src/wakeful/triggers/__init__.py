"""Triggers: values that say when. Pure: no clock, no store, no randomness of their own.

`Every` is a grid, `Interval` a pause after each run, `Cron` a calendar, `Once` a single time. `After`, `Webhook`,
`Chat` and `Manual` have no time of their own. `Ping` says when a ping from outside is expected.
"""

from __future__ import annotations

from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.base import TimedTrigger, Trigger
from wakeful.triggers.cron import Cron
from wakeful.triggers.durations import format_interval, interval_ms, parse_interval
from wakeful.triggers.every import Every
from wakeful.triggers.external import After, Chat, Manual, Webhook
from wakeful.triggers.fields import trigger_from_data
from wakeful.triggers.interval import Interval
from wakeful.triggers.moments import from_ms, iso, read_moment, to_ms
from wakeful.triggers.once import Once
from wakeful.triggers.ping import Ping
from wakeful.triggers.zones import settled_zone, system_zone, zone_name

__all__ = [
    "ActiveHours",
    "After",
    "Chat",
    "Cron",
    "Every",
    "Interval",
    "Manual",
    "Once",
    "Ping",
    "TimedTrigger",
    "Trigger",
    "Webhook",
    "format_interval",
    "from_ms",
    "interval_ms",
    "iso",
    "parse_interval",
    "read_moment",
    "settled_zone",
    "system_zone",
    "to_ms",
    "trigger_from_data",
    "zone_name",
]
