"""`GET /api/events`: what happens, as it happens, as server-sent events that can be taken up where they broke off.

Every event has an id: the group it was stored with and its place in it. A reader that comes back with the last one it
saw gets what follows, from the store, with nothing left out and nothing twice. Each reader is at its own place in the
stored order, so a slow one costs neither the engine nor memory. One that falls
far behind gets a notice and is disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from wakeful.clock import Clock
from wakeful.counting import counted
from wakeful.errors import SchedulerError
from wakeful.kernel.views.events import STREAMS
from wakeful.routing.auth import Caller, Gate, Viewer, presented
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.settings import ConnectionLimits
from wakeful.routing.wiring import Ending, Sched
from wakeful.surfaces.api.event_feed import Feed, RenderedGroup, frame

router = APIRouter(prefix="/api", tags=["events"])

BEAT_S = 15.0
#: A reader's token is looked at again this often, whether events come or not.
CHECK_S = 5.0
#: A reader that was up to date and falls this many groups behind is dropped.
MOST_BEHIND = 5_000
#: So many characters are sent at once, more only where one group has more.
MOST_CHARS = 256 * 1024
#: A reader that takes nothing for so long is gone.
SEND_S = 60.0

_ID = re.compile(r"(\d{1,18})(?:-(\d{1,9}))?")


class StreamCursor(NamedTuple):
    """Where a reader is: everything up to this event of this group has been sent; None: the whole group."""

    group: int
    last: int | None = None


def read_place(text: str | None) -> StreamCursor | None:
    """The place an event's id stands for; 400 for anything else."""
    if text is None or not text.strip():
        return None
    found = _ID.fullmatch(text.strip())
    if found is None:
        raise ApiError(400, "invalid_event_id", "Last-Event-ID is not the id of an event of this server.")
    return StreamCursor(int(found[1]), int(found[2]) if found[2] is not None else None)


def read_streams(text: str | None) -> frozenset[str] | None:
    """The streams that are asked for, by name with commas between; None: all."""
    if text is None:
        return None
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    for name in sorted(names):
        if name not in STREAMS:
            raise ApiError(400, "unknown_stream", f"There is no stream {name!r:.60}: there are {', '.join(STREAMS)}.")
    return names or None


def frames(group: RenderedGroup, place: StreamCursor) -> list[str]:
    """The events of a group that a reader at that place has not seen."""
    if group.id != place.group:
        return group.frames()
    return [] if place.last is None else group.frames()[place.last + 1 :]


class Reader:
    """One reader's way through the stored events."""

    def __init__(self, feed: Feed, streams: frozenset[str] | None, place: StreamCursor | None) -> None:
        self._feed = feed
        self._streams = streams
        self._asked = place
        self._place = place if place is not None else StreamCursor(0)
        self._live = False  # has been up to date once
        self.at_end = False

    async def begin(self) -> list[str]:
        """Find the place; what to send first: that what came before is no longer on record, where that is so."""
        oldest, newest = await self._feed.range()
        if self._asked is None:
            self._place = StreamCursor(newest)
            return []
        asked = self._asked.group
        if oldest - 1 <= asked <= newest:
            return []
        reason = "pruned" if asked <= newest else "ahead"
        self._place = StreamCursor(oldest - 1 if asked <= newest else newest)
        return [frame("gap", {"reason": reason, "after": self._text(self._asked)})]

    @staticmethod
    def _text(place: StreamCursor) -> str:
        return str(place.group) if place.last is None else f"{place.group}-{place.last}"

    async def more(self) -> list[str] | None:
        """Some of the newer events; an empty list if there are none, None if this reader is dropped."""
        groups, newest = await self._feed.after(self._place.group - (self._place.last is not None), self._streams)
        if self._live and newest - self._place.group > MOST_BEHIND and groups:
            return None
        self.at_end = not groups
        found: list[str] = []
        size = 0
        for group in groups:
            if size > MOST_CHARS:
                break
            new = frames(group, self._place)
            found += new
            size += sum(map(len, new))
            self._place = StreamCursor(group.id)
        if not groups:
            self._live = True
            self._place = max(self._place, StreamCursor(newest), key=lambda place: place.group)
        return found

    def let_go(self) -> str:
        behind = {"reason": "slow", "resume_after": self._text(self._place)}
        return frame("dropped", behind)


