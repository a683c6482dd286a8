"""The formats that can be imported, and how one is recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wakeful.kernel.domain import load
from wakeful.moving import celerybeat, crontab
from wakeful.moving.found import Reading
from wakeful.moving.sources import STDIN, Unreadable, files_below, read_json, read_text
from wakeful.moving.sqlite import is_sqlite, tables_of

WAKEFUL, AUTO = "wakeful", "auto"
READERS: Mapping[str, str] = {
    "crontab": "wakeful.moving.crontab:read",
    "systemd": "wakeful.moving.systemd:read",
    "caco": "wakeful.moving.caco:read",
    "openalice": "wakeful.moving.openalice:read",
    "herdctl": "wakeful.moving.herdctl:read",
    "halo": "wakeful.moving.halo:read",
    "openclaw": "wakeful.moving.openclaw:read",
    "apscheduler3": "wakeful.moving.apscheduler3:read",
    "celerybeat": "wakeful.moving.celerybeat:read",
}
FORMATS = (*READERS, WAKEFUL, AUTO)
STATE = "state.json"


def read_source(name: str, path: Path) -> Reading:
    """What is found at a path, in a format of another program."""
    if str(path) == STDIN and name != "crontab":
        raise Unreadable("Standard input can be a crontab: name the file for other formats.")
    if str(path) != STDIN and not path.exists():
        raise Unreadable(f"{path} does not exist.")
    reader: Callable[[Path], Reading] = load(READERS[name])
    return reader(path)


def guess(path: Path) -> str:
    """The format that a path looks like; Unreadable where that is none."""
    if str(path) == STDIN:
        return "crontab"
    if not path.exists():
        raise Unreadable(f"{path} does not exist.")
    found = _folder(path) if path.is_dir() else _file(path)
    if found is None:
        known = ", ".join((*READERS, WAKEFUL))
        raise Unreadable(f"{path} looks like nothing that can be imported: name its format ({known}).")
    return found


def _folder(path: Path) -> str | None:
    if (path / STATE).is_file() and (path / "wakeful.yaml").is_file():
        return WAKEFUL
    if (path / "herdctl.yaml").is_file() or (path / "herdctl.yml").is_file():
        return "herdctl"
    if any((path / place / "scheduler.json").is_file() for place in ("config", "data/config", ".")):
        return "openalice"
    jobs = next(
        (path / name for name in ("cron/jobs.json", "jobs.json", "data/cron/jobs.json") if (path / name).is_file()),
        None,
    )
    if jobs is not None:
        return _jobs_file(read_json(jobs, linked=False))
    if files_below(path, (".timer",)):
        return "systemd"
    if path.name == "cron.d":
        return "crontab"
    if (path / "definition.json").is_file() or files_below(path, ("definition.json",), 2):
        return "caco"
    return "herdctl" if files_below(path, (".yaml", ".yml"), 2) else None


def _jobs_file(data: Any) -> str | None:
    """Open Alice writes the text itself as payload, and OpenClaw a map."""
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list):
        return None
    payloads = [job.get("payload") for job in jobs if isinstance(job, dict)]
    return "openalice" if payloads and all(isinstance(payload, str) for payload in payloads) else "openclaw"


def _file(path: Path) -> str | None:
    by_name = {".timer": "systemd", ".yaml": "herdctl", ".yml": "herdctl"}
    if path.name == "definition.json":
        return "caco"
    if path.suffix in by_name:
        return by_name[path.suffix]
    if path.suffix == ".json":
        return _jobs_file(read_json(path))
    if is_sqlite(path):
        tables = tables_of(path)
        known = {"scheduler_jobs": "halo", "apscheduler_jobs": "apscheduler3"}
        return next((name for table, name in known.items() if table in tables), None)
    text = read_text(path)
    if path.suffix == ".py":
        return "celerybeat" if any(name in text for name in celerybeat.NAMES) else None
    return "crontab" if crontab.looks_right(text) else None
