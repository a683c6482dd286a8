"""When a schedule runs and how, as it travels: camelCase, with what jobs take beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from wakeful.api import forms
from wakeful.api.strict import Strict

LONGEST_MINUTES = 36_500 * 1440


class Camel(Strict):
    """Field names as the wire has them."""

    model_config = ConfigDict(alias_generator=to_camel)


class Shown(BaseModel):
    """What answers have in common."""

    model_config = ConfigDict(alias_generator=to_camel)


Minutes = Annotated[float, Field(le=LONGEST_MINUTES, allow_inf_nan=False)]
Moment = Annotated[str, StringConstraints(max_length=100)]
Span = Annotated[str, StringConstraints(max_length=20)]
Options = Annotated[
    dict[str, Any] | None, BeforeValidator(forms.whole), WithJsonSchema(forms.nullable(forms.SCHEDULE_OPTIONS))
]
OptionsOut = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]


class Timing(Camel):
    """When: `cron` has an expression, `interval` minutes after each run, `once` a time, `after` a job."""

    model_config = ConfigDict(json_schema_extra=forms.instead(forms.TIMING))

    type: Literal["cron", "interval", "every", "once", "at", "after"]
    expression: Annotated[str, StringConstraints(max_length=1000)] | None = Field(None, examples=["0 9 * * 1-5"])
    interval_minutes: Minutes | None = Field(None, description="not below the server's minimum")
    at: Moment | None = Field(None, examples=["2030-01-01T09:00:00Z"])
    job: Annotated[str, StringConstraints(max_length=200)] | None = None
    on: Annotated[str, StringConstraints(max_length=20)] | None = None
    timezone: Moment | None = Field(None, examples=["Europe/Berlin"])
    anchor: Moment | None = None
    jitter: float | None = None
    stagger: Span | int | float | None = None
    active_hours: dict[str, Any] | None = None
    start: Moment | None = None
    until: Moment | None = None
    max_runs: Annotated[Annotated[int, Field(le=forms.MOST_RUNS)] | None, BeforeValidator(forms.whole)] = None
    except_: list[str] | None = Field(None, alias="except", max_length=1000)

    def to_data(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class TimingOut(Shown):
    """When, as it is stored; the zone only where it is not the server's own."""

    type: str
    expression: str | None = None
    interval_minutes: float | None = None
    at: str | None = None
    job: str | None = None
    on: str | None = None
    timezone: str | None = None
    jitter: float | None = None
    stagger: Any = None
    active_hours: dict[str, Any] | None = None
    start: str | None = None
    until: str | None = None
    max_runs: int | None = None
    except_: list[str] | None = Field(None, alias="except")
