"""Lives of a workflow's process that end at a chosen point, and what is left in the end."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from wakeful import ids

CHECKPOINTS = ["prepared", "in_flight", "mutated", "committed"]
POINTS = [
    *[(phase, "begins") for phase in ("poll", "prepare", "mutate", "next")],
    *[(phase, "ends") for phase in ("poll", "prepare", "mutate", "next")],
    *[(name, side) for name in CHECKPOINTS for side in ("before", "after")],
    ("poll committed", "before"),
    ("poll committed", "after"),
]
AGAIN = [("reconcile", "begins"), ("mutated", "after"), ("committed", "before"), ("prepared", "after")]


class Dying(BaseException):
    """The process ends here: nothing of it may be caught."""


class Death:
    """Ends the process at one point, the first time it gets there with something to do."""

    def __init__(self, room, point):
        self.room, self.point = room, point
        self.scheduler, self.over = None, asyncio.Event()

    async def reach(self, *point):
        if self.is_at(*point):
            await self.die()

    def is_at(self, *point):
        """Whether this is the point; what runs before the first mail has nothing to do, and does not count."""
        began = "poll" in point[0] or "poll" in self.room.phases()
        return point == self.point and began and not self.over.is_set()

    async def die(self):
        self.over.set()
        self.ending = asyncio.ensure_future(self.room.scene.crash(self.scheduler))
        await asyncio.Event().wait()  # nothing more happens in this process

    def watch(self, scheduler):
        """See every checkpoint of this scheduler."""
        self.scheduler, transact = scheduler, scheduler.transact
        death = self

        async def watched(work, **options):
            seen = []

            def noting(tx, context):
                result = work(tx, context)
                named = Death.name_of(result)
                seen[:] = [named]
                if named is not None and death.is_at(named, "before"):
                    raise Dying
                return result

            try:
                result = await transact(noting, **options)
            except Dying:
                await death.die()
            if seen[0] is not None and death.is_at(seen[0], "after"):
                await death.die()
            return result

        scheduler.transact = watched

    @staticmethod
    def name_of(result):
        """Which checkpoint it was that returned this attempt."""
        row = getattr(result, "attempt", result)
        phase = getattr(row, "phase", None)
        name = {"mutating": "in_flight"}.get(phase, phase)
        return f"poll {name}" if getattr(row, "handler", None) == "poll" else name


async def live(room, death, interval="1h"):
    """A life of the process, until it dies or for that long."""
    scheduler = room.open()
    await scheduler.open()
    if death is not None:
        death.watch(scheduler)
        for phase in ("poll", "prepare", "mutate", "next", "reconcile"):
            room.act[phase] = lambda ctx, phase=phase: death.reach(phase, "begins")
            room.after[phase] = lambda ctx, phase=phase: death.reach(phase, "ends")
    else:
        room.act, room.after = {}, {}
    await scheduler.start()
    if death is None:
        await room.sleep(interval)
        return scheduler
    await asyncio.wait(
        {asyncio.ensure_future(death.over.wait()), asyncio.ensure_future(room.sleep(interval))},
        return_when=asyncio.FIRST_COMPLETED,
    )
    if not death.over.is_set():
        await scheduler.close()
        return None
    await death.ending
    return None


async def settle_truly(room, scheduler):
    """A person looks into the ledger and says what happened."""
    row = await room.row(scheduler)
    if row.issue != "reconciliation":
        return False
    verdict = "happened" if room.ledger else "did_not_happen"
    await room.act_on(scheduler, "settle", ids.run_text(row.issue_run), verdict, who="Ada")
    await room.sleep("10m")
    return True


class End(NamedTuple):
    """How it ended: whether the mutation had happened when the process died, and whether a person was asked."""

    had_happened: bool
    asked: bool
    runs: int


async def die_and_recover(room, points, *, reconciles):
    """Die at each of the points in turn, the first of which must be reached; then live on, and see what there is."""
    room.mails, room.reconciles = ["a"], reconciles
    had_happened = False
    for number, point in enumerate(points):
        death = Death(room, point)
        await live(room, death)
        assert number or death.over.is_set(), "the point was never reached"
        assert len(room.ledger) <= 1, "mutated twice"
        had_happened = had_happened or (not number and bool(room.ledger))
    scheduler = await live(room, None)
    try:
        assert len(room.ledger) <= 1
        asked = await settle_truly(room, scheduler)
        assert not (asked and reconciles)
        assert room.ledger == ["a"]
        assert await room.events(scheduler) == {"a": "consumed"}
        assert await room.events(scheduler, "rows") == {"a": "pending"}
        assert (await room.row(scheduler)).issue is None
        handlers = [await room.handler(scheduler, name) for name in ("poll", "append")]
        assert [handler.open_run for handler in handlers] == [None, None]
        attempts = await room.attempts(scheduler)
        assert [one for one in attempts if one.status == "active"] == []
        return End(had_happened, asked, len(attempts))
    finally:
        await scheduler.close()
