"""docs/jobs-api.md cannot lie: every line of its walk is sent to a real server."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "jobs-api.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\$ ask (.+)\n(.*)$", PAGE, re.MULTILINE)


def test_the_walk_goes_as_it_is_written(client):
    assert len(STEPS) > 8
    for line, shown in STEPS:
        typed, _, shaped = line.partition(" | ")
        answer = send(client, shlex.split(typed))
        assert rendered(answer, shaped) == shown, line


def send(client, words):
    """What curl would send."""
    given = {"-X": None, "--json": None, "-H": []}
    rest = iter(words)
    url = ""
    for word in rest:
        if word == "-H":
            given["-H"].append(next(rest).split(": ", 1))
        elif word in ("-X", "--json"):
            given[word] = next(rest)
        elif word in ("-o", "-w"):
            next(rest)
        elif word.startswith("$API"):
            url = word.replace("$API", "/api")
    how = given["-X"] or ("POST" if given["--json"] else "GET")
    headers = dict(given["-H"]) | ({"Content-Type": "application/json"} if given["--json"] else {})
    return client.request(how, url, content=given["--json"], headers=headers)


def rendered(answer, shaped):
    """What the few filters of the page show of an answer."""
    if not shaped:
        return str(answer.status_code)
    asked = shlex.split(shaped)[-1]
    found = answer.json()
    if asked == "[.items[].name, .next]":
        return json.dumps([*(item["name"] for item in found["items"]), found["next"]], separators=(",", ":"))
    parts = re.findall(r"\.([\w.]+)", asked)
    values = [_at(found, part.split(".")) for part in parts]
    value = values if asked.startswith("[") else values[0]
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _at(found, path):
    for name in path:
        found = found[name]
    return found
