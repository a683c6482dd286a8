"""A world with agents: what they are to hear, work on and go on in survives everything that happens there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.invariants import Broken, Connection
from tests.simulation.world import FOR_EVER, World
from wakeful import Scheduler, SchedulerError, TransientError, ids
from wakeful.domains.agents import Reply, Turn, run_requests
from wakeful.domains.agents.hops import MOST_HOPS
from wakeful.domains.agents.work import NewItem, add_item

HEARD = ("success", "noop")
CLERK, SMITH = "clerk", "smith"
RUNNER = {"python": "tests.simulation.agents:reply"}
AGENTS = {
    CLERK: {
        "runner": RUNNER,
        "heartbeat": {"every": "7m", "prompt": "Look around."},
        "schedules": {"mail": {"every": "9m", "prompt": "There is mail.", "target": "main"}},
    },
    SMITH: {
        "runner": RUNNER,
        "work": {"source": "queue"},
        "max_concurrent": 2,
        "schedules": {
            "one": {"every": "3m", "work": True, "prompt": "Work."},
            "two": {"interval": "4m", "work": True, "prompt": "Work."},
        },
    },
}

_now: list[Staff] = []  # the world that is lived through


async def reply(turn: Turn) -> Reply:
    """The agents of the world."""
    return await _now[-1].asked(turn)


class Staff:
    """What a world has to do with agents: what they are given, what they do, and what became of it."""

    agents: ClassVar[dict[str, Any]] = AGENTS
    pauses: tuple[float, ...] = (0, 0, 0.05, 20, 400, 2500)  # how long a call takes, in seconds
    violations: list[str]
    _names: int
    _scheduler: Scheduler | None

    def _hire(self, seed: int) -> None:
        self.mood = random.Random(f"agents {seed}")
        self.calm = False
        self.events: dict[str, bool] = {}  # those that are stored for sure, and whether the agent was woken for them
        self.items: set[str] = set()
        self.turns: list[tuple[int, frozenset[str]]] = []  # each run that asked an agent, and what it was about
        self.outcomes: dict[int, str] = {}  # of these runs
        self.busy: dict[str, int] = {}  # items that are being worked on, and the run
        self.sessions: dict[int, tuple[str, str]] = {}  # by run: whose session, and which
        _now.append(self)

    def _connection(self) -> Connection:
        raise NotImplementedError

    def _is_beside(self, run: int) -> bool:
        """Whether that run, which works on the same item, goes on."""
        raise NotImplementedError

    async def _die(self) -> None:
        """The agent takes its process down."""
        raise NotImplementedError

    # -- the agents ---------------------------------------------------------------------------------------------------

    async def asked(self, turn: Turn) -> Reply:
        number = turn.run._row.id
        about = frozenset(re.findall(r"(?:event|item)-\d+", turn.prompt))
        self.turns.append((number, about))
        session = self._session(turn, number)
        mine = [name for name in about if name.startswith("item-")]
        for name in mine:
            if name in self.busy and self._is_beside(self.busy[name]):
                other = ids.run_text(self.busy[name])
                self.violations.append(f"D10: {name} is worked on by {other} and {turn.run.id} at once")
            self.busy[name] = number
        try:
            await self._behave(number)
        finally:
            for name in mine:
                if self.busy.get(name) == number:
                    del self.busy[name]
        return Reply(f"{turn.agent} did it.", session=session)

    def _session(self, turn: Turn, number: int) -> str:
        whose = self._whose(turn)
        if turn.session is not None and not turn.session.startswith(f"s-{whose}-"):
            self.violations.append(f"{turn.run.id} of {whose} goes on in {turn.session}, which is another's")
        self._note_outcomes()
        good = [run for run, outcome in self.outcomes.items() if outcome == "success"]
        before = {self.sessions[run][1] for run in good if self.sessions[run][0] == whose}
        if before and turn.session not in before:
            self.violations.append(f"{turn.run.id} of {whose} goes on in {turn.session}, and not in {sorted(before)}")
        session = turn.session or f"s-{whose}-{number}"
        self.sessions[number] = (whose, session)
        return session

    def _whose(self, turn: Turn) -> str:
        """Who goes on in the session of this turn."""
        return f"{turn.agent}-{turn.schedule}"

    async def _behave(self, number: int) -> None:
        if self.calm:
            return
        await asyncio.sleep(self.mood.choice(self.pauses))
        chance = self.mood.random()
        if chance < 0.03:
            await self._die()
        if chance < 0.2:
            raise self.mood.choice((RuntimeError("no"), TransientError("later")))
        if chance < 0.5 and self._scheduler is not None:
            other = self.mood.choice((CLERK, SMITH))
            with contextlib.suppress(SchedulerError):  # too many hops, a full disk
                await run_requests.wake(self._scheduler, number, other)

    # -- people -------------------------------------------------------------------------------------------------------

    async def _event(self) -> None:
        assert self._scheduler is not None
        self._names += 1
        text, wake = f"event-{self._names}", self.mood.random() < 0.7
        await self._scheduler.agents.add_event(self.mood.choice((CLERK, SMITH)), text, wake=wake)
        self.events[text] = wake

    async def _item(self) -> None:
        assert self._scheduler is not None
        self._names += 1
        new = NewItem(f"item-{self._names}", priority=self.mood.choice((0, 0, 5)))
        await self._scheduler.transact(lambda tx, context: add_item(tx, context, SMITH, new))
        self.items.add(new.title)

    async def _wake(self) -> None:
        assert self._scheduler is not None
        reason = self.mood.choice(("manual", "hook", "message", "cron", "interval"))
        await self._scheduler.agents.request_wake(self.mood.choice((CLERK, SMITH)), reason)

    async def _rest(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.agents.pause(self.mood.choice((CLERK, SMITH)))

    async def _go_on(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.agents.resume(self.mood.choice((CLERK, SMITH)))

    # -- looking ------------------------------------------------------------------------------------------------------

    def _note_outcomes(self) -> None:
        """How runs ended is kept: retention may take them away."""
        asked = {number for number, _ in self.turns} - self.outcomes.keys()
        if not asked:
            return
        rows = self._connection().execute("SELECT id, outcome FROM runs WHERE kind = 'agent' AND outcome IS NOT NULL")
        self.outcomes.update({row["id"]: row["outcome"] for row in rows if row["id"] in asked})

    def _look_at_agents(self) -> None:
        self._note_outcomes()
        ends = [(about, self.outcomes.get(number)) for number, about in self.turns]
        check_events(self._connection(), self.events, ends)
        check_items(self._connection(), self.items, ends)
        check_wakes(self._connection())

    def _look_at_the_end(self) -> None:
        """With the faults over, everything is heard and worked on."""
        for row in self._connection().execute("SELECT text FROM agent_events"):
            if self.events.get(row["text"]):
                raise Broken(f"A4: {row['text']} was left with a wake and is not heard")
        sql = "SELECT title, status FROM agent_work WHERE status NOT IN ('done', 'failed')"
        for row in self._connection().execute(sql):
            raise Broken(f"D10: {row['title']} is still {row['status']}")


class Employer(Staff, World):
    """Two agents: one is woken, one works through a queue. Sometimes they fail, hang, or take the process down."""

    weights: ClassVar[dict[str, int]] = {
        **World.weights, "_add": 3, "_event": 14, "_item": 12, "_wake": 10, "_rest": 3, "_go_on": 5, "_kill": 8,
    }  # fmt: skip
    resumes = True  # whether a person resumes the agents in the end, which also wakes them

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.days, self.history = FOR_EVER, 100_000  # what retention takes away is not lost
        self._hire(seed)

    def _connection(self) -> Connection:
        return self._watch()

    def _is_beside(self, run: int) -> bool:  # none outlives its process, and then it is cleared
        return True

    async def _die(self) -> None:
        assert self._store is not None
        self._store.die("by its agent")
        await asyncio.sleep(10**9)

    async def _furnish(self, scheduler: Scheduler) -> None:
        self.busy.clear()  # no one works on after a death
        await self._bounded(scheduler.agents.apply(self.agents, folder=self.path.parent))

    def _is_begun(self, job_id: int, slot: int) -> bool:
        """Slots of agents are not given to the world's own handlers: their runs are kept, and say it."""
        sql = "SELECT 1 FROM runs WHERE job_id = ? AND slot = ? AND started_at IS NOT NULL"
        return super()._is_begun(job_id, slot) or self._watch().execute(sql, (job_id, slot)).fetchone() is not None

    def _look(self) -> None:
        super()._look()
        self._look_at_agents()

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        self.calm = True
        if self._dead.is_set():
            await self._rebirth(ours)
        for agent in AGENTS if self.resumes else ():
            with contextlib.suppress(SchedulerError):
                assert self._scheduler is not None
                await self._bounded(self._scheduler.agents.resume(agent))
        await super()._settle_down(ours)

    async def _end(self) -> None:
        self._look_at_the_end()
        await super()._end()

    def close(self) -> None:
        _now.remove(self)
        super().close()


