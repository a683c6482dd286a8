"""Request bodies of `/api/workflows`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wakeful.api.strict import Strict

RUN = "run_1frc87n80sngk"
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
        description="It happened, it did not, or `skip`: go on as if there was nothing to do.", examples=["happened"]
    )
    result: Any = Field(default=None, description="What the mutation returned, where known.", examples=[{"rows": 3}])
    note: Note = None


class MessageIn(Strict):
    """An event that a person publishes."""

    message_id: str = Field(
        min_length=1, max_length=1000, description="An event of a known message id is not made twice.", examples=["17"]
    )
    payload: Any = Field(default=None, description="Any JSON value.", examples=[{"subject": "Hello"}])


class ReasonIn(Strict):
    """Why an input is skipped or worked on again."""

    reason: str = Field(min_length=1, max_length=1000, description="Kept with the input.", examples=["It is spam."])
