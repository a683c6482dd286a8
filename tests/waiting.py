"""Waiting for what a server does, by asking it: bounded, and never for a number of seconds."""

from __future__ import annotations

from wakeful.clock import SystemClock, block

PATIENCE_S = 300  # after which a wait is a failure; nothing takes so long on purpose
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.05  # from one question to the next: what answers needs the processor too


def eventually(ask, good, what="it"):
    """The first answer that is good."""
    deadline = SystemClock().boot() + PATIENCE_S * 1000
    pause = FIRST_PAUSE_S
    while not good(answer := ask()):
        assert SystemClock().boot() < deadline, f"{what} never happened; the last answer: {answer}"
        block(pause)
        pause = min(LONGEST_PAUSE_S, pause * 1.5)
    return answer


def ended(client, run):
    """A run once it has ended."""
    return eventually(lambda: client.get(f"/api/runs/{run}").json(), lambda found: found["status"] == "done")


def waits(client, run):
    """A run once it waits."""
    return eventually(lambda: client.get(f"/api/runs/{run}").json(), lambda found: found["status"] == "waiting")
