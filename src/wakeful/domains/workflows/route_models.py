"""What travels over `/api/workflows`: requests, and the shapes of answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakeful.routing.models import StepOut
from wakeful.routing.strict import Strict

RUN, EVENT, INPUT, FIX = "run_1frc87n80sngk", "evt_1frc87n80sngk", "inp_1frc87n80sngk", "fix_1frc87n80sngk"
NOW, VERSION = "2026-01-29T09:00:00Z", "3f8a1c20b6d94e57"
RunId = Annotated[str, Field(max_length=100, description="The run that waits.", examples=[RUN])]
Note = Annotated[
    str | None, Field(max_length=2000, description="A note, kept on record.", examples=["I looked at the sheet."])
]


class PauseIn(Strict):
    """Why a workflow is paused."""

    note: Note = None


class AnswerIn(Strict):
    """A person's answer to a run that asks."""

    run: RunId
    note: Note = None


class SettleIn(Strict):
    """What became of a mutation that was cut off."""

    run: RunId
    verdict: Literal["happened", "did_not_happen", "skip"] = Field(
        description="It happened, it did not, or `skip`: continue as if there was nothing to do.", examples=["happened"]
    )
    result: Any = Field(default=None, description="What the mutation returned, where known.", examples=[{"rows": 3}])
    note: Note = None


class PublishIn(Strict):
    """An event that a person publishes."""

    message_id: str = Field(
        min_length=1, max_length=1000, description="An event of a known message id is not made twice.", examples=["17"]
    )
    payload: Any = Field(default=None, description="Any JSON value.", examples=[{"subject": "Hello"}])


class ReasonIn(Strict):
    """Why an input or event is skipped or worked on again."""

    reason: str = Field(min_length=1, max_length=1000, description="Kept on record.", examples=["It is spam."])


class ReplayIn(Strict):
    """How a parked event continues, or why a consumed one is published again."""

    reason: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Kept on record; required for a consumed event.",
        examples=["Fixed."],
    )
    start_over: bool = Field(
        default=False, description="Whether the stored steps of a parked event are forgotten.", examples=[False]
    )


# -- answers ----------------------------------------------------------------------------------------------------------


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PreparedOut(_Answer):
    """What `prepare` chose."""

    reserve: dict[str, list[str]] = Field(description="The events it reserved, by topic.", examples=[{"mail": [EVENT]}])
    data: Any = Field(description="The data for the phases after it.", examples=[{"rows": 3}])


class ChangeOut(PreparedOut):
    """The change outside that a question is about."""

    title: str | None = Field(description="What it does, in the words of `prepare`.", examples=["Add 3 rows"])
    result: Any = Field(description="What it returned, where that is known.", examples=[None])


class WorkflowRunOut(_Answer):
    """An attempt of a handler."""

    id: str = Field(description="The run's id.", examples=[RUN])
    job: str = Field(description="The handler's job.", examples=["invoices.append"])
    handler: str = Field(description="The handler.", examples=["append"])
    phase: Literal["preparing", "prepared", "mutating", "mutated", "emitting", "committed"] = Field(
        description="The last phase it reached; a phase never goes back.", examples=["committed"]
    )
    workflow_status: str = Field(
        description="`active`, `committed`, `paused:transient`, `paused:approval`, `paused:reconciliation`, "
        "`failed:logic`, `failed:internal`, `crashed`, `rejected` or `given_up` (its handler was removed).",
        examples=["committed"],
    )
    mutation: Literal["none", "in_flight", "applied", "skipped"] = Field(
        description="What is known of its change outside.", examples=["applied"]
    )
    retry_of: str | None = Field(description="The attempt that this one continues.", examples=[None])
    status: str = Field(description="`queued`, `active`, `waiting` or `done`.", examples=["done"])
    outcome: str | None = Field(description="How the run ended; null until then.", examples=["success"])
    title: str | None = Field(description="What it does, in the words of `prepare`.", examples=["Add 3 rows"])
    prepared: PreparedOut | None = Field(description="What `prepare` chose; null before that.", examples=[None])
    result: Any = Field(description="What `mutate` returned; null before that.", examples=[{"rows": 3}])
    error: str | None = Field(description="Why it failed.", examples=[None])
    notes: list[str] = Field(
        description="What the author should know, such as a wake time that was moved.", examples=[[]]
    )
    steps: list[StepOut] = Field(description="The steps of the event it works on, if its handler has steps.")
    version: str = Field(description="The code that ran.", examples=[VERSION])
    started_at: datetime = Field(description="When it was started.", examples=[NOW])
    updated_at: datetime = Field(description="When its last phase was stored.", examples=[NOW])


