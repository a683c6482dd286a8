"""Deliveries and connectors as they travel."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakeful.routing.strict import Strict

Status = Literal["pending", "sending", "sent", "failed", "unknown", "held", "expired"]


class AttemptOut(BaseModel):
    """One attempt; `ok` is null where it is not known whether the message arrived."""

    at: datetime = Field(description="when it was made", examples=["2026-01-29T09:00:00Z"])
    ok: bool | None = Field(description="whether the target took it; null where that is not known", examples=[True])
    error: str | None = Field(description="what went wrong", examples=[None])
    ms: int | None = Field(description="how long it took, in milliseconds", examples=[120])


class DeliveryOut(BaseModel):
    """A message and what became of it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="the id, the same for every attempt", examples=["dlv_1hbm1n0w2c9kd"])
    status: Status = Field(description="its status", examples=["sent"])
    connector: str | None = Field(description="the connector it goes to; null where none was found", examples=["phone"])
    kind: str = Field(description="reply, output, alert, digest or test", examples=["output"])
    text: str = Field(description="the message", examples=["backup ended as error"])
    title: str | None = Field(description="its title", examples=["backup failed"])
    job: str | None = Field(description="the job it is about", examples=["backup"])
    run: str | None = Field(description="the run it is about", examples=["run_1hbm1n0w2c9kd"])
    agent: str | None = Field(description="the agent it is from", examples=[None])
    outcome: str | None = Field(description="the outcome of the run", examples=["error"])
    to: str | None = Field(description="the recipient, where the connector has several", examples=[None])
    urgent: bool = Field(description="whether it passes quiet hours", examples=[False])
    attempts: int = Field(description="how many attempts were made", examples=[1])
    next_attempt_at: datetime | None = Field(description="when it is tried next", examples=[None])
    last_error: str | None = Field(description="the error of the last attempt", examples=[None])
    held_for: str | None = Field(description="why it is held", examples=[None])
    digest: str | None = Field(description="the digest it was sent in", examples=[None])
    created_at: datetime = Field(description="when it was stored", examples=["2026-01-29T09:00:00Z"])
    sent_at: datetime | None = Field(description="when the target took it", examples=["2026-01-29T09:00:01Z"])
    log: list[AttemptOut] = Field(description="every attempt, the first one first", examples=[[]])


class ConnectorOut(BaseModel):
    """A connector, how it sends, and how much waits for it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="its name", examples=["phone"])
    type: str = Field(description="its type", examples=["webhook"])
    source: str = Field(description="where it was written: file or code", examples=["file"])
    pending: int = Field(description="messages that wait to be sent", examples=[0])
    held: int = Field(description="messages that are held", examples=[0])
    failed: int = Field(description="messages that failed", examples=[0])
    attempts: int = Field(description="attempts before a message has failed", examples=[5])
    rate: str | None = Field(description="how many messages it takes", examples=["20/m"])
    quiet_hours: dict[str, Any] | None = Field(description="when it sends nothing that is not urgent", examples=[None])
    max_age: str | float | None = Field(description="when a message expires", examples=["24h"])
    last_interaction_at: datetime | None = Field(description="when a person last wrote through it", examples=[None])


class Requeue(Strict):
    """Which messages to send again."""

    status: Literal["failed", "expired", "held"] = Field("failed", description="which ones", examples=["failed"])


class Requeued(BaseModel):
    """How many messages wait in their queue again."""

    requeued: int = Field(description="how many", examples=[3])
