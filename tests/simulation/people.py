"""People who meddle: they add jobs, change and remove them, start and cancel runs, at any moment.

Everything random comes from one seed, so a failing world can be lived through again, step by step.
"""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta

from wakeful import After, Cron, Every, Interval, Once, Scheduler, Trigger, ids
from wakeful.testing import VirtualClock

LANES = {"press": 1, "oven": 2}
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


class People:
    """What they do through a scheduler, and what was promised to them."""

    grids: tuple[str, ...] = ("3s", "1m", "7m", "1h", "1h", "6h")
    intervals: tuple[str, ...] = ("15s", "5m", "20m", "2h")
    crons: tuple[str, ...] = ("* * * * *", "*/5 * * * *", "0 * * * *", "30 2 * * *", "*/20 * * * * *", "0 9 * * 1-5")
    moments: tuple[int, ...] = (-60, 0, 5, 300, 7200)  # from now, in seconds
    timeouts: tuple[str, ...] = ("30s", "5m", "1h")
    prioritizes = True  # whether they give jobs priorities
    kinds: tuple[tuple[str, int], ...] = (  # and how often
        ("good", 30), ("slow", 15), ("flaky", 15), ("crasher", 2), ("chatty", 10), ("rare", 5),
    )  # fmt: skip

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ranks = random.Random(f"priorities {seed}")
        self.regrets = random.Random(f"regrets {seed}")
        self.clock = VirtualClock(datetime(2026, 3, 27, tzinfo=UTC) + timedelta(minutes=self.rng.randrange(20_000)))
        self.trace = hashlib.sha256()
        self.steps: list[str] = []
        self.starts = self.deaths = self.undone = 0
        self.acknowledged: set[str] = set()
        self.removed: set[str] = set()
        self.cancelled: set[int] = set()  # runs that they wanted to end
        self._names = 0
        self._scheduler: Scheduler | None = None

    def _note(self, what: str) -> None:
        line = f"{self.clock.now()} {what}"
        self.steps.append(line)
        self.trace.update(line.encode())

    def _trigger(self) -> Trigger:
        rng = self.rng
        now = datetime.fromtimestamp(self.clock.now() / 1000, UTC)
        modifiers: dict[str, object] = {}
        if rng.random() < 0.2:
            modifiers["jitter"] = rng.choice((1, 10))
        if rng.random() < 0.2:
            modifiers["max_runs"] = rng.randrange(1, 6)
        kind = rng.randrange(5)
        if kind == 0:
            return Every(rng.choice(self.grids), **modifiers)  # type: ignore[arg-type]
        if kind == 1:
            return Interval(rng.choice(self.intervals))
        if kind == 2:
            return Cron(rng.choice(self.crons), tz=rng.choice(ZONES), **modifiers)  # type: ignore[arg-type]
        if kind == 3:
            return Once(now + timedelta(seconds=rng.choice(self.moments)))
        return After(f"job-{rng.randrange(max(1, self._names))}", on=rng.choice(("success", "failure", "any")))

    def _options(self) -> dict[str, object]:
        rng = self.rng
        options: dict[str, object] = {"timeout": rng.choice(self.timeouts)}
        if rng.random() < 0.3:
            lane = rng.choice(tuple(LANES))
            options["lanes"] = {lane: LANES[lane]} if rng.random() < 0.7 else dict(LANES)
        if rng.random() < 0.3:
            options["overlap"] = rng.choice(("skip", "queue", "cancel_other"))
        if rng.random() < 0.3:
            options["catch_up"] = rng.choice(("once", "skip", {"within": "2h"}))
        if rng.random() < 0.3:
            options["retry"] = rng.choice((1, 3, ["5s", "1m"]))
        if rng.random() < 0.2:
            options["on_crash"] = "skip"
        if self.prioritizes and self.ranks.random() < 0.4:
            options["priority"] = self.ranks.choice((-100, -1, 0, 1, 1, 100))
        return options

    def _needs(self) -> dict[str, object]:
        """What a new job asks of the node that runs it."""
        return {}

    async def _add(self) -> None:
        assert self._scheduler is not None
        name = f"job-{self._names}"
        self._names += 1
        kind = self.rng.choices([kind for kind, _ in self.kinds], [often for _, often in self.kinds])[0]
        needs = self._needs()
        payload = {"n": self._names, **needs}
        await self._scheduler.add_job(name, self._trigger(), kind=kind, payload=payload, **self._options(), **needs)
        self.acknowledged.add(name)

    def _any(self) -> str:
        return f"job-{self.rng.randrange(max(1, self._names))}"

    async def _pause(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.pause_job(self._any(), note="for a while" if self.rng.random() < 0.5 else None)
        await self._regret()

    async def _resume(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.resume_job(self._any())
        await self._regret()

    async def _edit(self) -> None:
        assert self._scheduler is not None
        changes = self._options() if self.rng.random() < 0.5 else {"trigger": self._trigger()}
        await self._scheduler.update_job(self._any(), **changes)

    async def _remove(self) -> None:
        assert self._scheduler is not None
        name = self._any()
        self.removed.add(name)
        await self._scheduler.remove_job(name)
        await self._regret()

    async def _regret(self) -> None:
        """Some take back what they did, at once or after a while."""
        if self.regrets.random() < 0.4:
            await self.clock.sleep(self.regrets.choice((0, 0, 20, 300, 550)))
            if self._scheduler is not None:
                await self._scheduler.undo()
                self.undone += 1

    async def _run_now(self) -> None:
        assert self._scheduler is not None
        await self._scheduler.run_job(self._any())

    async def _some_run(self) -> str | None:
        assert self._scheduler is not None
        runs = await self._scheduler.get_run_log(limit=20)
        return self.rng.choice(runs).id if runs else None

    async def _cancel(self) -> None:
        assert self._scheduler is not None
        run_id = await self._some_run()
        if run_id is not None:
            self.cancelled.add(ids.decode(run_id)[1])
            await self._scheduler.cancel_run(run_id)

    async def _retry(self) -> None:
        assert self._scheduler is not None
        run_id = await self._some_run()
        if run_id is not None:
            await self._scheduler.retry_run(run_id)

    async def _complete(self) -> None:
        assert self._scheduler is not None
        for found in await self._scheduler.get_run_log(limit=30):
            if found.status == "waiting":
                await self._scheduler.complete_run(found.id, {"ok": True})
                return
