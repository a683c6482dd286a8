"""The schema of `jobs` in `wakeful.yaml`, for editors. `entries` reads the jobs.

As a model, for sections whose entries become jobs: the keys that every job of a file takes. Their values are read by
`config.entries`, as those of `jobs` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import GetJsonSchemaHandler, RootModel, WithJsonSchema, create_model
from pydantic_core import CoreSchema

from wakeful.config.entries import KEYS, forms
from wakeful.config.models import Section
from wakeful.fields import Schema
from wakeful.kernel.rules.option_fields import OPTIONS
from wakeful.triggers.fields import FIELDS, ZONE

_TEXT: Schema = {"type": "string"}
_AS_TYPED: dict[str, Schema] = {
    "timezone": {**ZONE, "description": "The time zone of the schedule."},
    "enabled": {"type": "boolean", "description": "Whether the job is switched on."},
    "owner": {**_TEXT, "description": "The agent or team the job belongs to."},
    "notes": {**_TEXT, "description": "A note for people."},
}


def key_schema(key: str) -> Schema:
    """The JSON Schema of a key that every job takes."""
    return _SCHEMAS[key]


def _in_files(schema: Schema) -> Schema:
    """A time needs no offset in a file, hours are also written `09:00-17:00`, and percent as `5%`."""
    if schema.get("format") == "date-time":
        return _TEXT
    return {"anyOf": [schema, _TEXT]} if schema.get("type") in ("object", "number") else schema


_SCHEMAS = (
    {field.name: {**_in_files(field.schema), "description": field.help} for field in FIELDS}
    | {field.name: field.described for field in OPTIONS}
    | _AS_TYPED
)


def job_schema() -> Schema:
    """The JSON Schema of one job."""
    own = {field.name: field.described for form in forms().values() for field in form.fields}
    keys = {key: key_schema(key) for key in KEYS}
    return {"type": "object", "additionalProperties": False, "properties": {**keys, **own}}


class JobsSection(RootModel[Any]):
    """Jobs by name."""

    root: Any = None

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        """What `wakeful schema` prints."""
        return {"type": "object", "description": "Jobs by name.", "additionalProperties": job_schema()}


OWNED = ("owner",)  # said by the section itself

if TYPE_CHECKING:

    class JobKeys(Section):
        """A section that takes what a job takes."""

else:
    JobKeys = create_model(
        "JobKeys",
        __base__=Section,
        __doc__="A section that takes what a job takes.",
        **{key: (Annotated[Any, WithJsonSchema(key_schema(key))], None) for key in KEYS if key not in OWNED},
    )