class Quiet(Employer):
    """Nothing wakes the agents but events, and nothing goes wrong but that they fail."""

    agents: ClassVar[dict[str, Any]] = {name: {"runner": RUNNER} for name in AGENTS}
    weights: ClassVar[dict[str, int]] = {"_pass_time": 20, "_event": 10}
    resumes = False

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.faults.crash_rate = self.faults.full_rate = 0.0


Ends = list[tuple[frozenset[str], Any]]  # what each run that asked an agent was about, and how it ended


def check_events(connection: Connection, known: dict[str, bool], ends: Ends) -> None:
    """An event waits, is given to a run in progress, or was heard by exactly one run that ended well."""
    rows = connection.execute(
        "SELECT e.text, e.run_id, r.status FROM agent_events e LEFT JOIN runs r ON r.id = e.run_id"
    ).fetchall()
    stored = {row["text"]: row for row in rows}
    for row in rows:
        if row["run_id"] is not None and row["status"] in (None, "done"):
            raise Broken(f"A4: {row['text']} is given to a run that is over")
    for text in known:
        times = sum(text in about and outcome in HEARD for about, outcome in ends)
        if times and text in stored:
            raise Broken(f"A4: {text} was heard, and waits again")
        if times > 1:
            raise Broken(f"A4: {text} was heard by {times} runs")
        if not times and text not in stored:
            raise Broken(f"A4: {text} is gone, and no run that ended well has heard it")


