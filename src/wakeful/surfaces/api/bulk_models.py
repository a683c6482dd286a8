"""Models of requests about many jobs, and of what became of them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakeful.routing import json_schema
from wakeful.routing.models import MAX_NOTE, Status
from wakeful.routing.strict import Strict

MOST_IDS = 10_000


class Matching(Strict):
    """Jobs by what they are."""

    kind: str | None = Field(None, max_length=1000)
    owner: str | None = Field(None, max_length=1000)
    source: str | None = Field(None, max_length=1000)
    status: Status | None = None
    enabled: bool | None = None
    q: str | None = Field(None, max_length=1000)


class ManyJobs(Strict):
    """Which jobs: exactly one of `ids` (or names), `filter` and `all`."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            json_schema.one_of,
            words=("ids", "filter", "all"),
            examples=[{"filter": {"kind": "report"}, "note": "maintenance"}],
        )
    )

    ids: list[Annotated[str, Field(max_length=1000)]] | None = Field(None, max_length=MOST_IDS)
    filter: Matching | None = None
    all: Literal[True] | None = None
    note: str | None = Field(None, max_length=MAX_NOTE)


class PreviewJobs(ManyJobs):
    """Which jobs, and what would be done to them."""

    model_config = ConfigDict(
        json_schema_extra=partial(
            json_schema.one_of,
            words=("ids", "filter", "all"),
            examples=[{"filter": {"kind": "report"}, "do": "pause"}],
        )
    )

    do: Literal["run", "pause", "resume"]


class ManyDone(BaseModel):
    """What became of many jobs."""

    count: int
    names: list[str]
    unchanged: list[str]
    refused: dict[str, str]


class ManyPreview(BaseModel):
    """What would become of many jobs; `says` has what else will happen, or will not."""

    count: int
    unchanged: int
    refused: dict[str, str]
    says: list[str]
