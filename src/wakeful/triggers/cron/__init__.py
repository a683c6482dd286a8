"""Cron expressions: `fields` reads them, `days`, `months` and `timetable` find their times, `words` describes them."""

from __future__ import annotations

from wakeful.triggers.cron.trigger import Cron

__all__ = ["Cron"]
