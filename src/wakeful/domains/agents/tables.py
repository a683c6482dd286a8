"""The tables of sessions and agents: verbs on them, each part of the transaction it is called in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from wakeful.domains.agents.waking import AgentWake, WakeEvent
from wakeful.store.rows import Rows, Verbs, where


class KeptSession(NamedTuple):
    """The session a job's runs continue."""

    job_id: int
    session: str
    model: str
    created_at: int
    used_at: int


class Watch(NamedTuple):
    """A run whose end can be asked for."""

    run_id: int
    url: str
    since: int


class Watched(NamedTuple):
    """A watch, and what became of its run: `status` is None when the run is gone."""

    watch: Watch
    status: str | None
    node: int | None
    kind: str | None


class AgentSession(NamedTuple):
    """A session that an agent keeps from run to run."""

    name: str
    agent: str
    session: str
    created_at: int
    used_at: int
    tokens_in: int = 0
    tokens_out: int = 0
    program: str = ""  # what keeps it; empty: not known


class WorkItem(NamedTuple):
    """Something an agent is to work on."""

    id: int
    agent: str
    title: str
    body: str | None
    external_id: str | None
    priority: int
    status: str
    run_id: int | None
    attempts: int
    created_at: int
    last_error: str | None
    source: str | None = None  # where it is from; None: it was added to the queue
    mark: str | None = None  # JSON: how the source knows our claim
    held: int = 0  # whether the source may know it as ours


_ITEM = WORK_ITEM = ", ".join(WorkItem._fields)
_READY = "agent = ? AND status = 'ready' AND (source IS NULL OR source = ?)"
HAS_AGENT = (
    "EXISTS (SELECT 1 FROM jobs j WHERE j.name = {}.agent || '.wake' AND j.kind = 'agent' AND j.removed_at IS NULL)"
)
_SESSIONS_OF = "((agent = ? AND (name LIKE '%/%' OR name LIKE 'run:%')) OR name = ?)"
_OWN_NAME = "substr(s.name, length(s.agent) + 2)"  # of a session that belongs to one agent: after `agent/`
_JOB = (  # the job whose runs continue in a session
    f"CASE WHEN {_OWN_NAME} = 'heartbeat' OR {_OWN_NAME} LIKE 'chat:%' THEN s.agent || '.wake' "
    f"WHEN {_OWN_NAME} LIKE 'job:%' THEN substr({_OWN_NAME}, 5) ELSE s.agent || '.' || {_OWN_NAME} END"
)
_UNUSED = (  # one run has it, or its job is gone; a shared one is few agents' and stays
    "(s.name LIKE 'run:%' OR (s.name LIKE '%/%' AND NOT EXISTS "
    f"(SELECT 1 FROM jobs j WHERE j.removed_at IS NULL AND j.kind = 'agent' AND j.name = {_JOB})))"
)


