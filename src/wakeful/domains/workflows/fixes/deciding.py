"""What becomes of a correction, one transaction per step: asked, answered, accepted or refused, applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.fixes.hook import LIMIT_S, FixRequest, NoAnswer
from wakeful.domains.workflows.fixes.tables import OPEN, Fixes, FixRow
from wakeful.domains.workflows.issues import alert_about
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.timing import MAX_FIXES
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.rules.outcome import clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

PATIENCE_MS = int(LIMIT_S * 1000) + 60_000
BY_ITSELF = "auto_fix_apply"
DECIDED_BY_PERSON = ("none", "proposed", "refused")


class WorkflowCode(NamedTuple):
    """The code that a node has of a workflow."""

    version: str
    files: Mapping[str, str]
    folder: str | None = None
    applies: bool = False  # without asking a person


class Ask(NamedTuple):
    """A correction to be asked for, and with what."""

    fix_id: int
    request: FixRequest


class Apply(NamedTuple):
    """A correction to be deployed."""

    fix: FixRow


def how_stuck(tx: Transaction, name: str) -> str | None:
    """None where no failure of its code stops the workflow; `person` where one decides, else `hook`."""
    row = tx.of(WorkflowVerbs).get(name)
    if row is None or row.issue != "logic" or row.removed_at is not None:
        return None
    latest = tx.of(Fixes).latest(name)
    handler = tx.of(WorkflowVerbs).handler(name, row.issue_handler or "")
    if latest is not None and latest.status in ("asked", "accepted"):
        return "hook"
    is_answered = latest is not None and latest.run_id == row.issue_run and latest.status in DECIDED_BY_PERSON
    return "person" if is_answered or handler is None or handler.fixes >= MAX_FIXES else "hook"


def next_step(tx: Transaction, context: Context, name: str, code: WorkflowCode) -> Ask | Apply | None:
    """What this node does about a workflow whose code failed; None: nothing now."""
    tx.of(WorkflowVerbs).lock_jobs(name)
    row = tx.of(WorkflowVerbs).lock(name)
    if row is None or row.issue != "logic" or row.issue_run is None or row.version != code.version:
        return None
    handler = tx.of(WorkflowVerbs).handler(name, row.issue_handler or "")
    latest = tx.of(Fixes).latest(name)
    if handler is None:
        return None
    if latest is not None and latest.status == "accepted":
        return Apply(latest)
    if latest is not None and latest.status == "asked" and not _was_cut_off(tx, context, latest):
        return None
    if latest is not None and latest.status == "asked":
        _end(tx, context, latest, "failed", "the process that asked is gone")
    elif latest is not None and latest.run_id == row.issue_run and latest.status in DECIDED_BY_PERSON:
        return None  # a person decides
    return _begin(tx, context, row, handler, code=code) if handler.fixes < MAX_FIXES else None


def _was_cut_off(tx: Transaction, context: Context, fix: FixRow) -> bool:
    """Whether the process that asked has ended, or must have given up by now."""
    if fix.node == context.id:
        return False
    if tx.exclusive or tx.now > fix.at + PATIENCE_MS:
        return True
    node = tx.nodes.get(fix.node)
    return node is None or node.stopped_at is not None or node.taken_by is not None


def _begin(
    tx: Transaction, context: Context, row: WorkflowRow, handler: HandlerRow, *, code: WorkflowCode
) -> Ask | None:
    attempt = tx.of(WorkflowVerbs).run(row.issue_run or 0)
    if attempt is None:
        return None
    number = handler.fixes + 1
    fix = FixRow(
        id=context.new_id(), workflow=row.name, handler=handler.name, run_id=attempt.id, version=row.version,
        number=number, status="asked", node=context.id, at=tx.now, ended_at=None,
        before=json.dumps(dict(code.files), ensure_ascii=False),
    )  # fmt: skip
    tx.of(Fixes).add(fix)
    tx.of(WorkflowVerbs).change_handler(row.name, handler.name, fixes=number)
    _announce(tx, row.name, "fix_asked", fix.id)
    error, _, trace = (row.issue_message or "").partition("\n")
    request = FixRequest(
        row.name, handler.name, ids.run_text(attempt.id), attempt.phase, number, row.version, error, trace,
        dict(code.files), code.folder,
    )  # fmt: skip
    return Ask(fix.id, request)


def answered(
    tx: Transaction,
    context: Context,
    fix_id: int,
    *,
    files: Mapping[str, str] | None,
    made: str | None,
    note: str | None,
    applies: bool,
) -> None:
    """Keep the hook's answer; without `files` there was none. A person decides unless `applies`.

    `made`: the version it would be, where that is known before it is loaded.
    """
    fix = _locked(tx, fix_id)
    if fix is None or fix.status != "asked":
        return  # a new version came first
    if files is None:
        _end(tx, context, fix, "none", note)
        return
    text = json.dumps(dict(files), ensure_ascii=False)
    who = BY_ITSELF if applies else None
    status = "accepted" if applies else "proposed"
    tx.of(Fixes).change(
        fix.id, status=status, ended_at=tx.now, files=text, made=made, who=who, note=clean(note) if note else None
    )
    _announce(tx, fix.workflow, f"fix_{status}", fix.id)
    if not applies:
        said = f"a correction of {fix.handler} waits for your approval"
        alert_about(tx, context, fix.workflow, said, kind="correction", run=fix.run_id)


def loaded(tx: Transaction, fix_id: int, made: str) -> None:
    """An accepted correction was loaded: the version it is, by which its deployment is recognized."""
    fix = _locked(tx, fix_id)
    if fix is None or fix.status != "accepted":
        raise NoAnswer("a new version came first")
    tx.of(Fixes).change(fix.id, made=made)


def failed(tx: Transaction, context: Context, fix_id: int, why: str) -> None:
    """There is no usable answer."""
    fix = _locked(tx, fix_id)
    if fix is not None and fix.status in OPEN:
        _end(tx, context, fix, "failed", why)


def _end(tx: Transaction, context: Context, fix: FixRow, status: str, note: str | None) -> None:
    tx.of(Fixes).change(fix.id, status=status, ended_at=tx.now, note=clean(note)[:2000] if note else None)
    _announce(tx, fix.workflow, f"fix_{status}", fix.id)
    if status == "none" or fix.number >= MAX_FIXES:
        row = tx.of(WorkflowVerbs).get(fix.workflow)
        said = (row.issue_message or "").partition("\n")[0] if row is not None and row.issue == "logic" else ""
        if said:
            alert_about(tx, context, fix.workflow, said, kind="logic", run=fix.run_id)


def proposed_for(tx: Transaction, name: str, run_id: int) -> FixRow | None:
    """The correction of that run's code that waits for a person."""
    latest = tx.of(Fixes).latest(name)
    return latest if latest is not None and (latest.status, latest.run_id) == ("proposed", run_id) else None


