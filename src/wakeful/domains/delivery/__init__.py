"""Deliveries: what should reach a person is stored first, then sent until it is acknowledged or given up.

What must stay true:
- a message is stored in the transaction that causes it, and an attempt is on record before it is made: nothing is lost
  by a crash, and a message that may have arrived twice keeps its id and is marked;
- one connector's messages go out in order, and one that is dead delays its own queue alone;
- secrets of connectors are in no table, log, error or answer.

`enqueue` stores a message in any transaction (see `wakeful.domains.delivery.outbox`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful.domains.delivery.post import Post, PressedButton
from wakeful.errors import InvalidJob
from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind, without_hooks

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

__all__ = [
    "DELIVERY",
    "PUBLIC_URL",
    "FailureSubject",
    "Post",
    "PressedButton",
    "button",
    "connector_for",
    "described",
    "domain",
    "enqueue",
    "explained",
    "has_connectors",
    "next_start_of",
    "node_of",
    "output_text",
    "result_message",
    "role_of",
    "subject_of",
    "touch",
    "work_of",
]

DELIVERY = "delivery"
MOST_WAITING = 10_000  # messages that are counted for the verdict


def enqueue(tx: Transaction, context: Context, post: Post) -> int | None:
    """Store a message with whatever else this transaction writes; its number, or None where it goes nowhere."""
    from wakeful.domains.delivery.outbox import enqueue as store  # loaded with the first message

    return store(tx, context, post)


def button(action: str, on: str, label: str | None = None, **more: Any) -> dict[str, Any]:
    """A button under a message, for `Post(..., extra={"buttons": [...]})`; `on` is an id, or a job's name."""
    from wakeful.domains.delivery.chat.buttons import button as made

    return made(action, on, label, **more)


def has_connectors(tx: Transaction) -> bool:
    """Whether there is anywhere to send messages to."""
    from wakeful.domains.delivery.tables import Outbox

    return bool(tx.of(Outbox).connectors())


def _check(payload: Any) -> None:
    if not isinstance(payload, dict) or not isinstance(payload.get("connector"), str):
        raise InvalidJob("Jobs of kind delivery are made with their connector: add it to connectors in wakeful.yaml.")


def _delivers(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result, *, last: bool) -> None:
    from wakeful.domains.delivery.results import deliver_result

    deliver_result(tx, context, job, run, result, last=last)


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    from wakeful.domains.delivery.sending import rearm

    rearm(tx, context, job, run, result)


def _rearmed(tx: Transaction, _: Context, job: JobDef, state: JobState) -> JobState:
    from wakeful.domains.delivery.sending import look_now

    return look_now(tx, job, state)


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from wakeful.domains.delivery.chat.tables import Chats
    from wakeful.domains.delivery.tables import Outbox

    return tx.of(Outbox).prune(before, limit) + tx.of(Chats).prune(before, limit)


def _thin(tx: Transaction, most: int, limit: int) -> int:
    from wakeful.domains.delivery.tables import Outbox

    return tx.of(Outbox).prune_below(tx.tables.beyond_newest("deliveries", "id", most), limit)


def _of_runs(tx: Transaction, run_ids: Sequence[int]) -> Mapping[int, list[dict[str, Any]]]:
    from wakeful.domains.delivery.views import run_deliveries

    return run_deliveries(tx, run_ids)


def _given_up(tx: Transaction, from_id: int) -> int:
    from wakeful.domains.delivery.tables import Outbox

    return tx.of(Outbox).failed_count(from_id)


def _unsent(tx: Transaction) -> tuple[int, int | None]:
    from wakeful.domains.delivery.tables import Outbox

    return tx.of(Outbox).waiting(MOST_WAITING)


def _released(tx: Transaction) -> None:
    from wakeful.domains.delivery.outbox import release_pending

    release_pending(tx)


domain = Domain(
    "delivery",
    kinds=(
        Kind(
            DELIVERY,
            check_payload=_check,
            admin_only=True,
            internal=True,
            ended=_ended,
            rearmed=_rearmed,
            simulated=without_hooks,
        ),
    ),
    delivers=_delivers,
    released=_released,
    job_tables=("delivery_last",),
    precious_tables=("deliveries",),
    prune=_prune,
    thin=_thin,
    id_prefixes={"delivery": "dlv", "message": "msg"},
    alerts={
        "delivery_failed": "a message could not be delivered",
        "no_connector": "messages wait, and there is nowhere to send them",
        "receiving": "a connector cannot receive messages from people",
    },
    run_deliveries=_of_runs,
    given_up=_given_up,
    unsent=_unsent,
    measures="wakeful.domains.delivery.views:measures",
    parts={"connectors": "wakeful.domains.delivery.registry:ConnectorRegistry"},
    section="connectors",
    settings="wakeful.domains.delivery.configuration:ConnectorsSection",
    install="wakeful.domains.delivery.configuration:install_configured",
    reload="wakeful.domains.delivery.configuration:reload_configured",
    alone="wakeful.domains.delivery.configuration:send_alone",
    routes="wakeful.domains.delivery.routes:router",
    by_id={
        "dlv_": {
            "show": "wakeful.domains.delivery.commands:show_delivery",
            "logs": "wakeful.domains.delivery.commands:show_delivery",
            "cancel": "wakeful.domains.delivery.commands:cancel_message",
            "retry": "wakeful.domains.delivery.commands:requeue_messages",
            "explain": "wakeful.domains.delivery.views:explain_by_id",
        }
    },
    held="wakeful.domains.delivery.outbox:hold_pending",
    commands={
        "delivery": "wakeful.domains.delivery.commands:deliveries",
        "connector": "wakeful.domains.delivery.commands:connectors",
    },
)


#: What other domains may use, and where it is: loaded when it is asked for.
_OFFERED = {
    "FailureSubject": "summary",
    "explained": "summary",
    "output_text": "summary",
    "result_message": "results",
    "described": "summary",
    "next_start_of": "summary",
    "subject_of": "summary",
    "work_of": "summary",
    "connector_for": "outbox",
    "role_of": "registry",
    "touch": "registry",
    "PUBLIC_URL": "results",
    "node_of": "results",
}


def __getattr__(name: str) -> Any:
    if name in _OFFERED:
        return getattr(importlib.import_module(f"wakeful.domains.delivery.{_OFFERED[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