class FixOut(_Answer):
    """A correction of a workflow's code that was requested from its hook."""

    id: str = Field(description="The correction's id.", examples=[FIX])
    handler: str = Field(description="The handler whose code failed.", examples=["append"])
    run: str = Field(description="The run that failed; approve or reject the correction with it.", examples=[RUN])
    version: str = Field(description="The code that failed.", examples=[VERSION])
    number: int = Field(description="Which try it is, of three.", examples=[1])
    status: Literal["asked", "none", "failed", "proposed", "accepted", "applied", "refused", "lapsed"] = Field(
        description="What became of it.", examples=["proposed"]
    )
    at: datetime = Field(description="When it was requested.", examples=[NOW])
    ended_at: datetime | None = Field(description="When the hook had answered.", examples=[NOW])
    made: str | None = Field(description="The version it would be.", examples=["91c0e2d7f4a3b865"])
    note: str | None = Field(
        description="What the hook says, or why there is none.", examples=["A mail may lack a subject."]
    )
    who: str | None = Field(description="Who approved or rejected it.", examples=[None])
    diff: str | None = Field(
        description="The change of the source.", examples=["--- a/invoices.py\n+++ b/invoices.py\n"]
    )


class IssueOut(_Answer):
    """What keeps a workflow from going on."""

    kind: Literal["transient", "approval", "reconciliation", "logic", "internal", "paused", "parked"] = Field(
        description="The kind of issue.", examples=["approval"]
    )
    handler: str | None = Field(description="The handler it is about.", examples=["append"])
    run: str | None = Field(description="The run it is about.", examples=[RUN])
    message: str = Field(
        description="What is wrong and what to do.", examples=["Waiting for your approval: Add 3 rows?"]
    )
    actions: list[str] = Field(description="What a person can do.", examples=[["approve", "reject"]])
    likely: str | None = Field(
        description="The verdict that the error of an uncertain change suggests; null where it suggests none.",
        examples=[None],
    )
    change: ChangeOut | None = Field(
        description="The change that a person is asked about: what was prepared for it.", examples=[None]
    )
    trace: str | None = Field(description="The trace through the author's code. For operators.", examples=[None])
    fix: FixOut | None = Field(description="The correction of code that failed.", examples=[None])


class HandlerOut(_Answer):
    """A producer, a consumer, or a handler with steps."""

    name: str = Field(description="Its name.", examples=["append"])
    type: Literal["producer", "consumer", "steps"] = Field(description="What it is.", examples=["consumer"])
    job: str = Field(description="The job it is.", examples=["invoices.append"])
    state: Any = Field(description="What it returned last.", examples=[{"cursor": 17}])
    topics: list[str] = Field(description="What it subscribes to, or publishes.", examples=[["mail"]])
    publishes: list[str] | None = Field(
        description="The topics it names in `publishes`, those of other workflows as WORKFLOW.TOPIC; null: any.",
        examples=[None],
    )
    next_run_at: datetime | None = Field(description="When it runs next, where that is known.", examples=[NOW])
    wake_at: datetime | None = Field(description="When it asked to be woken.", examples=[None])
    pending_events: int = Field(description="Events that wait for it, counted up to 1,000.", examples=[0])
    last_run: WorkflowRunOut | None = Field(description="Its last attempt.", examples=[None])


class VersionOut(_Answer):
    """A version that was deployed."""

    number: int = Field(description="Counts from 1.", examples=[1])
    version: str = Field(description="The hash of the code.", examples=[VERSION])
    deployed_at: datetime = Field(description="When.", examples=[NOW])


class ActivityOut(_Answer):
    """Something that was done."""

    at: datetime = Field(description="When.", examples=[NOW])
    text: str = Field(description="In words.", examples=["Add 3 rows"])
    run: str = Field(description="By which run.", examples=[RUN])


class WorkflowActionOut(_Answer):
    """Something that a person did."""

    at: datetime = Field(description="When.", examples=[NOW])
    who: str = Field(description="Who.", examples=["admin"])
    action: str = Field(description="What.", examples=["settled"])
    detail: str | None = Field(description="More about it, such as the reason.", examples=["happened"])


class WorkingOut(_Answer):
    """A run that is over while a thread of it is still at work."""

    run: str = Field(description="The run.", examples=[RUN])
    node: str | None = Field(description="The node it works on.", examples=["laptop"])
    since: datetime | None = Field(description="When the run was over.", examples=[NOW])


