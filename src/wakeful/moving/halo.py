"""Halo's job kernel: the table `scheduler_jobs` of its SQLite file. What its jobs do is known to its program alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.moving.found import PROGRAM, ImportEntry, Reading, refused
from wakeful.moving.naming import Names
from wakeful.moving.sqlite import rows_of
from wakeful.triggers import iso

TABLE = "scheduler_jobs"
COLUMNS = ("id", "name", "schedule_json", "enabled", "anchor_ms", "consecutive_errors", "status", "metadata_json")


def read(path: Path) -> Reading:
    """The jobs of a `halo.db`."""
    rows = rows_of(path, TABLE, (*COLUMNS, "kind"), optional=("kind",))
    return Reading(list(read_rows(path.name, rows)))


def read_rows(source: str, rows: list[Mapping[str, Any]]) -> Iterator[ImportEntry]:
    """Each job with its schedule; a program registers what handles it."""
    names = Names()
    for row in rows:
        place, name = f"{source}:{row['id']!s:.60}", names.free(" ".join(str(row["name"]).split())[:150] or "job")
        try:
            schedule, payload = json.loads(str(row["schedule_json"])), json.loads(str(row["metadata_json"] or "null"))
        except (ValueError, RecursionError):
            yield refused(place, name, "its schedule or its metadata is not JSON")
            continue
        when = _timing(schedule, row)
        if when is None:
            yield refused(place, name, "its schedule is not known")
            continue
        kind = str(row.get("kind") or "app")
        job = {**when, "kind": kind, "payload": payload}
        if not row["enabled"] or row["status"] in ("paused", "disabled"):
            job["enabled"] = False
        note = f"it runs where a program handles it: @scheduler.on_job_due({kind!r})"
        yield ImportEntry(place, name, job, (note,), part=PROGRAM)


def _timing(schedule: Any, row: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = schedule.get("kind") if isinstance(schedule, dict) else None
    if kind == "every" and isinstance(schedule.get("every"), str):
        anchor = row["anchor_ms"]
        return {"every": schedule["every"].strip(), **({"anchor": iso(anchor)} if _is_ms(anchor) else {})}
    if kind == "once" and _is_ms(schedule.get("once")):
        return {"at": iso(schedule["once"])}
    if kind == "cron" and isinstance(schedule.get("cron"), str):
        zone = schedule.get("timezone")
        return {"cron": schedule["cron"], **({"timezone": zone} if isinstance(zone, str) and zone else {})}
    return None


def _is_ms(value: Any) -> bool:
    return type(value) is int and 0 <= value < 253_402_300_800_000
