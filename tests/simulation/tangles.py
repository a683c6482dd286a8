"""A world with a workflow that is hard to bear: people help and meddle, deploy and remove it, and its process dies.

Whatever happens, after every step its events, its words and the world outside agree (`flow_rules.py`, `outside.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.crowded_plots import CROWDED, Rally, Shop
from tests.simulation.flow_rules import Doubts, check_flow, check_words, unlooked
from tests.simulation.invariants import Broken
from tests.simulation.outside import Outside
from tests.simulation.plots import PLOTS, Plot
from tests.simulation.threads import ThreadedLoop
from tests.simulation.world import FOR_EVER, World
from wakeful import Scheduler, SchedulerError
from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.adding import install
from wakeful.domains.workflows.deploying import remove_workflow
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand

MOST_HELP = 60  # times that a person helps in the end, when nothing goes wrong by itself any more
ALL: tuple[type[Plot], ...] = (*PLOTS, *CROWDED)


class Tangled(World):
    """One of the plots, by its seed."""

    loop = ThreadedLoop
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 30, "_cancel": 5, "_retry": 1, "_kill": 4, "_restart": 3, "_step_clock": 1, "_trouble": 2,
        "_publish": 16, "_help": 12, "_meddle": 4, "_redeploy": 6,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.days = FOR_EVER
        outside = Outside(ALL[seed % len(ALL)].name, self.clock.monotonic, self.violations.append, self._note)
        self.plot = ALL[seed % len(ALL)](seed, outside, self._die)
        self.outside = outside
        self.helped = 0
        self._doubts = Doubts()
        self._since = 0.0  # when the process or the version began that runs now
        self._may_be_paused = False
        if isinstance(self.plot, Rally):
            self.plot.is_due = self._is_poll_due

    @property
    def name(self) -> str:
        return self.plot.name

    # -- the process ---------------------------------------------------------------------------------------------------

    async def _furnish(self, scheduler: Scheduler) -> None:
        self._began()
        if self.plot.shape == "gone":
            install(scheduler)
        else:
            scheduler.add_workflow(self.plot.workflow())

    def _began(self) -> None:
        self.plot.lives += 1
        self._since = self.clock.monotonic()
        self._doubts.forget()

    def _die(self, where: str) -> None:
        assert self._store is not None
        self._store.die(where)

    async def _rebirth(self, ours: set[asyncio.Task[object] | None]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ThreadedLoop)
        loop.end_threads()
        for task in asyncio.all_tasks() - ours:
            task.cancel()
        await asyncio.sleep(0)
        self.outside.died()
        await super()._rebirth(ours)

    async def _trouble(self) -> None:
        self.faults.full_rate = self.rng.choice((0.0, 0.0, 0.2))
        self.faults.crash_rate = self.rng.choice((0.0, 0.0, 0.0, 0.01, 0.05))

    async def _restart(self) -> None:
        assert self._scheduler is not None
        with contextlib.suppress(SchedulerError):
            await self._scheduler.stop(wait_for_jobs=self.rng.random() < 0.5, timeout=self.rng.choice((0.5, 30)))
        self.faults.full_rate = 0.0
        try:
            await self._scheduler.start()
        except SchedulerError as error:
            raise Broken(f"the server does not start again: {error}") from error
        self._began()

    # -- people --------------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        rng = self.plot.rng
        if isinstance(self.plot, Shop) and self.plot.published and rng.random() < 0.5:
            await self._pay(rng.choice(sorted(self.plot.published)))
            return
        for _ in range(rng.choice(self.plot.burst)):
            name = f"m{rng.randrange(10_000)}"
            await self._do(publish_by_hand, ByHand("mail", name, None))
            self.plot.published.add(name)

    async def _pay(self, name: str) -> None:
        assert isinstance(self.plot, Shop)
        await self._do(publish_by_hand, ByHand("paid", name, None))
        self.plot.paid.add(name)

    async def _help(self) -> None:
        """What a person does about whatever waits for one."""
        assert self._scheduler is not None
        shown = await self._scheduler.read(lambda tx: views.workflow_view(tx, self.name))
        issue = shown["issue"]
        if issue is None:
            return
        self.helped += 1
        self.outside.forgive()
        self._note(f"help {issue['kind']}")
        if shown["paused"] or issue["kind"] not in ("approval", "reconciliation"):
            await self._do(actions.resume)
            self._may_be_paused = False
        elif issue["kind"] == "approval" and (self.plot.calm or self.plot.rng.random() < 0.85):
            self.outside.agree(issue["run"])
            await self._do(actions.approve, issue["run"])
        elif issue["kind"] == "approval":
            self._may_be_paused = True
            await self._do(actions.reject, issue["run"])
        else:
            await self._settle(issue["run"])

    async def _settle(self, run: str) -> None:
        """A person looks outside and says what happened."""
        if self.outside.is_busy():
            return  # as long as something still works, nobody can say
        rows = self._watch().execute(
            "SELECT message_id FROM workflow_events WHERE workflow = ? AND topic = 'mail' AND status = 'reserved'",
            (self.name,),
        )
        names = [row["message_id"] for row in rows]
        happened = bool(names) and self.outside.has(names)
        await self._do(actions.settle, run, "happened" if happened else "did_not_happen")

    async def _meddle(self) -> None:
        what = self.plot.rng.choice(("pause", "drain", "run"))
        if what == "run":
            await self._do(actions.run_now)
            return
        self._may_be_paused = True
        await self._do(actions.pause if what == "pause" else drain)

    async def _cancel(self) -> None:
        self._may_be_paused = True  # if it asked: that is a rejection
        await super()._cancel()

    async def _redeploy(self) -> None:
        """Another version, also one without the consumer; or no workflow at all; and back."""
        plot = self.plot
        plot.shape = plot.rng.choice(("whole", "headless", "gone")) if plot.shape == "whole" else "whole"
        plot.version += plot.rng.choice((0, 1))
        await self._deploy()

    async def _deploy(self) -> None:
        before = self._since
        try:
            await self._deploy_now()
        except SchedulerError:
            self._since = before  # nothing was deployed
            raise

    async def _deploy_now(self) -> None:
        assert self._scheduler is not None
        scheduler = self._scheduler
        self._note(f"deploy {self.plot.shape}-{self.plot.version}")
        if self.plot.shape == "gone" or self.plot.workflow().version != self._deployed_version():
            self._since = self.clock.monotonic()
            self.outside.forgive()
            self.plot.begin_anew()
        if self.plot.shape != "gone":
            await scheduler.add_workflow(self.plot.workflow())
            return
        scheduler.host.write_at_start(self.name, lambda _tx, _context: None)
        await scheduler.transact(lambda tx, context: remove_workflow(tx, context, self.name))
        install(scheduler).drop(self.name)

    def _deployed_version(self) -> str | None:
        sql = "SELECT version FROM workflows WHERE name = ? AND removed_at IS NULL"
        row = self._watch().execute(sql, (self.name,)).fetchone()
        return None if row is None else str(row["version"])

    async def _do(self, action: Any, *given: Any) -> Any:
        assert self._scheduler is not None
        return await self._scheduler.transact(lambda tx, context: action(tx, context, self.name, *given, who="Ada"))

    # -- looking -------------------------------------------------------------------------------------------------------

    def _is_poll_due(self) -> bool:
        sql = (
            "SELECT s.due_at, s.parked, w.paused, w.draining, w.issue FROM job_state s JOIN workflow_handlers h "
            "ON h.job_id = s.job_id JOIN workflows w ON w.name = h.workflow WHERE h.workflow = ? "
            "AND h.name = 'poll' AND s.enabled = 1 AND s.paused = 0 AND s.run_id IS NULL"
        )
        found = self._watch().execute(sql, (self.name,)).fetchone()
        if found is None or found["paused"] or found["draining"] or found["issue"] is not None:
            return False
        return found["parked"] is not None or (found["due_at"] is not None and found["due_at"] <= self.clock.now())

    def _look(self) -> None:
        super()._look()
        eye, now = self._watch(), self.clock.monotonic()
        known = {row["message_id"] for row in self._events("mail")}
        if lost := self.plot.published - known:
            raise Broken(f"K6: {min(lost)} was published and is gone")
        for row in self._events("mail"):
            if row["status"] == "consumed" and row["message_id"] not in self.outside.ledger:
                raise Broken(f"K9: {row['message_id']} is consumed, and nothing was changed for it")
        prepared = {what.partition(".")[0]: at for what, at in self.outside.last_call.items() if "prepare" in what}
        doubts = [
            *check_flow(eye, self.name),
            *unlooked(eye, self.name, prepared, self._since),
            *check_words(self._ledger(), eye, self.name, may_be_paused=self._may_be_paused),
        ]
        if not self._dead.is_set():
            self._doubts.hold(iter(doubts), now)

    def _events(self, topic: str) -> list[Any]:
        return (
            self._watch()
            .execute("SELECT * FROM workflow_events WHERE workflow = ? AND topic = ? ORDER BY id", (self.name, topic))
            .fetchall()
        )

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        self.plot.calm = True
        if self._dead.is_set():
            await self._rebirth(ours)
        self.plot.shape, self.plot.version = "whole", self.plot.version + 1
        await self._bounded(self._deploy())
        if isinstance(self.plot, Shop):
            for name in sorted(self.plot.published)[::2]:
                await self._bounded(self._pay(name))
        for _ in range(MOST_HELP):
            await self._bounded(self._resume_jobs())
            with contextlib.suppress(SchedulerError):  # it may just be finding out by itself
                await self._bounded(self._help())
            await self._bounded(self.clock.sleep("11m"))
            if not any(True for _ in self._left()) or self._dead.is_set():
                break
        await super()._settle_down(ours)

    async def _resume_jobs(self) -> None:
        """A handler's job that was disabled or paused by its name: that is lifted too."""
        assert self._scheduler is not None
        for row in (
            self._watch()
            .execute(
                "SELECT j.name FROM workflow_handlers h JOIN jobs j ON j.id = h.job_id JOIN job_state s "
                "ON s.job_id = j.id WHERE h.workflow = ? AND (s.paused = 1 OR s.enabled = 0) ORDER BY j.name",
                (self.name,),
            )
            .fetchall()
        ):
            await self._scheduler.resume_job(row["name"])

    async def _end(self) -> None:
        """With the faults over, everything was worked on once."""
        for row in self._left():
            raise Broken(f"K13: {row['topic']} {row['message_id']} is still {row['status']}")
        await super()._end()

    def _left(self) -> Iterator[Any]:
        """Events of live topics that should have been worked on."""
        topics = {
            topic
            for row in self._watch().execute(
                "SELECT subscribes FROM workflow_handlers WHERE workflow = ? AND job_id IS NOT NULL", (self.name,)
            )
            for topic in json.loads(row["subscribes"])
        }
        for topic in sorted(topics):
            for row in self._events(topic):
                if row["status"] != "consumed" and not self.plot.is_left(row["message_id"]):
                    yield row