def decide(tx: Transaction, name: str, fix: FixRow, *, accepted: bool, who: str) -> None:
    """A person approves or rejects a correction."""
    current = _locked(tx, fix.id)
    if current is None or current.status != "proposed":
        message = f"{ids.encode('fix', fix.id)} is {current.status if current else 'gone'}: there is nothing to decide."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "decided"})
    status = "accepted" if accepted else "refused"
    tx.of(Fixes).change(fix.id, status=status, who=clean(who)[:200])
    _announce(tx, name, f"fix_{status}", fix.id)


def lapse(tx: Transaction, name: str, version: str | None = None) -> None:
    """Another version is deployed, or a person tries again: the correction is applied with it, or not needed."""
    latest = tx.of(Fixes).latest(name)
    if latest is not None and latest.status in OPEN:
        done = version is not None and latest.made == version
        tx.of(Fixes).change(latest.id, status="applied" if done else "lapsed", ended_at=tx.now)


def _locked(tx: Transaction, fix_id: int) -> FixRow | None:
    fix = tx.of(Fixes).get(fix_id)
    if fix is not None:
        tx.of(WorkflowVerbs).lock(fix.workflow)
        fix = tx.of(Fixes).get(fix_id)
    return fix


def _announce(tx: Transaction, workflow: str, what: str, fix_id: int) -> None:
    tx.events.emit("workflow", {"type": what, "workflow": workflow, "fix_id": fix_id})
