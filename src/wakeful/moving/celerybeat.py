"""Celery beat: the `beat_schedule` of a module, read from its text. The module is never imported."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakeful.moving.found import ImportEntry, Reading, refused
from wakeful.moving.naming import Names
from wakeful.moving.sources import Unreadable, read_text
from wakeful.moving.units import written

NAMES = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_UNITS = {"weeks": 604800, "days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}
_CRON = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_POSITIONS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


MOST = 10_000
DEEPEST = 5  # maps that are part of others by name
_WORD = re.compile(r"[a-z]+")


class NoValue(Exception):
    """Something that only running the module would say; what it is."""


def read(path: Path) -> Reading:
    """The schedules of a module."""
    return read_module(path.name, read_text(path))


def read_module(source: str, text: str) -> Reading:
    """Each entry as a job that sends the task with `celery call`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"{source} is not Python: {getattr(error, 'msg', None) or error}.") from None
    module = _Module(source, tree)
    entries = [module.entry(key, value) for key, value in module.pairs()]
    added = [module.added(node) for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_added(node)]
    if not entries and not added and not module.is_listed:
        raise Unreadable(f"{source} has no {NAMES[0]} that is written as a map.")
    return Reading([*entries, *added])


def _is_added(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "add_periodic_task"


Pair = tuple[ast.expr | None, ast.expr]


class _Module:
    def __init__(self, source: str, tree: ast.Module) -> None:
        self._source, self._names = source, Names()
        self._set = [pair for node in _statements(tree) for pair in _settings(node)]
        named = self._called()
        self._app = named or source.removesuffix(".py")
        self._where = "in this folder, to your workers"
        if named is None:
            self._where += ", if that is your app: the module makes none"
        self._zone = self._setting("timezone", "CELERY_TIMEZONE") or "UTC"
        self._count = 0
        self.is_listed = False  # whether one of its schedules is written as a map

    def pairs(self) -> Iterator[Pair]:
        """The names and the values of all entries, as the module has them."""
        for target, value in self._set:
            if isinstance(target, ast.Subscript) and _last_name(target.value) in NAMES:
                yield target.slice, value
            elif _last_name(target) in NAMES:
                yield from self._of_map(value)

    def _of_map(self, node: ast.expr, depth: int = 0) -> Iterator[Pair]:
        """The pairs of a map, also where a name of the module stands for it or for a part of it."""
        if isinstance(node, ast.Name) and depth < DEEPEST:
            known = [value for target, value in self._set if isinstance(target, ast.Name) and target.id == node.id]
            for value in known[-1:]:
                yield from self._of_map(value, depth + 1)
        elif isinstance(node, ast.Dict):
            self.is_listed = True
            for key, value in zip(node.keys, node.values, strict=True):
                self._count += 1
                if self._count > MOST:
                    raise Unreadable(f"{self._source} has more than {MOST:,} entries.")
                parts = list(self._of_map(value, depth + 1)) if key is None and isinstance(value, ast.Name) else []
                yield from parts or [(key, value)]

    def entry(self, key: ast.expr | None, value: ast.expr) -> ImportEntry:
        """One entry, or the reason why it cannot be mapped."""
        name = _literal(key) if key is not None else None
        line = f"{self._source}:{value.lineno}"
        called = self._names.free(" ".join(str(name).split())[:150] if isinstance(name, str) and name else "task")
        try:
            return self._entry(line, called, value)
        except NoValue as no:
            return refused(line, called, str(no))

    def added(self, call: ast.Call) -> ImportEntry:
        """A task that the app adds when it runs: which one that is, and when, the text does not say for sure."""
        named = next((_literal(one.value) for one in call.keywords if one.arg == "name"), None)
        name = self._names.free(" ".join(named.split())[:150] if isinstance(named, str) and named.strip() else "task")
        why = f"it is added by add_periodic_task when the app runs: write it into {NAMES[0]}, or add a job for it"
        return refused(f"{self._source}:{call.lineno}", name, why)

    def _entry(self, line: str, name: str, value: ast.expr) -> ImportEntry:
        parts = _map(value)
        task = _literal(parts.get("task"))
        if not isinstance(task, str):
            raise NoValue("the name of its task is not written in the module")
        when, notes = _timing(parts.get("schedule"))
        if "cron" in when:
            when["timezone"] = self._zone
        command = ["celery", "-A", self._app, "call", task, *_arguments(parts), *_options(parts.get("options"))]
        notes.insert(0, f"the task is sent by celery -A {self._app} call, {self._where}")
        return ImportEntry(line, name, {**when, "command": command}, tuple(notes))

    def _called(self) -> str | None:
        """The name that the app was made with: `Celery("proj")`."""
        for _, call in self._set:
            if isinstance(call, ast.Call) and _last_name(call.func) == "Celery" and call.args:
                name = _literal(call.args[0])
                return name if isinstance(name, str) and name.replace(".", "").isidentifier() else None
        return None

    def _setting(self, *names: str) -> str | None:
        for target, value in self._set:
            found = _literal(value)
            if isinstance(found, str) and _last_name(target) in names:
                return found
        return None


def _settings(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a statement sets, and to what: an assignment, or `app.conf.update(beat_schedule=...)`."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
        return
    if _last_name(call.func.value) in NAMES:
        yield from ((call.func.value, one) for one in call.args)
        return
    for one in call.args:
        if isinstance(one, ast.Dict):
            names = [_literal(key) for key in one.keys]
            yield from ((ast.Name(str(name)), value) for name, value in zip(names, one.values, strict=True))
    yield from ((ast.Name(one.arg), one.value) for one in call.keywords if one.arg is not None)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of the module and of its classes, such as a `Config`."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from node.body


def _last_name(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _literal(node: ast.expr | None) -> Any:
    """A value that is written in the module; None for any other."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _map(node: ast.expr | None) -> dict[str, ast.expr]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {name: value for key, value in pairs if isinstance(name := _literal(key), str)}
    if isinstance(node, ast.Call) and _last_name(node.func) == "dict" and not node.args:
        return {one.arg: one.value for one in node.keywords if one.arg is not None}
    raise NoValue("it is not written as a map")


def _arguments(parts: dict[str, ast.expr]) -> Iterator[str]:
    for key in ("args", "kwargs"):
        node = parts.get(key)
        value = _literal(node)
        if node is not None and value is None:
            raise NoValue(f"its {key} are computed when the module runs")
        if value:
            try:
                yield f"--{key}={json.dumps(value, allow_nan=False)}"
            except (TypeError, ValueError):
                raise NoValue(f"its {key} cannot be written as JSON") from None


def _options(node: ast.expr | None) -> Iterator[str]:
    options = _literal(node) if node is not None else {}
    if not isinstance(options, dict):
        raise NoValue("its options are computed when the module runs")
    for key, value in options.items():
        flag = {"queue": "--queue", "exchange": "--exchange", "routing_key": "--routing-key", "expires": "--expires"}
        if key not in flag:
            raise NoValue(f"its option {key!r:.40} has no match in celery call")
        yield f"{flag[key]}={value}"


# -- times ------------------------------------------------------------------------------------------------------------


def _timing(node: ast.expr | None) -> tuple[dict[str, Any], list[str]]:
    """When an entry is due: a number of seconds, a timedelta, or a crontab."""
    seconds = _number(node) if node is not None else None
    if seconds is not None and seconds > 0:
        return {"every": written(round(seconds * 1000))}, []
    called = _last_name(node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and called == "timedelta":
        return {"every": written(_span(node))}, []
    if isinstance(node, ast.Call) and called == "schedule" and (node.args or node.keywords):
        return _timing(node.args[0] if node.args else node.keywords[0].value)
    if isinstance(node, ast.Call) and called == "crontab":
        return {"cron": _crontab(node)}, []
    if called == "solar":
        raise NoValue("its times follow the sun, which Wakeful does not compute")
    raise NoValue("its schedule is computed when the module runs")


def _span(node: ast.Call) -> int:
    given = dict(zip(("days", "seconds"), node.args, strict=False)) | {one.arg: one.value for one in node.keywords}
    total = 0.0
    for unit, value in given.items():
        number = _number(value)
        if unit not in _UNITS or number is None:
            raise NoValue("its schedule is computed when the module runs")
        total += number * _UNITS[unit]
    if total <= 0:
        raise NoValue("its interval is not positive")
    return round(total * 1000)


def _number(node: ast.expr) -> float | None:
    """A number, also as a product such as 60 * 5."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _number(node.left), _number(node.right)
        return None if left is None or right is None else left * right
    value = _literal(node)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _crontab(node: ast.Call) -> str:
    given = dict(zip(_POSITIONS, node.args, strict=False)) | {str(one.arg): one.value for one in node.keywords}
    fields = {}
    for name, value in given.items():
        said = _literal(value)
        if name not in _CRON or not isinstance(said, int | str | set | list | tuple):
            raise NoValue("its crontab is computed when the module runs")
        several = sorted(map(str, said)) if isinstance(said, set | list | tuple) else [str(said)]
        fields[name] = ",".join(several).replace(" ", "")
    if fields.get("day_of_month", "*") != "*" and fields.get("day_of_week", "*") != "*":
        raise NoValue("its crontab asks for days of the month that are also a certain day of the week")
    text = [fields.get(name, "*") for name in _CRON]
    text[4] = _WORD.sub(lambda found: found[0][:3], text[4].lower())  # celery looks at no more of a day's name
    return " ".join(text)
