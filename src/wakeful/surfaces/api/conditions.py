"""`If-Match` and `If-None-Match`: a change is made only to what the caller has seen.

A job's entity tag is its revision in quotes. It stands for the definition: where the job stands may change beside it.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header
from pydantic import WithJsonSchema

from wakeful.kernel.actions.authorized import Condition
from wakeful.routing.problems import ApiError

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_TAGS = re.compile(rf"\s*{_TAG.pattern}(?:\s*,\s*{_TAG.pattern})*\s*")
_ONE = r'(W/)?"[!#-~]*"'
_LIST = {
    "anyOf": [{"type": "string", "const": "*"}, {"type": "string", "pattern": rf"^{_ONE}( *, *{_ONE})*$"}],
    "examples": ["*"],
}
MOST = 4000

IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description='such as "3", or * for any revision'),
    WithJsonSchema(_LIST),
]
IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", description='such as "3", or *'),
    WithJsonSchema(_LIST),
]
IfNew = Annotated[
    str | None,
    Header(alias="If-None-Match", description="*: make it only if there is none"),
    WithJsonSchema({"type": "string", "const": "*"}),
]


def condition(if_match: str | None, if_none_match: str | None = None) -> Condition:
    """What the headers of a change ask for; 400 for what cannot be read."""
    absent = False
    if if_none_match is not None:
        if if_none_match.strip() != "*":
            raise ApiError(
                400,
                "invalid_condition",
                "On a change, If-None-Match can only be *: create the job only if it does not exist.",
            )
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
    if len(text) > MOST or _TAGS.fullmatch(text) is None:
        raise ApiError(400, "invalid_condition", f'{header} is * or a list of revisions in quotes, such as "3".')
    return [(weak != "", int(tag) if _is_ours(tag) else None) for weak, tag in _TAG.findall(text)]


def _is_ours(tag: str) -> bool:
    return tag.isascii() and tag.isdecimal() and len(tag) < 19