class WorkflowOut(_Answer):
    """A workflow as people see it."""

    name: str = Field(description="Its name.", examples=["invoices"])
    status: Literal["running", "idle", "needs_attention", "stopped"] = Field(
        description="Its status.", examples=["idle"]
    )
    cut_off: bool = Field(description="Whether its run was cut off: the server has ended.", examples=[False])
    issue: IssueOut | None = Field(description="What keeps it from going on.", examples=[None])
    schedule: str = Field(description="When it looks for new things.", examples=["Checks every 5 minutes."])
    paused: bool = Field(description="Whether a person paused it.", examples=[False])
    removed: bool = Field(
        description="Whether it was removed, and is listed because it is not known whether a change of it happened.",
        examples=[False],
    )
    draining: bool = Field(description="Whether it finishes what it has, and is paused then.", examples=[False])
    working: WorkingOut | None = Field(
        description="The run that was cut off while a thread of it is still at work: nothing starts meanwhile.",
        examples=[None],
    )
    version: str = Field(
        description="The code that is deployed; empty where its file was never loaded.", examples=[VERSION]
    )
    versions: list[VersionOut] = Field(description="What was deployed, the newest first.", examples=[[]])
    recent: list[ActivityOut] = Field(description="What it did last.", examples=[[]])
    actions: list[WorkflowActionOut] = Field(description="What people did to it last.", examples=[[]])
    parked: int = Field(description="Events that failed and are set aside.", examples=[0])
    retrying: int = Field(description="Events that failed and are tried again.", examples=[0])
    pending_inputs: int = Field(description="Inputs whose events are not all worked on.", examples=[0])
    handlers: list[HandlerOut] = Field(description="Its handlers, by name.", examples=[[]])


class EventOut(_Answer):
    """An event of a topic."""

    id: str = Field(description="The event's id.", examples=[EVENT])
    message_id: str = Field(description="What it was published as.", examples=["17"])
    topic: str = Field(description="Its topic.", examples=["mail"])
    payload: Any = Field(description="What was published.", examples=[{"subject": "Hello"}])
    status: Literal["pending", "reserved", "consumed", "skipped", "parked"] | None = Field(
        description="What became of it; null where only its message id is left.", examples=["consumed"]
    )
    at: datetime | None = Field(description="When it was published; null as above.", examples=[NOW])
    input: str | None = Field(description="The input that caused it.", examples=[INPUT])
    run: str | None = Field(description="The run that reserved or consumed it.", examples=[RUN])
    reason: str | None = Field(description="Why a person skipped it.", examples=[None])
    error: str | None = Field(description="What the last attempt at it failed with.", examples=[None])
    tries: int = Field(description="How many attempts at it failed.", examples=[0])


class CausedOut(_Answer):
    """An event that an input caused."""

    id: str = Field(description="The event's id.", examples=[EVENT])
    topic: str = Field(description="Its topic.", examples=["mail"])
    status: str = Field(description="What became of it.", examples=["consumed"])
    run: str | None = Field(description="The run that consumed it.", examples=[RUN])


class InputOut(_Answer):
    """Something from outside that a producer found."""

    id: str = Field(description="The input's id.", examples=[INPUT])
    source: str = Field(description="Where it was found.", examples=["imap"])
    type: str = Field(description="What it is.", examples=["mail"])
    external_id: str = Field(description="Its id there.", examples=["17"])
    title: str | None = Field(description="What people call it.", examples=["Invoice 17"])
    status: Literal["pending", "done", "skipped"] = Field(
        description="Whether all that it caused is worked on.", examples=["done"]
    )
    reason: str | None = Field(description="Why a person skipped it or ran it again.", examples=[None])
    at: datetime = Field(description="When it was found.", examples=[NOW])
    caused: list[CausedOut] = Field(description="The first 100 events it caused.", examples=[[]])


class StartedOut(_Answer):
    """Producers that were started by hand."""

    name: str = Field(description="The workflow.", examples=["invoices"])
    runs: list[str] = Field(description="Their runs.", examples=[[RUN]])


class ApprovedOut(_Answer):
    """A run that continues."""

    run: str = Field(description="The run that asked.", examples=[RUN])
    continued_by: str | None = Field(
        description="The run that continues; null where a correction was approved, which is deployed first.",
        examples=[RUN],
    )


class RejectedOut(_Answer):
    """A run, or the correction of its code, that was rejected."""

    run: str = Field(description="The run.", examples=[RUN])


class RemovedOut(_Answer):
    """A workflow that was removed."""

    name: str = Field(description="Its name.", examples=["invoices"])
    to_settle: list[str] = Field(
        description="Runs whose change may or may not have happened; each is listed until it is settled.",
        examples=[[]],
    )


class SettledOut(_Answer):
    """A mutation whose fate is known."""

    run: str = Field(description="The run.", examples=[RUN])
    verdict: str = Field(description="The verdict of the person.", examples=["happened"])


class SkippedOut(_Answer):
    """An input or event to which nothing more happens."""

    id: str = Field(description="The input or event.", examples=[INPUT])
    skipped: int = Field(description="How many events were skipped.", examples=[1])


class ReplayedOut(_Answer):
    """Parked events that continue."""

    name: str = Field(description="The workflow.", examples=["invoices"])
    events: list[str] = Field(description="The events.", examples=[[EVENT]])


class AgainOut(_Answer):
    """Events that were published again."""

    id: str = Field(description="The input or event.", examples=[INPUT])
    events: list[str] = Field(description="The new events.", examples=[[EVENT]])
