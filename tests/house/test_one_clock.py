"""Only clock.py asks what time it is or waits for it, in Python and in SQL."""

from __future__ import annotations

import re

import pytest

from tests.house.source import PACKAGE, ROOT, Module, modules, read_module, strings, uses

ASKS = {
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.sleep",
    "time.time",
    "time.time_ns",
}
ASKS_IN_SQL = re.compile(
    r"\bcurrent_(timestamp|date|time)\b|\b(now|clock_timestamp|unixepoch|julianday)\s*\(\s*\)|'now'", re.IGNORECASE
)


def asks(module: Module) -> list[str]:
    return [f"{module.at(line)}: {name}" for name, line in uses(module) if name in ASKS]


def test_only_the_clock_asks_the_time():
    assert [found for module in modules() if module.name != "wakeful.clock" for found in asks(module)] == []


def test_sql_is_given_the_time():
    in_python = [
        f"{module.at(line)}: {match[0]}"
        for module in modules()
        if module.room == "store"
        for text, line in strings(module)
        if (match := ASKS_IN_SQL.search(text))
    ]
    in_files = [str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.sql") if ASKS_IN_SQL.search(path.read_text())]
    assert in_python + in_files == []


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.time()",
        "import time as t\nt.sleep(1)",
        "from time import monotonic as m\nm()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "import datetime as dt\ndt.date.today()",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.1)",
        "from datetime import datetime\nclock = datetime.now",
    ],
)
def test_asking_is_found_in_every_spelling(tmp_path, monkeypatch, code):
    monkeypatch.setattr("tests.house.source.ROOT", tmp_path)
    (tmp_path / "part.py").write_text(code)
    assert asks(read_module(tmp_path / "part.py", tmp_path)) != []


@pytest.mark.parametrize("sql", ["SELECT CURRENT_TIMESTAMP", "due_at <= now()", "strftime('%s', 'now')", "unixepoch()"])
def test_asking_is_found_in_sql(sql):
    assert ASKS_IN_SQL.search(sql)
