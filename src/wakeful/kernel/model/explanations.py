"""What kinds of job add to an explanation of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow
    from wakeful.triggers import Trigger
    from wakeful.triggers.active_hours import ActiveHours


class Subject(NamedTuple):
    """What a story is about: a job with its last run, or (`of_run`) that run alone. `when` puts a time in words."""

    tx: Transaction
    job: JobDef
    run: RunRow | None
    of_run: bool
    when: Callable[[int], str]


Story = Callable[[Subject], list[str]]

Standing = Callable[[Subject], str | None]


class PassedOver(NamedTuple):
    """The times of a job before a moment are let go, if nothing changes until then."""

    until: int
    why: str


Passing = Callable[["Transaction", "Sequence[JobDef]"], "Mapping[int, PassedOver]"]

Hours = Callable[["JobDef"], "ActiveHours | None"]

Watched = Callable[["Trigger", "JobState", int], dict[str, Any]]

Phases = Callable[["Transaction", Sequence[int]], Mapping[int, str]]

Steps = Callable[["Transaction", Sequence[int]], Mapping[int, list[dict[str, Any]]]]

#: By kind; domains add theirs.
STORIES: dict[str, Story] = {}
STANDINGS: dict[str, Standing] = {}
STARTED_WHEN: dict[str, str] = {}
SETTLED_BY: dict[str, str] = {}  # what a waiting run waits for, where its kind ends it
WATCHED: dict[str, Watched] = {}
PASSING: dict[str, Passing] = {}
HOURS: dict[str, Hours] = {}
PHASES: dict[str, Phases] = {}
STEPS: dict[str, Steps] = {}
