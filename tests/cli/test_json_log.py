"""`serve --log json`: every line is one JSON object, whatever was logged."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.cli.terminal import Terminal

FIELDS = ["at", "level", "event", "job", "run", "node", "message"]
FILE = """
store: wakeful.db
jobs:
  well: {every: 1s, command: [echo, hi]}
  broken: {every: 1s, command: [sh, -c, "echo 'two\\nlines' >&2; exit 3"]}
"""


@pytest.mark.promise("X11")
@pytest.mark.parametrize("by", ["option", "variable"])
def test_every_line_of_the_log_is_one_object_with_what_it_is_about(by, tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(FILE)
    given, env = (["--log", "json"], {}) if by == "option" else ([], {"WAKEFUL_LOG": "json"})
    try:
        server = terminal.start("serve", "--port", "0", "--node", "here", *given, **env)
        waiting = {"well", "broken"}
        while waiting:
            waiting -= {json.loads(server.until('"run.finished"'))["job"]}
        server.signal(signal.SIGTERM)
        answer = server.ended()
    finally:
        terminal.close()
    lines = [json.loads(line) for line in answer.err.splitlines()]
    assert all(list(line)[:7] == FIELDS for line in lines)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["at"]) for line in lines)
    assert {line["node"] for line in lines} == {"here"}
    assert {line["level"] for line in lines} <= {"info", "warning"}
    ended = {line["job"]: line for line in lines if line["event"] == "run.finished"}
    assert re.fullmatch(r"run_\w+", ended["well"]["run"])
    assert " success" in ended["well"]["message"]
    assert lines[-1]["message"] == "stopped"


def test_the_log_is_for_people_unless_it_is_asked_for(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        server = terminal.start("serve", "--port", "0")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ INFO +listening on", server.until("listening on"))
        server.signal(signal.SIGTERM)
        assert server.ended().code == 0
        assert terminal("serve", "--log", "xml").code == 2
        assert "WAKEFUL_LOG is text or json" in terminal("serve", WAKEFUL_LOG="xml").err
    finally:
        terminal.close()
