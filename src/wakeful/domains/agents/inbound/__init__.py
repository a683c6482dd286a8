"""What starts agents from outside: webhooks and chat messages, stored before they are answered.

What must stay true:
- a request is stored with the run that it asks for, in one transaction, and answered after it: nothing that was
  accepted is lost by a crash, and nothing starts twice, because a delivery id counts once for 30 days;
- who does not know the secret, or is not paired, starts nothing and learns nothing;
- what came from outside reaches an agent only as data inside a marked block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful.kernel.domain import Domain

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

ID_DAYS_MS = 30 * 86_400_000


def _reads(tx: Transaction, message: Any) -> Callable[[], Any]:
    from wakeful.domains.agents.inbound.messages import read

    return read(tx, message)


def _hears(tx: Transaction, context: Context, message: Any) -> None:
    from wakeful.domains.agents.inbound.messages import hear

    hear(tx, context, message)


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from wakeful.domains.agents.inbound.tables import InboundRequests

    return tx.of(InboundRequests).prune(before, min(before, tx.now - ID_DAYS_MS), limit)


domain = Domain(
    "inbound",
    reads=_reads,
    hears=_hears,
    job_tables=("agent_requests",),
    precious_tables=("agent_requests",),
    prune=_prune,
    id_prefixes={"request": "req"},
    skip_reasons={"queue_full": "as many requests waited as may"},
    start_reasons={"webhook": "its webhook was called", "chat": "a person wrote to it"},
    routes="wakeful.domains.agents.inbound.routes:router",
    open_paths=("/hooks/",),
    commands={"request": "wakeful.domains.agents.inbound.commands:app"},
)