class ReaderCounts:
    """How many read, in all and of each caller."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._most = limits.most_streams
        self._most_of_one = limits.streams_of_one
        self._open: Counter[str] = Counter()

    def check(self, caller: str) -> None:
        """503 when there are too many, 429 when this caller has too many."""
        if self._open.total() >= self._most:
            raise ApiError(503, "too_many_streams", "Too many streams are open.", headers={"Retry-After": "5"})
        if self._open[caller] >= self._most_of_one:
            sentence = f"{caller} has {counted(self._most_of_one, 'stream')} open already: close one."
            raise ApiError(429, "too_many_streams", sentence, headers={"Retry-After": "5"})

    @contextlib.contextmanager
    def open(self, caller: str) -> Iterator[None]:
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open -= Counter({caller: 1})


class ReadGrant(NamedTuple):
    """The right to read, which may be revoked during the stream."""

    caller: Caller
    gate: Gate
    secret: str | None

    async def holds(self) -> bool:
        return await self.gate.still_valid(self.secret)


class RepeatTimer:
    """Something to be done by the clock, so and so often."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._every = int(seconds * 1000)
        self._clock = clock
        self._last = clock.boot()

    @property
    def left(self) -> float:
        """Seconds until it is due."""
        return max(0, self._last + self._every - self._clock.boot()) / 1000

    def now(self) -> bool:
        """Whether it is due; from then on it is due again when its time has passed."""
        if self.left > 0:
            return False
        self._last = self._clock.boot()
        return True


class EventStream(Response):
    """The answer: events until the reader leaves, falls behind, loses its right, or the server ends."""

    media_type = "text/event-stream"

    def __init__(
        self, reader: Reader, feed: Feed, streams: ReaderCounts, right: ReadGrant, ending: asyncio.Event
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._reader = reader
        self._feed = feed
        self._streams = streams
        self._right = right
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        loop = asyncio.get_running_loop()
        with self._streams.open(self._right.caller.name), self._feed.open():
            pump, gone = loop.create_task(self._pump(send)), loop.create_task(_until_gone(receive))
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
                if pump.done():
                    pump.result()  # a fault of ours is reported as one
            finally:
                pump.cancel()
                gone.cancel()
                await asyncio.gather(pump, gone, return_exceptions=True)

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # A reader that takes nothing, or a store that is gone: it comes back with the last id it saw.
        with contextlib.suppress(TimeoutError, SchedulerError):
            await _send(send, ": wakeful\nretry: 2000\n\n" + "".join(await self._reader.begin()))
            await _send(send, await self._follow(send))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, send: Send) -> str:
        """Send what comes; the last word."""
        beat, check = RepeatTimer(BEAT_S, self._right.gate.clock), RepeatTimer(CHECK_S, self._right.gate.clock)
        while not self._ending.is_set():
            if check.now() and not await self._right.holds():
                return frame("closing", {"reason": "unauthorized"})
            seen = self._feed.turn
            found = await self._reader.more()
            if found is None:
                return self._reader.let_go()
            if found:
                await _send(send, "".join(found))
            elif self._reader.at_end and not await self._feed.changed(seen, min(beat.left, check.left)) and beat.now():
                await _send(send, ": beat\n\n")
        return frame("closing", {"reason": "the server ends"})


async def _send(send: Send, text: str) -> None:
    async with asyncio.timeout(SEND_S):
        await send({"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@router.get(
    "/events",
    operation_id="read_events",
    response_class=StreamingResponse,
    responses={
        **answers(),
        200: {
            "description": "Server-sent events. `event` is the stream's name; `gap` says that some are no longer on "
            "record, `dropped` that this reader fell behind, `closing` that the server ends.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": 'id: 17-0\nevent: run\ndata: {"stream":"run","seq":42,"at":"2026-01-01T09:00:00Z",'
                    '"type":"finished","data":{"run":"run_1frc87n80sngk","job_id":"job_1frc80000nd3p",'
                    '"job":"backup","outcome":"success"}}\n\n',
                }
            },
        },
    },
    summary="Events as they happen",
)
async def read_events(
    *,
    request: Request,
    scheduler: Sched,
    ending: Ending,
    caller: Viewer,
    stream: Annotated[str | None, Query(max_length=200, description="streams, with commas between")] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)] = None,
    last_id: Annotated[
        str | None,
        Query(
            alias="last_event_id", max_length=100, description="the same as the header, for clients that cannot set one"
        ),
    ] = None,
) -> Response:
    wanted, place = read_streams(stream), read_place(last_event_id if last_event_id is not None else last_id)
    state = request.app.state
    if not hasattr(state, "feed"):
        state.feed, state.streams = Feed(scheduler, ending), ReaderCounts(state.settings.connections)
    state.streams.check(caller.name)
    right = ReadGrant(caller, state.gate, presented(request))
    return EventStream(Reader(state.feed, wanted, place), state.feed, state.streams, right, ending)
