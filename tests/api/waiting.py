"""Waiting for what a server does, by asking it: bounded, and never for a number of seconds."""

from __future__ import annotations

ASKED = 3000  # times at most; each takes a millisecond or more


def eventually(ask, good):
    """The first answer that is good."""
    for _ in range(ASKED):
        answer = ask()
        if good(answer):
            return answer
    raise AssertionError(f"never happened; the last answer: {answer}")


def ended(client, run):
    """A run once it has ended."""
    return eventually(lambda: client.get(f"/api/runs/{run}").json(), lambda found: found["status"] == "done")


def waits(client, run):
    """A run once it waits."""
    return eventually(lambda: client.get(f"/api/runs/{run}").json(), lambda found: found["status"] == "waiting")
