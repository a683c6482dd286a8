"""Checking what a user wants to add or change, before anything touches the store.

Jobs with the trigger `after` are put behind the job that they follow.
"""

from __future__ import annotations

import json
from types import EllipsisType
from typing import Any, Literal, Unpack

from wakeful import ids
from wakeful.errors import InvalidJob, InvalidTrigger
from wakeful.kernel.hooks import Draft
from wakeful.kernel.kinds import Kind, Kinds
from wakeful.kernel.rules.option_fields import JobOptions
from wakeful.kernel.rules.options import changed, from_text, read_options, to_text
from wakeful.kernel.rules.outcome import clean
from wakeful.kernel.rules.policy import trigger_of, trigger_text
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef
from wakeful.triggers import After, Trigger
from wakeful.triggers.base import TimedTrigger
from wakeful.triggers.fields import MOST_RUNS

MAX_PAYLOAD = 1024 * 1024
MAX_NAME = 200
MAX_NOTE = 2_000
MOST_DATES = 1_000
SOURCES = ("file", "cli", "api", "mcp", "code")
_WRITE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode  # made once: `json.dumps` makes one per call
PARTS = ("name", "trigger", "kind", "payload", "owner")
OUTSIDE = ("api", "mcp")  # over the network: its author is not trusted with everything


class NewJob:
    """A job to be added: `NewJob("weekly", Every("7d"), kind="report", payload={"to": "team"}, timeout="10m")`."""

    __slots__ = ("kind", "name", "options", "owner", "payload", "trigger")

    def __init__(
        self,
        name: str,
        trigger: Trigger,
        *,
        kind: str = "job",
        payload: Any = None,
        owner: str | None = None,
        **options: Unpack[JobOptions],
    ) -> None:
        self.name = name
        self.trigger = trigger
        self.kind = kind
        self.payload = payload
        self.owner = owner
        self.options: dict[str, Any] = dict(options)

    def __repr__(self) -> str:
        return f"<NewJob {self.name} {self.trigger!r}>"


def draft(new: NewJob, source: str, kinds: Kinds) -> Draft:
    """The job as it can be stored, or an error that says what is wrong with it."""
    if source not in SOURCES:
        message = f"source is one of {', '.join(SOURCES)}, not {source!r}."
        raise InvalidJob(message)
    options = to_text(read_options(new.options, beside=(*PARTS, "if_exists"))) if new.options else "{}"
    trigger = check_trigger(new.trigger)
    kind = kinds.declared(kinds.for_trigger(trigger, check_name("kind", new.kind)))
    payload = check_payload(from_outside(new.payload, kind) if source in OUTSIDE else new.payload, kind)
    return Draft(
        check_name("name", new.name),
        trigger,
        kind.name,
        payload,
        options,
        _owner(kind, json.loads(payload), new.name, new.owner if new.owner is not None else ...),
        source,
    )


