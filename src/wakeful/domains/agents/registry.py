"""`scheduler.agents`: the agents of one scheduler, for programs, the command line and the server."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents.budgets.rules import COST_PER_DAY, given_limits
from wakeful.domains.agents.budgets.spending import DEFAULT, FACT, store_limits
from wakeful.domains.agents.handler import AgentKind
from wakeful.domains.agents.limits.holding import clear_limit, shown_limits
from wakeful.domains.agents.naming import AGENT, shared_session
from wakeful.domains.agents.pausing import pause_agent, resume_agent
from wakeful.domains.agents.questions import prepared
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.views import agent_view, agent_views
from wakeful.domains.agents.wakes import Requested, add_event, find_agent, request_wake, wake_unless_disabled
from wakeful.domains.agents.waking import EVENT_LABEL
from wakeful.errors import InvalidJob, JobExists
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import on_record, origin_of
from wakeful.kernel.domain import load
from wakeful.store.listing import JobFilter
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.actions.recording import Origin
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Draft
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

SOURCE = "code"
OFF = "switched_off"  # in the payload of a job that its program gives with enabled: false
MAKERS = {"cli": "wakeful add", "api": "the API", "mcp": "an agent", "file": "a file"}


class AgentRegistry:
    """What people and programs do with agents; each call is one transaction."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._kind = AgentKind(scheduler)
        if AGENT not in scheduler.host.handled_kinds:
            scheduler.on_job_due(AGENT, self._kind)

    @property
    def url(self) -> str | None:
        return self._kind.url

    @url.setter
    def url(self, url: str | None) -> None:
        self._kind.url = url

    @property
    def callback_url(self) -> str | None:
        return self._kind.servers.settings.callback_url

    @callback_url.setter
    def callback_url(self, url: str | None) -> None:
        servers = self._kind.servers
        servers.settings = replace(servers.settings, callback_url=url)

    async def apply(self, agents: Mapping[str, Any], *, folder: Path | None = None) -> dict[str, list[str]]:
        """Make the agents of this program what the mapping says; InvalidJob names everything that is wrong.

        JobExists for an agent that was made elsewhere. Pauses stay, and due runs start. A schedule that an earlier
        call gave with `enabled: false` is switched on where this one does not; what a person or errors stopped is not.
        """
        scheduler = self._scheduler
        here = folder if folder is not None else Path.cwd()
        entries = load("wakeful.domains.agents.agents_file:entries_of")(agents, here, scheduler.host.default_zone)
        off = {entry.new.name for entry in entries if not entry.enabled}
        for entry in entries:
            if not entry.enabled:  # the job says who switched it off, so that only what this program did is taken back
                entry.new.payload = {**entry.new.payload, OFF: True}
        drafts = [scheduler.host.draft(entry.new, SOURCE) for entry in entries]
        names = {made.name for made in drafts}

        def work(tx: Transaction, context: Context) -> list[str]:
            if tx.facts.get(FACT) is None:
                store_limits(tx, DEFAULT._replace(zone=scheduler.host.default_zone))
            mine = {pair[0].name: pair for pair in tx.jobs.matching(JobFilter(kind=AGENT, source=SOURCE))}
            gone = sorted(mine.keys() - names)
            removed = [mine[name] for name in gone]

            def remove() -> None:
                for name in gone:
                    job_actions.remove_job(tx, context, name)

            origin = origin_of(context)
            on_record(tx, origin, "remove", removed, remove)
            _store(tx, context, drafts, context.zone())
            _switch(tx, context, origin, off, [job for job, _ in mine.values() if job.name in names])
            return gone

        removed = await scheduler.transact(work)
        return {"stored": sorted(names), "removed": removed}

    async def limit(
        self,
        *,
        runs_per_day: int | EllipsisType | None = ...,
        cost_per_day: float | None = COST_PER_DAY,
        tokens_per_day: int | None = None,
    ) -> None:
        """Set what all agents together may use in a day; None is no limit. It holds for every process on this store.

        Where `runs_per_day` is not given, each agent whose budget does not say how many may run 100 times. Days are
        those of the scheduler's zone.
        """
        limits = given_limits(runs_per_day, cost_per_day, tokens_per_day, zone=self._scheduler.host.default_zone)
        await self._scheduler.transact(lambda tx, _: store_limits(tx, limits))

    async def request_wake(self, agent: str, reason: str = "manual") -> dict[str, Any]:
        """Wake an agent."""
        asked = await self._scheduler.transact(lambda tx, context: request_wake(tx, context, agent, reason))
        return shown_request(asked)

    async def ask(self, agent: str, prompt: str, *, deliver: str | None = None) -> dict[str, Any]:
        """Ask an agent now, in a session that its questions share; the run's output has the reply.

        The reply is also delivered as the agent's others are, unless `deliver` says where to.
        """
        zone = self._scheduler.host.default_zone
        asked = await self._scheduler.transact(
            lambda tx, context: prepared(tx, context, agent, prompt, deliver=deliver, zone=zone)
        )
        return {"agent": agent, "run": await self._scheduler.run_job(asked.job, payload=asked.payload)}

    async def add_event(
        self, agent: str, text: str, *, source: str | None = None, context_key: str | None = None, wake: bool = False
    ) -> dict[str, Any]:
        """Add an event for an agent, and wake it if requested."""
        check_labels(source, context_key)

        def work(tx: Transaction, context: Context) -> tuple[int, int]:
            found = add_event(tx, context, agent, text, source=source, context_key=context_key)
            if wake:
                wake_unless_disabled(tx, context, agent, "hook")
            return found

        event, waiting = await self._scheduler.transact(work)
        return {"id": ids.encode("evt", event), "waiting": waiting}

    async def rate_limits(self) -> list[dict[str, Any]]:
        """The accounts that are at their rate limit, with the agents that wait for them."""
        return await self._scheduler.read(shown_limits)

    async def clear_rate_limit(self, account: str) -> dict[str, Any]:
        """End the rate limit of an account: what waits for it starts now. LimitNotFound where there is none."""
        return await self._scheduler.transact(lambda tx, context: clear_limit(tx, context, account))

    async def get(self, agent: str) -> dict[str, Any]:
        seen = self._scheduler.host.seen
        return await self._scheduler.read(lambda tx: agent_view(tx, agent, seen))

    async def list(self) -> list[dict[str, Any]]:
        seen = self._scheduler.host.seen
        return await self._scheduler.read(lambda tx: agent_views(tx, seen))

    async def pause(self, agent: str) -> dict[str, Any]:
        """Pause all jobs of an agent; runs in progress finish."""
        return (await self._scheduler.transact(lambda tx, context: pause_agent(tx, context, agent))).agent

    async def resume(self, agent: str) -> dict[str, Any]:
        """Resume all jobs of an agent except those that are switched off; waiting events wake it."""
        return (await self._scheduler.transact(lambda tx, context: resume_agent(tx, context, agent))).agent

    async def reset_session(self, agent: str) -> int:
        """Forget the sessions of an agent, also one that it shares; how many there were.

        A run that works in one continues in it, and the next begins a new one.
        """

        def work(tx: Transaction, _: Context) -> int:
            wake, _state = find_agent(tx, agent)
            return tx.of(AgentTables).forget_sessions_of(agent, shared_session(json.loads(wake.payload)))

        return await self._scheduler.transact(work)


