"""Why a start was refused and why a run started, in words. Domains add theirs."""

from __future__ import annotations

from wakeful.kernel.rules.parking import FILE, GLOBAL_LANE, HANDLER, HOLD, PLACE, SUSPECT_LANE, labels_of
from wakeful.kernel.rules.policy import BELOW

REASONS = {
    "already_running": "its own previous run was still going",
    "at_capacity": "a lane it needs was full, so it waited",
    "backing_off": "it was backing off after errors",
    "outside_active_hours": "its active hours were closed",
    BELOW: "its trigger asks for more starts than the server gives",
    "no_handler": "no node handled its kind",
    "no_node": "no node had the labels it asks for",
    "paused": "it was paused",
    "held": "everything was paused, so it waited",
    "draining": "no node was starting runs",
    "disabled": "it was disabled",
}
STARTED_BY = {
    "schedule": "its time had come",
    "catch_up": "its time had passed while nothing ran it, and it was caught up once",
    "manual": "a person or program asked for it",
    "retry": "an earlier attempt did not succeed",
    "recovery": "an earlier attempt was cut off",
    "after": "the job it follows had ended",
    "approval": "a person approved it",
    "proposed": "its owner asked a person to allow it",
}


def waits_for(parked: str) -> str:
    """What a parked job waits for, in words."""
    if parked == HOLD:
        return "everything is paused"
    if parked.startswith(FILE):
        return "its configuration file could not be applied when its server started, and is to be settled first"
    if parked.startswith(HANDLER):
        return f"no running server has a handler for jobs of kind {parked.removeprefix(HANDLER)}"
    if parked.startswith(PLACE):
        return f"no running node is labelled {', '.join(labels_of(parked))}"
    if parked == GLOBAL_LANE:
        return "as many jobs as max_running allows are running"
    if parked == SUSPECT_LANE:
        return "it was running when the process crashed twice, and such jobs run one at a time"
    return f"the lane {parked} is full"