def check_name(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        found = f"{len(value)} of them" if isinstance(value, str) and len(value) > MAX_NAME else f"{value!r:.80}"
        message = f"A job's {field} is a text of 1 to {MAX_NAME} printable characters, not {found}."
        raise InvalidJob(message)
    if value != value.strip():
        message = f"A job's {field} does not begin or end with a space: {value!r}."
        raise InvalidJob(message)
    if field == "name" and ids.decode(value) is not None:
        message = f"{value!r} looks like an id: choose another name."
        raise InvalidJob(message)
    return value


def _owner(kind: Kind, payload: Any, name: str, said: str | EllipsisType | None) -> str | None:
    """Whose a job is: its kind may say so by the payload, and whoever writes it otherwise; `...`: nothing is said."""
    if kind.owned_by is None:
        return None if said is None or said is ... else check_name("owner", said)
    owner = kind.owned_by(payload)
    if said not in (..., owner):
        message = f"{name} is a job of the {kind.name} {owner}, and stays so: leave owner out."
        raise InvalidJob(message)
    return owner


def check_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        message = f"{name} is true or false, not {value!r}."
        raise InvalidJob(message)
    return value


def check_limit(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        message = f"limit is a whole number from 0, not {value!r}."
        raise InvalidJob(message)
    return value


def check_trigger(value: object) -> Trigger:
    if not isinstance(value, Trigger):
        message = f'A trigger is one of Every, Interval, Cron, Once, After ..., such as Every("5m"), not {value!r:.80}.'
        raise InvalidTrigger(message)
    if isinstance(value, TimedTrigger) and len(value.modifiers.days) > MOST_DATES:
        message = f"A trigger has {MOST_DATES} except dates at most, not {len(value.modifiers.days)}."
        raise InvalidTrigger(message, "except_dates")
    if (getattr(value, "max_runs", None) or 0) > MOST_RUNS:  # not every reader of JSON has longer numbers
        raise InvalidTrigger(f"max_runs is {MOST_RUNS} at most.", "max_runs")
    if value.lacks is not None:
        raise InvalidTrigger(value.lacks, "schedule")
    return value


def check_note(note: str | None) -> str | None:
    """What a person says about a job, as it can be stored."""
    given: object = note
    if given is not None and not isinstance(given, str):
        message = f"A note is a text, not {given!r:.100}."
        raise InvalidJob(message)
    if note is not None and len(note) > MAX_NOTE:
        message = f"A note has {MAX_NOTE} characters at most, not {len(note)}."
        raise InvalidJob(message)
    return clean(note) if note else None


def from_outside(payload: Any, kind: Kind) -> Any:
    """A payload that came over the network, as its kind keeps such a one."""
    return payload if kind.from_outside is None else kind.from_outside(payload)


def check_payload(value: object, kind: Kind) -> str:
    """The payload as JSON text; InvalidJob says what its kind does not take."""
    try:
        text = _WRITE(value)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"A payload must be JSON (texts, finite numbers, lists, maps): {error}."
        raise InvalidJob(message) from error
    if len(text) > MAX_PAYLOAD:
        message = (
            f"A payload may have {MAX_PAYLOAD} bytes at most, this one has {len(text)}: store a reference instead."
        )
        raise InvalidJob(message)
    if kind.check_payload is not None:
        kind.check_payload(value)
    return text


def changed_fields(job: JobDef, changes: dict[str, Any], kinds: Kinds) -> dict[str, Any]:
    """What `update_job` was given, checked, as columns of the definition."""
    fields: dict[str, Any] = {}
    options: dict[str, Any] = {}
    others = dict(changes)
    owner = others.pop("owner", ...)
    for key, value in others.items():
        if key in ("name", "kind"):
            fields[key] = check_name(key, value)
        elif key == "trigger":
            fields[key] = check_trigger(value)
        elif key == "payload":
            fields[key] = check_payload(value, Kind(""))
        else:
            options[key] = value
    if "trigger" in changes and from_text(job.options).bounded:
        options.setdefault("bounded", False)  # the author of a trigger sets the trust in it
    kind_name = kinds.for_trigger(fields.get("trigger") or trigger_of(job.trigger), fields.get("kind", job.kind))
    if kind_name != job.kind:
        fields["kind"] = kind_name
    kind = kinds.declared(fields.get("kind", job.kind))
    if "kind" in fields or "payload" in fields:
        check_payload(changes.get("payload", json.loads(job.payload)), kind)
    if owner is not ... or {kind.name, job.kind} & set(kinds.apart()):
        payload = json.loads(fields.get("payload", job.payload))
        fields["owner"] = _owner(kind, payload, fields.get("name", job.name), owner)
    if options:
        fields["options"] = to_text(changed(from_text(job.options), options, beside=(*PARTS, "enabled", "revision")))
    return fields


def follows(job: JobDef) -> bool:
    return isinstance(trigger_of(job.trigger), After)


def chain(tx: Transaction, job: JobDef) -> None:
    """Put an `after` job behind the one it follows; a circle would run forever and is refused."""
    trigger = trigger_of(job.trigger)
    if not isinstance(trigger, After):
        return
    upstream = trigger.job
    parsed = ids.decode(upstream)
    if parsed is not None and (found := tx.jobs.by_id(parsed[1])) is not None:
        upstream = found[0].name
    ahead: str | None = upstream
    seen: set[str] = set()
    while ahead is not None and ahead not in seen:
        if ahead == job.name:
            message = f"{job.name} cannot start after {upstream}: {upstream} itself waits for {job.name}."
            raise InvalidJob(message)
        seen.add(ahead)
        before = tx.jobs.by_name(ahead)
        ahead = tx.jobs.upstream(before[0].id) if before is not None else None
    tx.jobs.chain(upstream, job.id, trigger.on)


_ENDS: dict[str, Literal["success", "failure", "any"]] = {"success": "success", "failure": "failure", "any": "any"}


def rename_in_chains(tx: Transaction, old: str, new: str) -> None:
    """Jobs that start after a renamed one continue starting after it."""
    for job_id, on_end in tx.jobs.chained(old):
        found = tx.jobs.by_id(job_id)
        if found is None:
            continue
        job, state = found
        tx.jobs.define(job._replace(trigger=trigger_text(After(new, on=_ENDS[on_end])), updated_at=tx.now))
        tx.jobs.save([state._replace(revision=state.revision + 1)])
        tx.jobs.unchain(job_id)
        tx.jobs.chain(new, job_id, on_end)
