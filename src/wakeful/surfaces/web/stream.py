"""`/ui/stream`: which streams had events, a few times a second, so that pages fetch what changed.

It carries no content but the verdict's state: a page that missed something fetches everything once. One comes every
five seconds in any case, as a sign of life.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from wakeful import clock as clocks
from wakeful.errors import SchedulerError
from wakeful.routing.auth import Viewer, presented
from wakeful.routing.wiring import Ending, Sched
from wakeful.scheduler import Scheduler
from wakeful.surfaces.api.event_feed import Feed
from wakeful.surfaces.api.events import ReaderCounts

router = APIRouter(include_in_schema=False)

PAUSE_S = 0.25
BEAT_S = 5.0
MOST_IDS = 50


class Changes:
    """What happened since the last message to a page."""

    def __init__(self, feed: Feed, at: int) -> None:
        self._feed = feed
        self._at = at

    async def take(self) -> dict[str, object] | None:
        """The streams that had events since, with the ids they are about; None where there were none."""
        streams: dict[str, None] = {}
        ids: dict[str, None] = {}
        while True:
            groups, newest = await self._feed.after(self._at, None)
            if not groups:
                self._at = max(self._at, newest)
                break
            for group in groups:
                streams[group.stream] = None
                if len(ids) <= MOST_IDS:
                    ids.update(dict.fromkeys(_ids_in(group.frames())))
            self._at = groups[-1].id
        if not streams:
            return None
        return {"streams": list(streams), "ids": list(ids) if len(ids) <= MOST_IDS else "many", "at": self._at}


def _ids_in(frames: list[str]) -> list[str]:
    found = []
    for frame in frames:
        data = json.loads(frame.partition("data: ")[2].split("\n", 1)[0]).get("data", {})
        found += [
            str(data[name]) for name in ("run", "job", "agent", "workflow", "delivery", "alert") if data.get(name)
        ]
    return found


@router.get("/ui/stream")
async def read_changes(request: Request, scheduler: Sched, ending: Ending, caller: Viewer) -> Response:
    state = request.app.state
    if not hasattr(state, "feed"):
        state.feed, state.streams = Feed(scheduler, ending), ReaderCounts(state.settings.connections)
    state.streams.check(caller.name)
    secret = presented(request)

    async def lines() -> AsyncIterator[str]:
        with state.streams.open(caller.name), state.feed.open(), contextlib.suppress(SchedulerError):
            _, newest = await state.feed.range()
            changes = Changes(state.feed, newest)
            yield f"retry: 1000\n{_message('hello', {**await _sign(scheduler), 'at': newest})}"
            while not ending.is_set():
                if not await state.gate.still_valid(secret):
                    yield _message("closing", {"reason": "unauthorized"})
                    return
                turn = state.feed.turn
                found = await changes.take()
                if found is not None:
                    yield _message("changed", found)
                    await clocks.sleep(PAUSE_S)
                elif not await state.feed.changed(turn, BEAT_S):
                    yield _message("beat", await _sign(scheduler))
            yield _message("closing", {"reason": "the server ends"})

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _sign(scheduler: Scheduler) -> dict[str, object]:
    """The server's time, and whether all is well: what a page without regions shows as well."""
    return {"now": scheduler.clock.now(), "verdict": (await scheduler.get_verdict()).state}


def _message(event: str, data: dict[str, object]) -> str:
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
