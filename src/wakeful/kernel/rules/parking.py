"""What a due job waits for when it cannot start: a lane with room, a node with a handler for its kind, one with its
labels, the end of a hold, or that the file it belongs to is settled. A parked job has no alarm; who brings what it
waits for requeues it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

GLOBAL_LANE = "running"
SUSPECT_LANE = "crash-suspects"
HANDLER = "kind:"  # what a job is parked on when this node has no handler for it ...
PLACE = "labels:"  # ... or not the labels it asks for
HOLD = "hold:all"  # what a job is parked on while everything is held
FILE = "file:"  # ... and while the file it belongs to could not be applied


class Unsettled(NamedTuple):
    """A file that could not be applied when its server started: what it owns in the store, and does not start here."""

    fleet: str
    jobs: frozenset[int]


def serves(kinds: frozenset[str], labels: frozenset[str], key: str) -> bool:
    """Whether a node with these kinds and labels can run what is parked on `key`."""
    if key.startswith(HANDLER):
        return key.removeprefix(HANDLER) in kinds
    if key.startswith(FILE):
        return True  # but for a node whose own file it is, see `Context.serves`
    return key.startswith(PLACE) and labels.issuperset(labels_of(key))


def place_key(labels: tuple[str, ...]) -> str:
    """What a job is parked on that asks for a node with these labels: `labels_of` reads the same out of it."""
    text = ",".join(labels)
    return PLACE + (text if "[" not in text and text.split(",") == list(labels) else json.dumps(labels))


def labels_of(key: str) -> list[str]:
    """The labels in what a job is parked on."""
    text = key.removeprefix(PLACE)
    return [str(label) for label in json.loads(text)] if text.startswith("[") else text.split(",")


def is_lane(key: str) -> bool:
    """Whether what a job is parked on is a lane, which the end of a run frees."""
    return key != HOLD and not key.startswith((HANDLER, PLACE, FILE))


PARKED_REASONS = ("at_capacity", "no_handler", "no_node", "held")


def parked_reason(key: str) -> str:
    """Why jobs wait that are parked on that key, in the word refusals are counted under."""
    if key == HOLD or key.startswith(FILE):
        return "held"
    if key.startswith(HANDLER):
        return "no_handler"
    return "no_node" if key.startswith(PLACE) else "at_capacity"
