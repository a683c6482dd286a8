"""The options of a job as users write them, as types, so that a type checker finds a misspelt or wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

from wakeful.triggers import Trigger

Duration = str | float | timedelta
"""`"5m"`, a number of seconds, or a timedelta."""
IfExists = Literal["error", "update", "keep"]


class CatchUp(TypedDict):
    """How late a missed start may still be made up for: `{"within": "2h"}`."""

    within: Duration


class Retry(TypedDict, total=False):
    """Retries of a failed run: how many or after which delays, and for which errors."""

    times: int
    delays: Sequence[Duration]
    on: Literal["any", "transient"]


class JobOptions(TypedDict, total=False):
    """The options of a job. None, or leaving one out, means the default.

    A `Duration` is a text such as `"5m"` or `"1h30m"`, a number of seconds, or a `timedelta`.
    """

    timeout: Duration | None
    """The longest time a run may take; `"2h"` by default."""
    retry: int | Sequence[Duration] | Retry | None
    """Further attempts after an error: `2`, `["30s", "2m"]` or `{"times": 2, "on": "transient"}`.

    None by default, but two after transient errors for `Once`.
    """
    catch_up: Literal["once", "skip"] | CatchUp | None
    """What missed starts get: one run for all of them (`"once"`, the default), none, or `{"within": "2h"}`."""
    overlap: Literal["skip", "queue", "cancel_other"] | None
    """What happens when the job is due while it runs; `"skip"` by default."""
    backoff: Sequence[Duration] | None
    """The delays that errors in a row add before the next start; 30 s, 1 m, 5 m, 15 m, 60 m by default."""
    max_errors: int | None
    """Disable the job after so many errors in a row: 5 by default, 0 for never."""
    error_span: Duration | None
    """Disable it only after errors have gone on for this long as well."""
    on_crash: Literal["recover", "skip", "resume"] | None
    """What happens to a run that a crash interrupted; `"recover"`, the default, runs it again."""
    lanes: Mapping[str, int] | None
    """Limits shared with other jobs: `{"gpu": 1}` lets one run at a time into the lane `gpu`."""
    labels: Sequence[str] | None
    """Labels that a node needs to run this job."""
    approval: bool | None
    """Every start waits until a person approves it."""
    priority: int | None
    """From -100 to 100: of what is due, the higher starts first."""
    deliver: str | Mapping[str, str] | None
    """Where results are sent: a connector's name, or `{"to": "phone", "on": "failure"}`."""
    bounded: bool | None
    """The trigger obeys the server's minimum interval, as those of jobs that come over the network do."""


class JobChanges(JobOptions, total=False):
    """What `update_job` can change: the parts of a job and all its options."""

    name: str
    trigger: Trigger
    kind: str
    payload: Any
    owner: str | None
    enabled: bool