def check_labels(source: str | None, context_key: str | None) -> None:
    """InvalidJob where an event's source or key cannot stand in one line."""
    for name, value in (("source", source), ("context_key", context_key)):
        if value is not None and not (len(value) <= 200 and re.fullmatch(EVENT_LABEL, value)):
            raise InvalidJob(f"An event's {name} is one line of 1 to 200 characters.")


def shown_request(asked: Requested) -> dict[str, Any]:
    """A request as people see it."""
    wake_at = None if asked.wake_at is None else iso(asked.wake_at)
    run = None if asked.run_id is None else ids.run_text(asked.run_id)
    found = {"agent": asked.agent, "reason": asked.reason, "wake_at": wake_at, "coalesced": asked.coalesced, "run": run}
    until = None if asked.waits_until is None else iso(asked.waits_until)
    return {**found, "waits_for": asked.waits_for, "waits_until": until}


def _store(tx: Transaction, context: Context, drafts: Sequence[Draft], zone: str) -> None:
    """Add new agents and change known ones that this program made."""
    known = tx.jobs.definitions(list(tx.jobs.names([one.name for one in drafts]).values()))
    mine = {job.name: job for job in known.values()}
    for job in sorted(mine.values()):
        if job.source != SOURCE:
            who = MAKERS.get(job.source, job.source)
            message = f"{job.name!r} was made by {who}, and a program changes only its own: choose another name."
            raise JobExists(message)
    states = tx.jobs.states([job.id for job in mine.values()])
    drafted = {one.name: {name: value for name, value in one._asdict().items() if name != "name"} for one in drafts}
    edits = [((job, states[job.id]), drafted[job.name]) for job in mine.values()]
    changed = job_actions.change_all(tx, context, edits, zone, keep_due=True)
    job_actions.move_lanes(tx, list(zip(mine.values(), changed, strict=True)))
    job_actions.add_jobs(tx, context, [one for one in drafts if one.name not in mine], "error", zone)


def _switch(tx: Transaction, context: Context, origin: Origin, off: set[str], known: Sequence[JobDef]) -> None:
    """Switch off what is not enabled, and on what an earlier call had switched off; `known`: as it was before."""
    on = sorted(job.name for job in known if OFF in json.loads(job.payload) and job.name not in off)
    revived = [find_job(tx, name) for name in on]

    def enable() -> None:
        for name in on:
            pausing.enable_job(tx, context, name)

    on_record(tx, origin, "resume", revived, enable)
    enabled = [pair for pair in (find_job(tx, name) for name in sorted(off)) if pair[1].enabled]
    before = {job.name for job in known}

    def disable() -> None:
        for job, _ in enabled:
            pausing.disable_job(tx, context, job.name)

    on_record(tx, origin, "disable", [pair for pair in enabled if pair[0].name in before], disable)
