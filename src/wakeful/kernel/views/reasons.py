"""Why a start was refused and why a run started, in words. Domains add theirs."""

from __future__ import annotations

from wakeful.kernel.engine.silence import NO_PING, UNHEARD
from wakeful.kernel.rules.limits import BELOW

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
    "disabled": "it was disabled",
    NO_PING: "no ping came in time",
    UNHEARD: "no ping could be received when it was expected",
}
STARTED_BY = {
    "schedule": "its time had come",
    "catch_up": "its time had passed while nothing ran it, and it was caught up once",
    "manual": "a person or program asked for it",
    "retry": "an earlier attempt did not succeed",
    "recovery": "an earlier attempt was cut off",
    "after": "the job it follows had ended",
    "approval": "a person approved it",
    "ping": "it reported in",
}
