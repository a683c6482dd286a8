"""The session in which a run of an agent goes on: found when it starts, stored as soon as it is seen, kept at its end.

What must stay true: a run that was cut off continues in the session it had; what a person forgot meanwhile stays
forgotten; a run that was taken over changes nothing any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.agents.fencing import holds
from wakeful.domains.agents.naming import session_name
from wakeful.domains.agents.runners.spec import preset_of, program_of
from wakeful.domains.agents.session_lanes import chat_of
from wakeful.domains.agents.tables import AgentSession, AgentTables
from wakeful.kernel.actions.run_tokens import known_token, run_token

if TYPE_CHECKING:
    from wakeful.domains.agents.runners.turn import Reply
    from wakeful.kernel.model.run import Run
    from wakeful.store.interface import Transaction


class StoredSession(NamedTuple):
    """What is kept for a run: its session, its name and state, and its token."""

    run_id: int
    name: str
    session: AgentSession | None
    token: str | None = None
    is_stored: bool = False  # unless a person forgot it since


def kept_for(tx: Transaction, run_id: int, job: str, payload: dict[str, Any]) -> StoredSession:
    """The session a run of a job continues in; of an ephemeral one, that of the run it recovers."""
    policy = payload.get("session", "persistent")
    name = (
        f"run:{ids.run_text(_first_run(tx, run_id))}"
        if policy == "ephemeral"
        else session_name(job, payload, chat_of(payload))
    )
    session = tx.of(AgentTables).session(name)
    return StoredSession(run_id, name, session, known_token(tx, run_id), is_stored=session is not None)


def token_of(tx: Transaction, run: Run) -> str:
    """The token of the run, which its program is given."""
    return run_token(tx, _number(run))


def _number(run: Run) -> int:
    decoded = ids.decode(run.id)
    assert decoded is not None  # noqa: S101 - the kernel made it
    return decoded[1]


def _first_run(tx: Transaction, run_id: int) -> int:
    first, row = run_id, tx.runs.get(run_id)
    while row is not None and row.reason == "recovery" and row.retry_of is not None:
        first, row = row.retry_of, tx.runs.get(row.retry_of)
    return first


def see(tx: Transaction, payload: dict[str, Any], kept: StoredSession, session: str) -> None:
    """A session was seen: it is kept, with what was counted in it before, unless a person forgot it meanwhile."""
    tables, name = tx.of(AgentTables), kept.name
    known, agent, program = tables.session(name), payload["agent"], program_of(payload["runner"])
    if (known is None and kept.is_stored) or not holds(tx, kept.run_id):
        return
    if known is not None and known.session == session:
        tables.keep_session(known._replace(agent=agent, used_at=tx.now, program=program))
    else:
        tables.keep_session(AgentSession(name, agent, session, tx.now, tx.now, program=program))


def forget(tx: Transaction, kept: StoredSession) -> None:
    """The session is not to be gone on in."""
    if holds(tx, kept.run_id):
        tx.of(AgentTables).forget_session(kept.name)


def keep(tx: Transaction, payload: dict[str, Any], kept: StoredSession, reply: Reply) -> Reply:
    """Keep the session of a call that succeeded, and count what is its own of a tool that reports the whole."""
    tables = tx.of(AgentTables)
    if not holds(tx, kept.run_id):
        return reply  # its recovery has the session now
    if payload.get("session") == "ephemeral":
        tables.forget_session(kept.name)
        return reply
    if reply.session is None:
        return reply
    see(tx, payload, kept, reply.session)
    preset = preset_of(payload["runner"])
    if preset is None or not preset.cumulative or reply.tokens_in is None or reply.tokens_out is None:
        return reply
    known = tables.session(kept.name)
    if known is None:
        return reply._replace(tokens_in=None, tokens_out=None)  # with the session, what was counted in it is gone
    tables.keep_session(known._replace(tokens_in=reply.tokens_in, tokens_out=reply.tokens_out))
    own_in, own_out = reply.tokens_in - known.tokens_in, reply.tokens_out - known.tokens_out
    return reply._replace(tokens_in=max(0, own_in), tokens_out=max(0, own_out))
