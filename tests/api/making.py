"""Jobs made over HTTP."""

from __future__ import annotations

import itertools

_numbers = itertools.count(1)


def new_name():
    """A name that no job has had yet."""
    return f"job-{next(_numbers)}"


def make(client, name, **fields):
    answer = client.post("/api/jobs", json={"name": name, "kind": "report", "trigger": {"every": "6h"}, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()