class Sessions(Verbs):
    """Verbs on sessions and watches; each call is part of the transaction it was made in."""

    _kept = Rows("sessions", KeptSession)
    _watches = Rows("run_watches", Watch)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def of(self, job_id: int) -> KeptSession | None:
        """The session the job keeps, if it does."""
        return self._kept.one("WHERE job_id = ?", job_id)

    def of_all(self, job_ids: list[int]) -> dict[int, str]:
        """What the sessions of these jobs are called."""
        rows = self._session.select_in(("job_id", "session"), "sessions", "job_id", job_ids)
        return {int(job_id): str(session) for job_id, session in rows}

    def called(self, session: str) -> KeptSession | None:
        """The session of that name, if a job keeps it: the one used last where several do."""
        return self._kept.one("WHERE session = ? ORDER BY used_at DESC, job_id DESC LIMIT 1", session)

    def keepers(self, session: str) -> list[int]:
        """The jobs that keep the session."""
        return self._column("SELECT job_id FROM sessions WHERE session = ? ORDER BY job_id", session)

    def is_kept_by(self, owner: str, session: str) -> bool:
        """Whether a job of that owner keeps the session."""
        sql = (
            "SELECT 1 FROM sessions s JOIN jobs j ON j.id = s.job_id "
            "WHERE s.session = ? AND j.owner = ? AND j.removed_at IS NULL LIMIT 1"
        )
        return bool(self._session.rows(sql, (session, owner)))

    def rename(self, old: str, new: str) -> None:
        """Jobs that keep the old session keep the new one."""
        self._session.execute("UPDATE sessions SET session = ? WHERE session = ?", (new, old))

    def keep(self, kept: KeptSession) -> None:
        """Store a job's session, replacing the one it had."""
        self._kept.put(kept, key=("job_id",))

    def touch(self, job_id: int, now: int) -> None:
        """The job's session is in use."""
        self._session.execute("UPDATE sessions SET used_at = ? WHERE job_id = ?", (now, job_id))

    def forget(self, job_id: int, session: str) -> bool:
        """Forget the job's session, unless it has another one by now; True when it was there."""
        return self._session.execute("DELETE FROM sessions WHERE job_id = ? AND session = ?", (job_id, session)) == 1

    def crowd_out(self, most: int) -> list[str]:
        """Forget the sessions of removed jobs, then of each owner those used longest ago beyond `most`; their names.

        Jobs without an owner count as one owner's. A session whose job has a run in progress stays: the work may be
        going on in it. So does one that another job names.
        """
        idle = "NOT EXISTS (SELECT 1 FROM job_state j WHERE j.job_id = sessions.job_id AND j.run_id IS NOT NULL)"
        surplus = self._session.rows(
            f"SELECT job_id, session FROM sessions WHERE {idle} AND job_id IN (SELECT job_id FROM (SELECT s.job_id, "
            "j.removed_at, row_number() OVER (PARTITION BY j.owner, j.removed_at IS NULL "
            "ORDER BY s.used_at DESC, s.job_id DESC) AS place "
            "FROM sessions s JOIN jobs j ON j.id = s.job_id) AS placed WHERE place > ? OR removed_at IS NOT NULL)",
            (most,),
        )
        named = self.named() if surplus else set()
        gone = [(int(job_id), str(session)) for job_id, session in surplus if session not in named]
        for job_id, session in gone:
            self.forget(job_id, session)
        return [session for _, session in gone]

    def named(self) -> set[str]:
        """The sessions that jobs name in their payload."""
        sql = "SELECT payload FROM jobs WHERE kind = ? AND removed_at IS NULL AND payload LIKE '%\"session\"%'"
        payloads = [json.loads(row[0]) for row in self._session.rows(sql, ("session",))]
        return {str(payload["session"]) for payload in payloads if payload.get("session") is not None}

    # -- watches ------------------------------------------------------------------------------------------------------

    def watch(self, watch: Watch) -> None:
        """Remember where the run's end can be asked for."""
        self._watches.put(watch, key=("run_id",))

    def watched(self) -> list[Watched]:
        """Every watch with what became of its run, oldest first."""
        rows = self._session.rows(
            "SELECT w.run_id, w.url, w.since, r.status, r.node, r.kind FROM run_watches w "
            "LEFT JOIN runs r ON r.id = w.run_id ORDER BY w.run_id"
        )
        return [Watched(Watch(*row[:3]), *row[3:]) for row in rows]

    def unwatch(self, run_ids: list[int]) -> None:
        """Stop polling these runs."""
        for run_id in run_ids:
            self._session.execute("DELETE FROM run_watches WHERE run_id = ?", (run_id,))


