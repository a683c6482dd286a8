"""Requests from outside as they travel."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from wakeful.routing.strict import Strict


class HookTaken(BaseModel):
    """A request that is stored."""

    run: str | None = Field(
        description="the run it starts; of a duplicate, the first one's", examples=["run_1hbm1n0w2c9kd"]
    )
    request: str | None = Field(description="the stored request", examples=["req_1hbm1n0w2c9kd"])
    duplicate: bool = Field(description="whether its delivery id came in before", examples=[False])


class MessageIn(Strict):
    """A chat message that a program passes on."""

    connector: Annotated[str, StringConstraints(min_length=1, max_length=64)] = Field(
        description="the connector it came through, and where it is answered", examples=["phone"]
    )
    sender: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="who wrote it, as the connector knows them", examples=["42"]
    )
    text: Annotated[str, StringConstraints(min_length=1, max_length=20_000)] = Field(
        description="what they wrote", examples=["/ask What is new?"]
    )
    agent: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="only this agent; it is woken where none of its schedules match",
        examples=["reporter"],
    )
    message_id: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="its id at the connector; the same id counts once", examples=["1017"]
    )


class MessageTaken(HookTaken):
    """What became of a message."""

    runs: list[str] = Field(description="the runs it starts: one for each schedule that matches", examples=[[]])


class RequestOut(BaseModel):
    """A request that came in."""

    id: str = Field(description="the request's id", examples=["req_1hbm1n0w2c9kd"])
    job: str | None = Field(description="the schedule it starts", examples=["reporter.deploy"])
    type: Literal["webhook", "chat"] = Field(description="what it is", examples=["webhook"])
    delivery_id: str | None = Field(description="its id at the sender", examples=["msg_p5jXN8AQM9LW"])
    replay_of: str | None = Field(description="the request that it repeats", examples=[None])
    run: str | None = Field(description="the run it started", examples=["run_1hbm1n0w2c9kd"])
    at: str = Field(description="when it came in", examples=["2026-01-29T09:00:00Z"])


class RequestDetail(RequestOut):
    """A request with its content."""

    about: dict[str, Any] = Field(
        description="headers of a webhook, or connector and sender of a message",
        examples=[{"content-type": "application/json"}],
    )
    body: str | None = Field(
        description="as it came in; null once retention has taken it", examples=['{"ref": "main"}']
    )
