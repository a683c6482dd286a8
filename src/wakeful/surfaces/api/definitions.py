"""A job as it is written in a request, turned into what the kernel stores. The kernel says what is wrong with it.

`If-Match` and `If-None-Match`: a change is made only to what the caller has seen. A job's entity tag is its revision in
quotes. It stands for the definition: where the job stands may change besides it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import Header
from pydantic import WithJsonSchema

from wakeful.domains.command import COMMAND
from wakeful.kernel.actions.authorized import Condition
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.rules import option_fields
from wakeful.kernel.rules import options as kernel_options
from wakeful.routing.json_schema import WHEN
from wakeful.routing.models import JobFields
from wakeful.routing.problems import ApiError
from wakeful.triggers import Trigger
from wakeful.triggers.fields import trigger_as_written

OPTIONS = tuple(field.name for field in option_fields.OPTIONS)
NOT_FOR_CALLERS = frozenset(field.name for field in option_fields.INTERNAL)


def new_job(written: JobFields, name: str) -> NewJob:
    """The whole job; what was not said is at its default."""
    trigger = read_trigger(written)
    if trigger is None:
        raise ApiError(400, "invalid_trigger", 'A job needs a trigger, such as "trigger": {"every": "6h"}.')
    kind, payload = _work(written)
    options = {key: value for key, value in read_options(written).items() if value is not None}
    return NewJob(name, trigger, kind=kind or "job", payload=payload, owner=written.owner, **options)


def changes(written: JobFields) -> dict[str, Any]:
    """Only the given fields, as `update_job` takes them."""
    said = written.model_fields_set
    found: dict[str, Any] = {name: getattr(written, name) for name in ("name", "kind", "enabled") if name in said}
    for name, value in found.items():
        if value is None:
            raise ApiError(422, "invalid", f"{name} cannot be null: leave it out to keep it as it is.")
    for name in ("payload", "owner"):
        if name in said:
            found[name] = getattr(written, name)
    if written.command is not None:
        found["kind"], found["payload"] = _work(written)
    trigger = read_trigger(written)
    if trigger is not None:
        found["trigger"] = trigger
    return {**found, **read_options(written)}


def read_trigger(written: JobFields) -> Trigger | None:
    """The trigger from either place; None if none was given."""
    data = {name: value for name in WHEN if (value := getattr(written, name)) is not None}
    if written.trigger is not None:
        if data:
            sentence = f"The trigger is given twice: in trigger, and by {next(iter(data))}."
            raise ApiError(400, "invalid_trigger", sentence)
        return trigger_as_written(written.trigger)
    return trigger_as_written(data) if data else None


def read_options(written: JobFields) -> dict[str, Any]:
    """Every given option; one next to the other fields takes precedence over a nested one."""
    nested = {key: value for key, value in (written.options or {}).items() if key not in NOT_FOR_CALLERS}
    flat = {name: getattr(written, name) for name in OPTIONS if name in written.model_fields_set}
    kernel_options.read_options({**nested, **flat})  # mistakes are reported before they go anywhere
    return {**nested, **flat}


def _work(written: JobFields) -> tuple[str | None, Any]:
    """What kind of work with what payload."""
    if written.command is None:
        return written.kind, written.payload
    if written.kind not in (None, COMMAND):
        raise ApiError(400, "invalid_job", f"A job with a command is of kind {COMMAND}, not {written.kind!r:.80}.")
    if written.payload is not None and not isinstance(written.payload, dict):
        raise ApiError(400, "invalid_job", 'Beside a command, payload is a map such as {"cwd": "/srv"}.')
    return COMMAND, {**(written.payload or {}), "argv": written.command}


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