class AgentTables(Verbs):
    """Verbs on wakes, system events, sessions and work items; each is part of the transaction it was made in."""

    _wakes = Rows("agent_wakes", AgentWake)
    _events = Rows("agent_events", WakeEvent)
    _sessions = Rows("agent_sessions", AgentSession)
    _items = Rows("agent_work", WorkItem)

    # -- wakes --------------------------------------------------------------------------------------------------------

    def wake(self, job_id: int) -> AgentWake | None:
        """What the agent is to be woken for."""
        return self._wakes.locked("WHERE job_id = ?", job_id)

    def put_wake(self, wake: AgentWake) -> None:
        self._wakes.put(wake, key=("job_id",))

    def drop_wake(self, job_id: int) -> None:
        self._session.execute("DELETE FROM agent_wakes WHERE job_id = ?", (job_id,))

    # -- system events ------------------------------------------------------------------------------------------------

    def add_event(self, event: WakeEvent, job_id: int) -> None:
        """Add an event; `job_id`: of the agent's wake job now."""
        self._session.insert_many("agent_events", (*WakeEvent._fields, "job_id"), [(*event, job_id)])

    def waiting(self, agent: str) -> list[WakeEvent]:
        """What waits to be heard, the oldest first."""
        return self._events.all("WHERE agent = ? AND run_id IS NULL ORDER BY id", agent)

    def waiting_counts(self, agents: Sequence[str]) -> dict[str, int]:
        rows = self._session.select_in(("agent",), "agent_events", "agent", agents, only="run_id IS NULL")
        return dict(Counter(str(row[0]) for row in rows))

    def bind(self, agent: str, run_id: int) -> list[WakeEvent]:
        """Give all that waits to a run; what it was given, also if it was given it before."""
        sql = "UPDATE agent_events SET run_id = ? WHERE agent = ? AND run_id IS NULL"
        self._session.execute(sql, (run_id, agent))
        return self.given_to(run_id)

    def given_to(self, run_id: int) -> list[WakeEvent]:
        """What a run was given and has not heard yet."""
        return self._events.all("WHERE run_id = ? ORDER BY id", run_id)

    def hear(self, run_id: int) -> int:
        """The run's events are heard: they go."""
        return self._session.execute("DELETE FROM agent_events WHERE run_id = ?", (run_id,))

    def give_back(self, run_id: int) -> int:
        """The run's events wait again."""
        return self._session.execute("UPDATE agent_events SET run_id = NULL WHERE run_id = ?", (run_id,))

    def drop_events(self, event_ids: list[int]) -> None:
        if event_ids:
            self._session.delete_in("agent_events", "id", event_ids)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def session(self, name: str) -> AgentSession | None:
        return self._sessions.one("WHERE name = ?", name)

    def sessions_of(self, agent: str, shared: str | None) -> list[AgentSession]:
        """The sessions of an agent, with the one it shares, whoever used that last."""
        return self._sessions.all(f"WHERE {_SESSIONS_OF} ORDER BY name LIMIT 100", agent, shared)

    def all_sessions(self) -> list[AgentSession]:
        return self._sessions.all()

    def keep_session(self, kept: AgentSession) -> None:
        self._sessions.put(kept, key=("name",))

    def forget_session(self, name: str) -> int:
        return self._session.execute("DELETE FROM agent_sessions WHERE name = ?", (name,))

    def forget_sessions_of(self, agent: str, shared: str | None) -> int:
        return self._session.execute(f"DELETE FROM agent_sessions WHERE {_SESSIONS_OF}", (agent, shared))

    def prune_sessions(self, before: int, limit: int) -> int:
        """Delete old sessions whose job is gone: who is seldom asked continues where it was."""
        sql = (
            "DELETE FROM agent_sessions WHERE name IN (SELECT name FROM agent_sessions s "
            f"WHERE used_at < ? AND {_UNUSED} ORDER BY used_at LIMIT ?)"
        )
        return self._session.execute(sql, (before, limit))

    # -- work items ---------------------------------------------------------------------------------------------------

    def add_item(self, item: WorkItem, job_id: int) -> None:
        """Add an item, unless another node just did; `job_id`: of the agent's wake job now."""
        columns = (*WorkItem._fields, "job_id")
        self._session.insert_many("agent_work", columns, [(*item, job_id)], "ON CONFLICT DO NOTHING")

    def item(self, item_id: int) -> WorkItem | None:
        return self._items.one("WHERE id = ?", item_id)

    def item_called(self, agent: str, external_id: str) -> WorkItem | None:
        """The item that another system calls so."""
        return self._items.one("WHERE agent = ? AND external_id = ?", agent, external_id)

    def item_of(self, run_id: int) -> WorkItem | None:
        """What a run works on."""
        return self._items.one("WHERE run_id = ? AND status = 'claimed'", run_id)

    def next_item(self, agent: str, source: str | None = None, passed: Sequence[int] = ()) -> WorkItem | None:
        """The item to be worked on next: the highest priority, then the oldest. Those another node takes are not.

        Of the queue and of one source; `passed` are not wanted.
        """
        but = f" AND id NOT IN ({', '.join('?' for _ in passed)})" if passed else ""
        rest = f"WHERE {_READY}{but} ORDER BY priority DESC, id LIMIT 1{self._session.skip_clause}"
        return self._items.one(rest, agent, source, *passed)

    def has_ready(self, agent: str, source: str | None) -> bool:
        """Whether an item waits, of the queue or of a source."""
        return bool(self._session.rows(f"SELECT 1 FROM agent_work WHERE {_READY} LIMIT 1", (agent, source)))

    def save_item(self, item: WorkItem) -> None:
        columns = ("id", "status", "run_id", "attempts", "last_error", "mark", "held")
        row = (item.id, item.status, item.run_id, item.attempts, item.last_error, item.mark, item.held)
        self._session.update_many("agent_work", columns, [row])

    def items(
        self, agent: str | None, status: str | None, before: int | None, limit: int, *, orphaned: bool = False
    ) -> list[WorkItem]:
        """Items, the newest first; `orphaned`: only those whose agent is no longer there."""
        without_agent = f"NOT {HAS_AGENT.format('agent_work')}", () if orphaned else None
        clause, params = where(
            [("agent IS NOT NULL", ()), ("agent = ?", agent), ("status = ?", status), ("id < ?", before), without_agent]
        )
        return self._items.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def ready_counts(self, agents: Sequence[str]) -> dict[str, int]:
        """How many items wait for each of these agents."""
        rows = self._session.select_in(("agent",), "agent_work", "agent", agents, only="status = 'ready'")
        return dict(Counter(str(row[0]) for row in rows))

    def prune_items(self, before: int, limit: int) -> int:
        sql = (
            "DELETE FROM agent_work WHERE id IN (SELECT id FROM agent_work "
            "WHERE status IN ('done', 'failed') AND held = 0 AND created_at < ? ORDER BY id LIMIT ?)"
        )
        return self._session.execute(sql, (before, limit))

    # -- refused starts -----------------------------------------------------------------------------------------------

    def skips(self, job_ids: list[int]) -> dict[int, dict[str, int]]:
        """How often starts of these jobs were refused, by job and reason."""
        counted: dict[int, dict[str, int]] = {}
        columns = ("job_id", "reason", "times")
        for job_id, reason, times in self._session.select_in(columns, "skips", "job_id", job_ids, only="times > 0"):
            counted.setdefault(int(job_id), {})[str(reason)] = int(times)
        return counted

    # -- agents -------------------------------------------------------------------------------------------------------

    def wake_jobs(self, after: str, limit: int) -> list[int]:
        """The wake jobs of agents, by name."""
        sql = (
            "SELECT id FROM jobs WHERE kind = 'agent' AND removed_at IS NULL AND name > ? AND name LIKE '%.wake' "
            "ORDER BY name LIMIT ?"
        )
        return self._column(sql, after, limit)

    def jobs_of(self, agent: str) -> list[int]:
        """All jobs of an agent, by name: those whose payload says so, whoever is said to own them."""
        sql = (
            "SELECT id, payload FROM jobs WHERE kind = 'agent' AND removed_at IS NULL AND payload LIKE ? ORDER BY name"
        )
        rows = self._session.rows(sql, (naming(agent),))
        return [int(number) for number, payload in rows if json.loads(payload)["agent"] == agent]


def naming(agent: str) -> str:
    """A pattern for payloads that name the agent; some that it finds do not."""
    return f'%"agent":%{json.dumps(agent)}%'
