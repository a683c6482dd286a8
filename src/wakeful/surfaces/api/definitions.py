"""A job as it is written in a request, turned into what the kernel stores. The kernel says what is wrong with it."""

from __future__ import annotations

from typing import Any

from wakeful.domains.command import COMMAND
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.rules import option_fields
from wakeful.kernel.rules import options as kernel_options
from wakeful.routing.json_schema import WHEN
from wakeful.routing.models import Written
from wakeful.routing.problems import ApiError
from wakeful.triggers import Trigger
from wakeful.triggers.data import trigger_as_written

OPTIONS = tuple(field.name for field in option_fields.OPTIONS)
NOT_FOR_CALLERS = frozenset(field.name for field in option_fields.INTERNAL)


def new_job(written: Written, name: str) -> NewJob:
    """The whole job; what was not said is at its default."""
    trigger = read_trigger(written)
    if trigger is None:
        raise ApiError(400, "invalid_trigger", 'A job needs a trigger, such as "trigger": {"every": "6h"}.')
    kind, payload = _work(written)
    options = {key: value for key, value in read_options(written).items() if value is not None}
    return NewJob(name, trigger, kind=kind or "job", payload=payload, owner=written.owner, **options)


def changes(written: Written) -> dict[str, Any]:
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


def read_trigger(written: Written) -> Trigger | None:
    """The trigger from either place; None if none was given."""
    data = {name: value for name in WHEN if (value := getattr(written, name)) is not None}
    if written.trigger is not None:
        if data:
            sentence = f"The trigger is given twice: in trigger, and by {next(iter(data))}."
            raise ApiError(400, "invalid_trigger", sentence)
        return trigger_as_written(written.trigger)
    return trigger_as_written(data) if data else None


def read_options(written: Written) -> dict[str, Any]:
    """Every given option; one beside the other fields takes precedence over a nested one."""
    nested = {key: value for key, value in (written.options or {}).items() if key not in NOT_FOR_CALLERS}
    flat = {name: getattr(written, name) for name in OPTIONS if name in written.model_fields_set}
    kernel_options.read_options({**nested, **flat})  # mistakes are reported before they go anywhere
    return {**nested, **flat}


def _work(written: Written) -> tuple[str | None, Any]:
    """What kind of work with what payload."""
    if written.command is None:
        return written.kind, written.payload
    if written.kind not in (None, COMMAND):
        raise ApiError(400, "invalid_job", f"A job with a command is of kind {COMMAND}, not {written.kind!r:.80}.")
    if written.payload is not None and not isinstance(written.payload, dict):
        raise ApiError(400, "invalid_job", 'Beside a command, payload is a map such as {"cwd": "/srv"}.')
    return COMMAND, {**(written.payload or {}), "argv": written.command}
