"""The schema of `jobs` in `wakeful.yaml`, for editors. `entries` reads the jobs."""

from __future__ import annotations

from typing import Any

from pydantic import GetJsonSchemaHandler, RootModel
from pydantic_core import CoreSchema

from wakeful.fleet.entries import COMMON, MODIFIERS, OPTIONS, RHYTHMS, forms

_TEXT, _TRUTH, _WHOLE = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
_DURATION = {"type": ["string", "number"]}
_SCHEMAS: dict[str, Any] = {
    **dict.fromkeys(("cron", "at", "after", "anchor", "start", "until", "timezone", "owner", "notes"), _TEXT),
    **dict.fromkeys(("every", "interval", "stagger", "timeout", "error_span"), _DURATION),
    **dict.fromkeys(("manual", "enabled", "approval"), _TRUTH),
    **dict.fromkeys(("max_runs", "max_errors", "priority"), _WHOLE),
    "on": {"enum": ["success", "failure", "any"]},
    "except": {"type": "array", "items": _TEXT},
    "overlap": {"enum": ["skip", "queue", "cancel_other"]},
    "backoff": {"type": "array", "items": _DURATION},
    "lanes": {"type": "object", "additionalProperties": _WHOLE},
    "labels": {"type": "array", "items": _TEXT},
    "deliver": {
        "anyOf": [
            _TEXT,
            {
                "type": "object",
                "properties": {"to": _TEXT, "on": {"enum": ["any", "success", "failure", "change"]}},
                "required": ["to"],
                "additionalProperties": False,
            },
        ]
    },
}


def job_schema() -> dict[str, Any]:
    """The JSON Schema of one job."""
    own = {key: schema for _, form in forms().values() for key, schema in form.schema.items()}
    keys = {key: _SCHEMAS.get(key, {}) for key in (*RHYTHMS, *MODIFIERS, *COMMON, *OPTIONS)}
    return {"type": "object", "additionalProperties": False, "properties": {**keys, **own}}


class Jobs(RootModel[Any]):
    """Jobs by name."""

    root: Any = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        """What `wakeful schema` prints."""
        return {"type": "object", "description": "Jobs by name.", "additionalProperties": job_schema()}
