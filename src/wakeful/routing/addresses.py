"""Names in addresses: `/api/jobs/backup%2Fdaily` is about the job `backup/daily`.

A server decodes the path before the routes see it, and a slash that belongs to a name would then part the path. So it
passes the routes as a character that no name can contain, and is a slash again in what a route is given.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import Scope

from wakeful.domains import domains

#: Where the rest of the path is the caller's right, and the body anything.
OPEN_PATHS = tuple(path for domain in domains() for path in domain.open_paths)
#: Where the beginning of a body counts, so many bytes of it, and the rest is of no importance.
CUT_PATHS = {path: most for domain in domains() for path, most in domain.cut_paths.items()}
_SLASH = "\ufdd0"  # not a character, and so in no name


def keep_slashes(scope: Scope) -> Scope:
    """The request with a path in which only its own slashes part it."""
    raw = scope.get("raw_path")
    if not raw or b"%2f" not in raw.lower():
        return scope
    parts = raw.decode("ascii", "replace").partition("?")[0].split("/")
    return {**scope, "path": "/".join(unquote(part).replace("/", _SLASH) for part in parts)}


def as_sent(name: str) -> str:
    """A name in a path, as it was sent."""
    return name.replace(_SLASH, "/")


AS_SENT = AfterValidator(as_sent)
"""For a parameter of a path: a name in it, as it was sent. After `Path`, whose limits are for texts."""

JobRef = Annotated[str, Path(max_length=1000, description="a job's id or name"), AS_SENT]
