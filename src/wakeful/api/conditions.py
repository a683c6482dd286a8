"""`If-Match` and `If-None-Match`: a change is made only to what the caller has seen.

A job's entity tag is its revision in quotes. It stands for the definition: where the job stands may change beside it.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from wakeful.api.problems import ApiError
from wakeful.kernel.requests import Condition

IfMatch = Annotated[str | None, Header(alias="If-Match", description='such as "3", or * for any revision')]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", description='such as "3", or *')]

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
MOST = 4000


def etag(revision: int) -> str:
    return f'"{revision}"'


def condition(if_match: str | None, if_none_match: str | None = None) -> Condition:
    """What the headers of a change ask for; 400 for what cannot be read."""
    absent = False
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise ApiError(400, "invalid_condition", "For a change If-None-Match can only be *: make it if it is new.")
        absent = True
    if if_match is None:
        return Condition(absent=absent)
    if if_match.strip() == "*":
        return Condition(exists=True, absent=absent)
    # Weak tags never match: they do not promise that it is the same to the byte.
    revisions = frozenset(
        revision for weak, revision in _tags("If-Match", if_match) if not weak and revision is not None
    )
    return Condition(revisions=revisions, absent=absent)


def unchanged(if_none_match: str | None, revision: int) -> bool:
    """Whether a reader has this revision already."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or any(found == revision for _, found in _tags("If-None-Match", if_none_match))


def _tags(header: str, text: str) -> list[tuple[bool, int | None]]:
    """Each tag: whether it is weak, and the revision it names; None for a tag that is not ours."""
    tags = []
    for part in text[:MOST].split(","):
        found = _TAG.fullmatch(part.strip())
        if found is None:
            raise ApiError(400, "invalid_condition", f'{header} is * or a list of revisions in quotes, such as "3".')
        ours = found[2].isascii() and found[2].isdecimal() and len(found[2]) < 19
        tags.append((found[1] is not None, int(found[2]) if ours else None))
    return tags
