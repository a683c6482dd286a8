"""How a monitor is written in a configuration file: `ping: true`, a schedule, and `grace`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.kernel.kinds import WrittenForm
from wakeful.triggers import Ping, Trigger, interval_ms


def _flag(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
    if value is not True:
        raise InvalidJob(f"ping is written ping: true, not {value!r:.40}.")
    return {}


def _grace(value: Any, folder: Path) -> Mapping[str, Any]:  # noqa: ARG001 - every key is read this way
    interval_ms(value)
    return {}


def _trigger(schedule: Trigger, keys: Mapping[str, Any]) -> Trigger:
    try:
        return Ping(schedule, keys.get("grace", "1h"))
    except IntervalParseError:
        return Ping(schedule)  # what is wrong with the grace is reported there, and nothing is wrong with the schedule


FORM = WrittenForm(
    key="ping",
    fields={"ping": _flag, "grace": _grace},
    schema={"ping": {"const": True}, "grace": {"type": ["string", "number"], "examples": ["1h"]}},
    trigger=_trigger,
)
