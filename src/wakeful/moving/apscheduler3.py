"""APScheduler 3: the table `apscheduler_jobs` of a SQLAlchemy store in SQLite, whose rows hold pickles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from wakeful.moving.calls import NoCall, call_command
from wakeful.moving.found import ImportEntry, Reading, refused
from wakeful.moving.naming import Names
from wakeful.moving.pickles import PickleRefused, Record, read_pickle
from wakeful.moving.sqlite import rows_of
from wakeful.moving.units import written

TABLE = "apscheduler_jobs"
_HOW = "the function is called in a process of its own, by the python3 on PATH, in this folder"
_FIELDS = ("second", "minute", "hour", "day", "month", "day_of_week")
_DEFAULTS = {"second": "0", "minute": "0", "hour": "0", "day": "*", "month": "*", "day_of_week": "*"}


class NoTrigger(Exception):
    """Times that cannot be mapped; the reason, as the end of a sentence."""


def read(path: Path) -> Reading:
    """The jobs of a store."""
    return Reading(list(read_rows(path.name, rows_of(path, TABLE, ("id", "next_run_time", "job_state")))))


def read_rows(source: str, rows: list[Mapping[str, Any]]) -> Iterator[ImportEntry]:
    """Each row as a job that calls its function."""
    names = Names()
    for row in rows:
        place, name = f"{source}:{row['id']!s:.80}", names.free(str(row["id"])[:150].strip() or "job")
        try:
            yield _job(place, name, read_pickle(row["job_state"]), paused=row["next_run_time"] is None)
        except (PickleRefused, NoTrigger, NoCall) as no:
            yield refused(place, name, str(no))


def _job(place: str, name: str, state: Any, *, paused: bool) -> ImportEntry:
    if not isinstance(state, dict):
        raise PickleRefused("its state is not a map")
    function = state.get("func")
    command = call_command(function if isinstance(function, str) else "", state.get("args"), state.get("kwargs"))
    when, notes = _timing(state.get("trigger"))
    grace, most = state.get("misfire_grace_time"), state.get("max_instances")
    job: dict[str, Any] = {**when, "command": command}
    if type(grace) is int and grace > 0 and "at" not in when:
        job["catch_up"] = {"within": written(grace * 1000)}
    if paused:
        job["enabled"] = False
    if type(most) is int and most > 1:
        notes.append(f"up to {most} of its runs overlapped: here one runs at a time")
    return ImportEntry(place, name, job, (_HOW, *notes))


def _timing(trigger: Any) -> tuple[dict[str, Any], list[str]]:
    if not isinstance(trigger, Record):
        raise NoTrigger("its trigger is not known")
    if trigger.kind == "DateTrigger":
        return {"at": _moment(trigger.get("run_date"))}, []
    if trigger.kind == "IntervalTrigger":
        length = trigger.get("interval")
        if not isinstance(length, timedelta):
            raise NoTrigger("its interval cannot be read")
        when: dict[str, Any] = {"every": written(round(length.total_seconds() * 1000))}
        if trigger.get("start_date") is not None:
            when["anchor"] = _moment(trigger.get("start_date"))
        return when | _limits(trigger, "end_date"), _jitter(trigger)
    if trigger.kind == "CronTrigger":
        return {"cron": _cron(trigger), **_zone(trigger), **_limits(trigger, "start_date", "end_date")}, _jitter(
            trigger
        )
    raise NoTrigger(f"its trigger {trigger.kind} combines others: add a job for each")


def _jitter(trigger: Record) -> list[str]:
    jitter = trigger.get("jitter")
    return [f"its starts were moved at random by up to {jitter} s: see stagger and jitter"] if jitter else []


def _moment(value: Any) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise NoTrigger("one of its times has no time zone")
    return value.isoformat()


def _limits(trigger: Record, *keys: str) -> dict[str, str]:
    ours = {"start_date": "start", "end_date": "until"}
    return {ours[key]: _moment(trigger.get(key)) for key in keys if trigger.get(key) is not None}


def _zone(trigger: Record) -> dict[str, str]:
    zone = trigger.get("timezone")
    name = getattr(zone, "key", None) or (str(zone) if isinstance(zone, tzinfo) else None)
    return {"timezone": name} if name else {}


# -- cron -------------------------------------------------------------------------------------------------------------


def _cron(trigger: Record) -> str:
    fields = trigger.get("fields")
    found = (
        {field.get("name"): field for field in fields if isinstance(field, Record)} if isinstance(fields, list) else {}
    )
    for name in ("year", "week"):
        if name in found and _field(found[name]) != "*":
            raise NoTrigger(f"its trigger names a {name}, which cron does not have")
    parts = {name: _field(found[name]) if name in found else _DEFAULTS[name] for name in _FIELDS}
    if parts["day"] != "*" and parts["day_of_week"] != "*":
        raise NoTrigger("its trigger asks for days of the month that are also a certain day of the week")
    if any("#" in part or part.endswith("L") for part in parts["day"].split(",")) and parts["day"] != "L":
        if "," in parts["day"]:
            raise NoTrigger("its trigger mixes days of the month and weekdays in one field")
        parts["day"], parts["day_of_week"] = "*", parts["day"]
    text = [parts[name] for name in _FIELDS]
    return " ".join(text[1:] if text[0] == "0" else text)


def _field(field: Record) -> str:
    expressions = field.get("expressions")
    if not isinstance(expressions, list) or not 1 <= len(expressions) <= 100:
        raise NoTrigger("its trigger has a field that cannot be read")
    return ",".join(_expression(one) for one in expressions)


def _expression(one: Any) -> str:
    kind = one.kind if isinstance(one, Record) else ""
    step = one.get("step") if kind else None
    behind = f"/{step}" if type(step) is int and step > 1 else ""
    if kind == "AllExpression":
        return f"*{behind}"
    if kind == "LastDayOfMonthExpression":
        return "L"
    if kind == "WeekdayPositionExpression":
        return _position(one)
    if kind in ("RangeExpression", "MonthRangeExpression", "WeekdayRangeExpression"):
        return _range(one, behind, shift=1 if kind == "WeekdayRangeExpression" else 0)
    raise NoTrigger("its trigger has a field that cannot be read")


def _range(one: Record, behind: str, *, shift: int) -> str:
    """APScheduler's week begins with Monday as 0, and cron's with Sunday."""
    first, last = one.get("first"), one.get("last")
    if type(first) is not int or (last is not None and type(last) is not int):
        raise NoTrigger("its trigger has a field that cannot be read")
    begin = first + shift
    if last is None and behind:
        return f"{begin}{behind}" if not shift else f"{begin}-7{behind}"
    return str(begin) if last in (None, first) else f"{begin}-{last + shift}{behind}"


def _position(one: Record) -> str:
    number, weekday = one.get("option_num"), one.get("weekday")
    if type(number) is not int or type(weekday) is not int or not (0 <= number <= 5 and 0 <= weekday <= 6):
        raise NoTrigger("its trigger has a field that cannot be read")
    day = (weekday + 1) % 7
    return f"{day}L" if number == 5 else f"{day}#{number + 1}"
