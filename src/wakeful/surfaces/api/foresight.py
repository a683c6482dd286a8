"""`/api/simulate`: what the jobs will do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from wakeful.errors import IntervalParseError, InvalidSetting, InvalidTrigger
from wakeful.foresight.beside import simulate_beside
from wakeful.foresight.question import SimulationRequest
from wakeful.foresight.simulating import MOST_RUNS
from wakeful.routing.auth import Operator
from wakeful.routing.idempotency import answer, respond
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import read_moment

router = APIRouter(prefix="/api")

NOW = "2026-01-29T09:00:00Z"
MOST_S = 60
MOST_MS = 31 * 86_400_000

Span = Annotated[str, Query(alias="for", max_length=100, description="how long, at most 31d", examples=["7d"])]
Begin = Annotated[
    str | None, Query(alias="from", max_length=100, description="when it begins; else now", examples=[NOW])
]
Seed = Annotated[int, Query(ge=0, le=2**31 - 1, description="decides everything random", examples=[1])]


class SimulatedRunOut(BaseModel):
    """One run of a simulation."""

    job: str = Field(description="The job's name.", examples=["backup"])
    slot: datetime | None = Field(description="The time it was scheduled for.", examples=[NOW])
    started_at: datetime = Field(description="When it started.", examples=[NOW])
    duration_ms: int | None = Field(description="How long it took; null if it had not ended.", examples=[1000])
    waited_ms: int = Field(description="How long it was due before it started.", examples=[0])
    outcome: str | None = Field(description="How it ended; null if it had not.", examples=["success"])
    reason: str = Field(description="Why it started.", examples=["schedule"])


class SimulatedJobOut(BaseModel):
    """What one job did."""

    name: str = Field(description="The job's name.", examples=["backup"])
    runs: int = Field(description="How often it ran.", examples=[7])
    skipped: dict[str, int] = Field(description="How many of its times led to no run, by reason.", examples=[{}])
    longest_wait_ms: int = Field(description="How long a run was due at most before it started.", examples=[0])


class SimulatedLaneOut(BaseModel):
    """How full one lane was."""

    name: str = Field(description="The lane's name.", examples=["gpu"])
    size: int | None = Field(description="How many runs it holds; null if nothing limits it.", examples=[1])
    busiest: int = Field(description="How many runs it held at most.", examples=[1])
    full_ms: int = Field(description="For how long it was full.", examples=[0])


class NoteOut(BaseModel):
    """Something to know, with what would mend it."""

    kind: str = Field(description="Of what kind it is.", examples=["herd"])
    job: str | None = Field(description="The job it is about; null if it is about several.", examples=["backup"])
    at: datetime | None = Field(description="When.", examples=[NOW])
    text: str = Field(description="What, and what would mend it.", examples=["backup never runs: …"])


class CostOut(BaseModel):
    """What the runs cost together, as far as past runs say."""

    expected: float = Field(description="The mean.", examples=[1.4])
    low: float = Field(description="Nine of ten times it is more than this …", examples=[1.2])
    high: float = Field(description="… and less than this.", examples=[1.6])


class SimulationOut(BaseModel):
    """What the jobs will do."""

    begins: datetime = Field(alias="from", description="When it begins.", examples=[NOW])
    to: datetime = Field(description="When it ends.", examples=[NOW])
    seed: int = Field(description="What decided everything random.", examples=[1])
    runs: list[SimulatedRunOut] = Field(description="All runs, in the order they ended.", examples=[[]])
    jobs: list[SimulatedJobOut] = Field(description="All jobs.", examples=[[]])
    lanes: list[SimulatedLaneOut] = Field(description="All lanes.", examples=[[]])
    notes: list[NoteOut] = Field(description="What to know, the earliest first.", examples=[[]])
    cost: CostOut = Field(
        description="What the runs cost together.", examples=[{"expected": 1.4, "low": 1.2, "high": 1.6}]
    )
    truncated: bool = Field(
        description=f"Whether it ended early, after {MOST_RUNS:,} runs or {MOST_S} s.", examples=[False]
    )


@router.get(
    "/simulate",
    operation_id="simulate",
    response_model=SimulationOut,
    responses=answers(400),
    summary="What the jobs will do: the real engine in virtual time on a copy, without effects",
    tags=["stats"],
)
async def get_simulation(
    scheduler: Sched, _: Operator, span: Span = "7d", begins: Begin = None, seed: Seed = 1
) -> Response:
    start = None if begins is None else _moment(begins)
    question = SimulationRequest(_length(span), start, seed, most_runs=MOST_RUNS)
    runs = list[object]()
    done = await simulate_beside(scheduler, question, lambda run: runs.append(run.to_dict()), most_s=MOST_S)
    return respond(answer(200, {**done.head(), "runs": runs, **done.tail()}))


def _moment(text: str) -> int:
    try:
        return read_moment(text, "from")
    except InvalidTrigger as error:
        raise InvalidSetting(str(error)) from error


def _length(text: str) -> int:
    try:
        length = interval_ms(text)
    except IntervalParseError as error:
        raise InvalidSetting(f"for is a duration such as 7d: {error}.") from error
    if not 0 < length <= MOST_MS:
        raise InvalidSetting(f"for is more than nothing and at most 31d, not {text}.")
    return length
