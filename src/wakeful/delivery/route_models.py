"""Deliveries and connectors as they travel."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from wakeful.api.strict import Strict

Status = Literal["pending", "sending", "sent", "failed", "unknown", "held", "expired"]


class AttemptOut(BaseModel):
    """One attempt; `ok` is null where nobody knows whether the message arrived."""

    at: datetime
    ok: bool | None
    error: str | None
    ms: int | None


class DeliveryOut(BaseModel):
    """A message and what became of it."""

    model_config = ConfigDict(extra="forbid")

    id: str
    status: Status
    connector: str | None
    kind: str
    text: str
    title: str | None
    job: str | None
    run: str | None
    agent: str | None
    outcome: str | None
    to: str | None
    urgent: bool
    attempts: int
    next_attempt_at: datetime | None
    last_error: str | None
    held_for: str | None
    digest: str | None
    created_at: datetime
    sent_at: datetime | None
    log: list[AttemptOut]


class ConnectorOut(BaseModel):
    """A connector, how it sends, and how much waits for it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    type: str
    source: str
    pending: int
    held: int
    failed: int
    attempts: int
    rate: str | None
    quiet_hours: dict[str, Any] | None
    max_age: str | float | None
    last_interaction_at: datetime | None


class Requeue(Strict):
    """Which messages to send again."""

    status: Literal["failed", "expired", "held"] = "failed"


class Requeued(BaseModel):
    """How many messages wait in their queue again."""

    requeued: int
