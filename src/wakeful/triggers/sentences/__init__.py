"""Schedules in words: "weekdays at 9am", "every 2 hours between 08:00 and 20:00", "tomorrow at 9 in Europe/Berlin".

`phrases` is the grammar, `making` says what it means, `reading` reads a sentence, `near` finds the nearest one.
"""

from __future__ import annotations

from datetime import datetime

from wakeful.triggers.base import Trigger
from wakeful.triggers.moments import to_ms
from wakeful.triggers.sentences.reading import is_on_the_wall, read_sentence, read_time
from wakeful.triggers.worded import Worded

__all__ = ["is_on_the_wall", "read_sentence", "read_time", "when"]


def when(text: str, *, now: datetime | None = None, tz: str | None = None) -> Trigger:
    """The trigger of a schedule in words: `when("weekdays at 9am")`, `when("in 20 minutes", now=…)`.

    `tz` is the zone of a sentence that names none, and `now` what "tomorrow" and "in 20 minutes" count from. Without
    them, the schedule is settled when its job is stored: then, and in the scheduler's default zone. InvalidTrigger
    gives the nearest sentence that is understood.
    """
    return Worded(text, tz).plain(None if now is None else to_ms(now))
