"""The schema of `jobs` in `wakeful.yaml`, for editors. `entries` reads the jobs."""

from __future__ import annotations

from typing import Any

from pydantic import GetJsonSchemaHandler, RootModel
from pydantic_core import CoreSchema

from wakeful.fields import DURATION
from wakeful.fleet.entries import KEYS, forms
from wakeful.kernel.rules.option_fields import OPTIONS

_TEXT, _TRUTH = {"type": "string"}, {"type": "boolean"}
_SCHEMAS: dict[str, Any] = {
    **dict.fromkeys(("cron", "at", "after", "anchor", "start", "until", "timezone", "owner", "notes"), _TEXT),
    **dict.fromkeys(("every", "interval", "stagger"), DURATION),
    **dict.fromkeys(("manual", "enabled"), _TRUTH),
    "max_runs": {"type": "integer"},
    "on": {"enum": ["success", "failure", "any"]},
    "except": {"type": "array", "items": _TEXT},
    **{field.name: {**field.schema, "description": field.help} for field in OPTIONS},
}


def key_schema(key: str) -> dict[str, Any]:
    """The JSON Schema of a key that every job takes."""
    return dict(_SCHEMAS.get(key, {}))


def job_schema() -> dict[str, Any]:
    """The JSON Schema of one job."""
    own = {key: schema for _, form in forms().values() for key, schema in form.schema.items()}
    keys = {key: key_schema(key) for key in KEYS}
    return {"type": "object", "additionalProperties": False, "properties": {**keys, **own}}


class Jobs(RootModel[Any]):
    """Jobs by name."""

    root: Any = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        """What `wakeful schema` prints."""
        return {"type": "object", "description": "Jobs by name.", "additionalProperties": job_schema()}
