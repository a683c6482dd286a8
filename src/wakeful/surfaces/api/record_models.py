"""The shapes of what is answered about the record: the verdict, the ledger, actions, and what undoing one did."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from wakeful.routing.models import MAX_NOTE, RunOut
from wakeful.routing.strict import Strict


class VerdictOut(BaseModel):
    """Whether all is well, in one sentence."""

    state: Literal["unsure", "stalled", "needs_you", "failing", "behind", "empty", "quiet", "well"] = Field(
        description="What the sentence says, as a word."
    )
    well: bool = Field(description="Whether all is well; never true when that is not known.", examples=[True])
    sentence: str = Field(
        description="The most serious finding, as a sentence.",
        examples=["All well. 210 runs since midnight; next in 38s."],
    )


NOW = "2026-01-29T09:00:00Z"
What = Literal[
    "pause",
    "resume",
    "disable",
    "remove",
    "acknowledge",
    "snooze",
    "pause_all",
    "resume_all",
    "pause_workflow",
    "resume_workflow",
    "drain_workflow",
    "apply",
    "run",
    "retry",
    "cancel",
    "approve",
    "reject",
    "add",
    "edit",
    "drain",
    "undrain",
    "revoke_token",
    "cancel_message",
]


class ActionOut(BaseModel):
    """An action on jobs or alerts."""

    id: str = Field(description="The action's id.", examples=["act_1frc87n80sngk"])
    at: datetime = Field(description="When it was done.", examples=[NOW])
    what: What = Field(
        description="What was done; `pause_all` and `resume_all` to everything, `apply` where it was several things."
    )
    actor: str = Field(description="Who did it: a token's name, a user, or a program's node.", examples=["admin"])
    via: str = Field(description="From where: `cli`, `api`, `chat`, `code` or `file`.", examples=["api"])
    name: str = Field(description="The first job or alert it changed.", examples=["backup"])
    changed: int = Field(description="How many it changed.", examples=[1])
    undoable: bool = Field(
        description="Whether it can be undone for a while; false for a run that was started, an approval and the like.",
        examples=[True],
    )
    undo_until: datetime | None = Field(
        description="Until when it can be undone; null when it cannot be undone or was.", examples=[NOW]
    )
    undone_at: datetime | None = Field(description="When it was undone.", examples=[NOW])
    undone_by: str | None = Field(description="By whom.", examples=["admin"])


class HoldIn(Strict):
    """Why everything is paused, and how far."""

    note: str | None = Field(
        default=None, max_length=MAX_NOTE, description="the reason, for others to read", examples=["maintenance"]
    )
    messages: bool = Field(default=False, description="whether no message is sent either", examples=[False])


class HoldOut(BaseModel):
    """Whether everything is paused, and by whom."""

    held: bool = Field(description="Whether nothing starts.", examples=[True])
    since: datetime | None = Field(description="When it was paused.", examples=[NOW])
    by: str | None = Field(description="Who paused it.", examples=["admin"])
    note: str | None = Field(description="The reason that was given.", examples=["maintenance"])
    messages: bool = Field(description="Whether no message is sent either.", examples=[False])


class UndoneOut(BaseModel):
    """The result of an undo."""

    id: str = Field(description="The action's id.", examples=["act_1frc87n80sngk"])
    what: str = Field(description="What had been done.", examples=["pause"])
    count: int = Field(description="How many were brought back.", examples=[1])
    restored: list[str] = Field(description="Their names.", examples=[["backup"]])
    kept: dict[str, str] = Field(
        description="Those that stay as they are, and why.",
        examples=[{"report": "report was resumed since, by ann: left as it is"}],
    )


class TallyOut(BaseModel):
    """What became of the slots that were due; the parts add up to `due`."""

    due: int = Field(description="How many slots came due.", examples=[168])
    ran: int = Field(description="How many ran, whatever their outcome.", examples=[160])
    running: int = Field(description="How many are running.", examples=[0])
    waiting: dict[str, int] = Field(description="How many wait, by reason.", examples=[{"at_capacity": 1}])
    passed_over: dict[str, int] = Field(description="How many were passed over, by reason.", examples=[{"paused": 5}])
    merged: int = Field(description="How many were merged into another slot's run.", examples=[2])
    missing: int = Field(description="How many passed while nothing could run, and were not caught up.", examples=[0])
    unaccounted: int = Field(description="How many have no record; normally 0.", examples=[0])


class JobTally(TallyOut):
    """The same of one job."""

    job: str = Field(description="The job's name.", examples=["backup"])


class LedgerOut(TallyOut):
    """What became of every slot that was due in a span."""

    since: datetime = Field(description="The slots after this time.", examples=[NOW])
    until: datetime = Field(description="Up to this one.", examples=[NOW])
    job_count: int = Field(description="How many jobs had slots.", examples=[1])
    jobs: list[JobTally] = Field(description="The jobs, those with most slots that did not run first.")


class SlotOut(BaseModel):
    """What became of one slot."""

    job: str = Field(description="The job's name.", examples=["backup"])
    slot: datetime = Field(description="The slot's nominal time.", examples=[NOW])
    fate: Literal["ran", "running", "waiting", "passed_over", "merged", "missing", "ahead", "over", "unaccounted"] = (
        Field(description="What became of it, as a word.")
    )
    why: str | None = Field(description="The reason, of one that waits or was passed over.", examples=["paused"])
    sentence: str = Field(
        description="The same as a sentence.",
        examples=["The slot 2026-01-29T09:00:00Z of backup was passed over: it was paused."],
    )
    merged_into: datetime | None = Field(description="The slot into whose run it was merged.", examples=[NOW])
    runs: list[RunOut] = Field(description="All attempts at it that are on record, the first one first.", examples=[[]])
