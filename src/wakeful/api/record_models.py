"""The shapes of what is answered about the whole: the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class VerdictOut(BaseModel):
    """Whether all is well, in one sentence."""

    state: Literal["unsure", "stalled", "needs_you", "behind", "empty", "quiet", "well"] = Field(
        description="What the sentence says, as a word."
    )
    well: bool = Field(description="Whether all is well; never true when that is not known.", examples=[True])
    sentence: str = Field(
        description="The worst that is so, for people.", examples=["All well. 210 runs since midnight; next in 38s."]
    )