def check_items(connection: Connection, known: set[str], ends: Ends) -> None:
    """An item is claimed by a run in progress alone, done with the one run that did it, and never gone."""
    rows = connection.execute(
        "SELECT w.title, w.status, r.status AS run FROM agent_work w LEFT JOIN runs r ON r.id = w.run_id"
    ).fetchall()
    if lost := known - {row["title"] for row in rows}:
        raise Broken(f"D10: {min(lost)} was stored and is gone")
    for row in rows:
        times = sum(row["title"] in about and outcome == "success" for about, outcome in ends)
        if row["status"] == "claimed" and row["run"] in (None, "done"):
            raise Broken(f"D10: {row['title']} is claimed by a run that is over")
        if times != (row["status"] == "done"):
            raise Broken(f"D10: {row['title']} is {row['status']}, and {times} runs did it")


def check_wakes(connection: Connection) -> None:
    """What an agent is to be woken for has a run that waits for it, and no row of agents goes too far."""
    for row in connection.execute(
        "SELECT w.job_id, w.run_id, w.hops, r.status FROM agent_wakes w LEFT JOIN runs r ON r.id = w.run_id"
    ):
        if row["status"] != "queued":
            raise Broken(f"A1: a wake waits for {ids.run_text(row['run_id'])}, which is {row['status']}")
        if row["hops"] > MOST_HOPS:
            raise Broken(f"a wake has {row['hops']} hops")
    sql = "SELECT payload FROM run_details WHERE payload LIKE ?"
    for row in connection.execute(sql, ('%"hops"%',)):
        if json.loads(row["payload"]).get("hops", 0) > MOST_HOPS:
            raise Broken("a run has more hops than may be")
