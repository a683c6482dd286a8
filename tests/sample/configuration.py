"""`letters:` of wakeful.yaml, and what a server does with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tests.sample import LETTER
from tests.sample.tables import Letters
from wakeful.config.models import Section

if TYPE_CHECKING:
    from wakeful import Scheduler


class LetterSettings(Section):
    """Settings of the post office."""

    stamps: Annotated[int, Field(ge=0)] = 0


def install(scheduler: Scheduler, settings: LetterSettings, server: Any) -> None:
    @scheduler.on_job_due(LETTER)
    async def deliver(run: Any) -> dict[str, Any]:
        if run.payload["to"] == "nobody":
            raise ValueError("there is no such person")
        return {"to": run.payload["to"], "left": run.payload["stamp"]}

    @scheduler.on_job_due("post")
    async def buy(run: Any) -> int:
        return await scheduler.transact(lambda tx, _: tx.of(Letters).buy(settings.stamps))
