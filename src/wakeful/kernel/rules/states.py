"""The life of a run, in one place: its states, and the only arrows between them.

    queued ──claim──▶ active ──settle──▶ done
      │ ▲               │                  ▲
      │ └───release─────┤                  │
      │               wait                 │
      │                 ▼                  │
      │              waiting ───settle─────┤
      └───────────────cancel───────────────┘

`queued` has been asked for, or was claimed and released before its handler was called; `active` has a handler on
some node; `waiting` has none and holds no lane; `done` has an outcome. A run that died with its process is settled as
crashed by the next start; what continues it is a new run.
"""

from __future__ import annotations

from wakeful import ids
from wakeful.errors import SchedulerError

RUN_STATES = ("queued", "active", "waiting", "done")

#: verb -> (from, to)
TRANSITIONS: dict[str, tuple[frozenset[str], str]] = {
    "claim": (frozenset({"queued"}), "active"),
    "wait": (frozenset({"active"}), "waiting"),
    "settle": (frozenset({"active", "waiting"}), "done"),
    "cancel": (frozenset({"queued"}), "done"),
    "release": (frozenset({"active"}), "queued"),
}


class ImpossibleTransition(SchedulerError):
    """A transition that the run's state does not allow."""


#: (from, to) of every arrow.
ARROWS = frozenset((start, end) for starts, end in TRANSITIONS.values() for start in starts)


def check_transition(start: str, end: str, run_id: int) -> None:
    """ImpossibleTransition unless there is an arrow between the two states."""
    if (start, end) not in ARROWS:
        message = f"{ids.run_text(run_id)} is {start}; it cannot become {end}."
        raise ImpossibleTransition(message)


def after(verb: str, state: str, run: str) -> str:
    """The state that follows, or ImpossibleTransition naming the run, its state and the verb."""
    allowed, result = TRANSITIONS[verb]
    if state not in allowed:
        message = f"{run} is {state}; it cannot {verb}."
        raise ImpossibleTransition(message)
    return result
