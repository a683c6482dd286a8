"""The keys that every job of a file takes, as a model: for sections whose entries become jobs.

Their values are read by `config.entries`, as those of `jobs` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema, create_model

from wakeful.config.entries import KEYS
from wakeful.config.job_schema import key_schema
from wakeful.config.models import Section

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
