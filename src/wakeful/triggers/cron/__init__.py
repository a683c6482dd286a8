"""Cron expressions: `fields` reads them, `days` and `timetable` find their times, `words` speaks them, `Cron` is the trigger."""

from __future__ import annotations

from wakeful.triggers.cron.trigger import Cron

__all__ = ["Cron"]
