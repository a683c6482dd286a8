"""What a reader finds in the files of another scheduler: entries as Wakeful writes them, or why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

JOB, SCHEDULE, HEARTBEAT, PROGRAM = "job", "schedule", "heartbeat", "program"
"""What an entry becomes: a job, a schedule or the heartbeat of an agent, or a job that a program of the user runs."""


class ImportEntry(NamedTuple):
    """One entry. Without `refused`, `job` is what a file would hold for it; texts have no references in them."""

    source: str  # where it was found, such as `crontab:3`
    name: str
    job: Mapping[str, Any] = MappingProxyType({})
    notes: tuple[str, ...] = ()  # how it differs from what it was
    refused: str | None = None  # why it cannot be mapped
    part: str = JOB
    agent: str | None = None  # whose it is, for a schedule and a heartbeat


class Reading(NamedTuple):
    """All entries of a source, and the agents that they belong to, without their schedules."""

    entries: Sequence[ImportEntry]
    agents: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


def refused(source: str, name: str, why: str) -> ImportEntry:
    """An entry that cannot be mapped."""
    return ImportEntry(source, name, refused=why)
