"""Alerts as they travel."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from wakeful.routing.strict import Strict

ALERT = "alr_1hbm1n0w2c9kd"
WHEN = "2026-01-29T09:00:00Z"


class AlertOut(BaseModel):
    """An incident: open until `closed_at`."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="the id", examples=[ALERT])
    key: str = Field(description="what it is about; one alert is open per key", examples=["failing:1894"])
    kind: str = Field(description="the kind of incident", examples=["failing"])
    meaning: str | None = Field(
        description="what alerts of this kind mean", examples=["a job has failed several times in a row"]
    )
    job: str | None = Field(description="the job it is about, where that is still there", examples=["backup"])
    job_id: str | None = Field(description="the job's id", examples=["job_1hbm1n0w2c9kd"])
    message: str = Field(
        description="what happened", examples=["backup has failed 2 times in a row; the last: timeout"]
    )
    times: int = Field(description="how often it was noticed", examples=[3])
    opened_at: datetime = Field(description="when it was opened", examples=[WHEN])
    last_at: datetime = Field(description="when it was last noticed", examples=[WHEN])
    closed_at: datetime | None = Field(description="when it was over", examples=[None])
    acked_at: datetime | None = Field(description="when a person acknowledged it", examples=[None])
    snoozed_until: datetime | None = Field(description="no message is sent before", examples=[None])


class Snooze(Strict):
    """For how long no message is sent."""

    for_: str = Field(alias="for", max_length=100, description="a time such as 30m or 2h", examples=["2h"])


class SnoozeJob(Snooze):
    """The same for all alerts of a job, also those it has yet to raise."""

    job: str = Field(max_length=300, description="the job's name or id", examples=["backup"])


class Snoozed(BaseModel):
    """The alerts that are open and snoozed."""

    items: list[AlertOut] = Field(description="alerts of the job that are open", examples=[[]])
