"""`webhook`, `chat` and `untrusted` in `wakeful.yaml`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.config.models import Duration, Section

Secret = Annotated[str, Field(min_length=1)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
Trust = Literal["paired", "none"]
"""Whose text is a request: that of people who are paired and of the folder's owner, or nobody's."""
Words = list[Annotated[str, Field(min_length=1)]]


class LocationSection(Section):
    """Where a value stands: in a header, perhaps after a prefix, or at a path in the body's JSON."""

    header: HeaderName | None = None
    prefix: str | None = None
    body: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Described(Section):
    """How requests are signed by a sender that has no name here."""

    header: HeaderName
    prefix: Annotated[str, Field(max_length=50)] = ""
    algorithm: Literal["sha256", "sha512", "token"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    signed: Annotated[str, Field(min_length=1, max_length=200)] = "{body}"
    timestamp: LocationSection | None = None
    tolerance: Annotated[Duration, Field(gt=0)] = 300_000
    id: LocationSection | None = None


class WebhookSection(Section):
    """A schedule that starts with a request to /hooks/AGENT/SCHEDULE."""

    verify: Literal["standard", "github", "slack", "bearer"] | Described = "standard"
    secret: Secret | Annotated[list[Secret], Field(min_length=1, max_length=5)]
    tolerance: Annotated[Duration, Field(gt=0)] | None = None


class ChatSection(Section):
    """A schedule that starts with a message of a paired person."""

    connector: str | None = None
    match: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    trust: Trust | None = None


class Untrusted(Section):
    """What holds instead for runs that are fed by others' text."""

    tools: Words | None = None
    args: list[str] | None = None
    model: str | None = None
    env: Words | None = None
    max_cost: Annotated[float, Field(ge=0)] | None = None
    timeout: Annotated[Duration, Field(gt=0)] | None = None
    session: Literal["ephemeral", "persistent"] | None = None
    deliver: str | None = None


def as_section(value: Any) -> Any:
    """`chat: true` is a chat of any connector."""
    return {} if value is True else None if value is False else value
