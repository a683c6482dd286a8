"""When a schedule runs and how, as it travels: camelCase, with what jobs take besides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel

from wakeful.domains.agents.timing import MODIFIERS
from wakeful.fields import Schema
from wakeful.routing import json_schema
from wakeful.routing.strict import Strict
from wakeful.triggers.fields import BESIDE, RHYTHMS

LONGEST_MINUTES = 36_500 * 1440


class Camel(Strict):
    """Field names as the wire has them."""

    model_config = ConfigDict(alias_generator=to_camel)


class AnswerModel(BaseModel):
    """What answers have in common."""

    model_config = ConfigDict(alias_generator=to_camel)


Options = Annotated[
    dict[str, Any] | None,
    BeforeValidator(json_schema.whole),
    WithJsonSchema(json_schema.nullable(json_schema.SCHEDULE_OPTIONS)),
]
OptionsOut = Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
Minutes = Annotated[float, Field(le=LONGEST_MINUTES, allow_inf_nan=False)]
_VALUES = {rhythm.value: rhythm.field.schema for rhythm in RHYTHMS if rhythm.value not in (None, "interval")}
_BESIDE = {name: field.schema for name, field in BESIDE.items() if name in MODIFIERS.values()}


def _optional(schemas: Mapping[Any, Schema]) -> dict[str, Any]:
    """A field of this name for each, which may be left out."""
    kinds = {name: json_schema.plain_type(schema) for name, schema in schemas.items()}
    return {name: (Annotated[kind | None, BeforeValidator(json_schema.whole)], None) for name, kind in kinds.items()}


class _Timing(Camel):
    """When: `cron` has an expression, `interval` minutes after each run, `once` a time, `after` a job, `when` words."""

    model_config = ConfigDict(json_schema_extra=json_schema.instead(json_schema.TIMING))

    type: Literal["cron", "interval", "every", "once", "at", "after", "when"]
    interval_minutes: Minutes | None = Field(None, description="not below the server's minimum")

    def to_data(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class _TimingOut(AnswerModel):
    """When, as it is stored; the zone only where it is not the server's own."""

    type: str
    interval_minutes: float | None = None


if TYPE_CHECKING:

    class Timing(_Timing):
        """When, as a request says it."""

    class TimingOut(_TimingOut):
        """When, as an answer says it."""

else:
    _SAID = {**_VALUES, "timezone": BESIDE["tz"].schema, **_BESIDE}
    Timing = create_model("Timing", __base__=_Timing, __doc__=_Timing.__doc__, **_optional(_SAID))
    del _SAID["anchor"]  # when it was made, unless given
    del _SAID["words"]  # which are stored as what they mean
    TimingOut = create_model("TimingOut", __base__=_TimingOut, __doc__=_TimingOut.__doc__, **_optional(_SAID))
