"""Event streams in virtual time: what is sent when, and when a stream ends."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from tests.api.sse import parsed, reading
from wakeful import Every, NewJob, Scheduler
from wakeful.routing.auth import Caller, Gate
from wakeful.routing.problems import ApiError
from wakeful.routing.settings import ConnectionLimits
from wakeful.surfaces.api import event_feed
from wakeful.surfaces.api import events as module
from wakeful.surfaces.api.event_feed import Feed, RenderedGroup
from wakeful.surfaces.api.events import EventStream, Reader, ReaderCounts, ReadGrant, StreamCursor
from wakeful.testing import VirtualClock, run


class Wire:
    """The other end of a stream: takes what is sent, until it is stopped."""

    def __init__(self):
        self.chunks = []
        self.taking = asyncio.Event()
        self.taking.set()
        self.left = asyncio.Event()
        self.over = False

    async def send(self, message):
        await self.taking.wait()
        if message["type"] == "http.response.body":
            self.chunks.append(message["body"].decode())
            self.over = not message["more_body"]

    async def receive(self):
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self):
        return "".join(self.chunks)

    @property
    def events(self):
        return list(parsed(self.text.split("\n")))


class Scene:
    """A scheduler in virtual time, and streams of its events."""

    def __init__(self, scheduler, clock):
        self.scheduler, self.clock = scheduler, clock
        self.ending = asyncio.Event()
        self.feed, self.streams = Feed(scheduler, self.ending), ReaderCounts(ConnectionLimits())
        self.gate = Gate(scheduler, clock)
        self.token = None

    async def read(self, wire, token=None, place=None, streams=None):
        if token is None:
            token = self.token = self.token or await self.scheduler.create_token("reader", "viewer")
        right = ReadGrant(Caller("ana", "viewer"), self.gate, token)
        stream = EventStream(Reader(self.feed, streams, place), self.feed, self.streams, right, self.ending)
        task = asyncio.create_task(stream({}, wire.receive, wire.send))
        await self.clock.sleep("1s")
        return task

    async def touch(self, count=1):
        for _ in range(count):
            await self.scheduler.pause_job("a", "again")


def virtual(test):
    """Run a test with a scene in virtual time."""

    def wrapper(tmp_path, monkeypatch):
        clock = VirtualClock()

        async def main():
            async with Scheduler(f"sqlite:///{tmp_path}/wakeful.db", clock=clock, timezone="UTC") as scheduler:
                await scheduler.add_jobs([NewJob("a", Every("2h"))])
                await test(Scene(scheduler, clock), monkeypatch)

        run(main(), clock)

    wrapper.__name__ = test.__name__
    return wrapper


@virtual
async def test_a_quiet_stream_beats_every_fifteen_seconds(scene, monkeypatch):
    token = await scene.scheduler.create_token("ana", "viewer")
    wire = Wire()
    task = await scene.read(wire, token)
    await scene.clock.sleep("61s")
    assert wire.text.count(": beat\n\n") == 4
    wire.left.set()
    await task
    assert scene.feed._task is None, "without readers nothing is read"


@virtual
async def test_a_reader_that_catches_up_is_sent_little_at_once_and_all_of_it(scene, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHARS", 1_000)
    await scene.touch(50)
    reader = Reader(scene.feed, None, StreamCursor(0))
    await reader.begin()
    batches = []
    while batch := await reader.more():
        batches.append(batch)
    whole = await scene.feed.after(0, None)
    assert [one for batch in batches for one in batch] == [one for group in whole[0] for one in group.frames()]
    assert len(batches) > 5
    assert max(len("".join(batch)) for batch in batches) < 2 * 1_000


@virtual
async def test_a_reader_whose_token_is_revoked_is_let_go(scene, monkeypatch):
    token, wire = await scene.scheduler.create_token("ana", "viewer"), Wire()
    task = await scene.read(wire, token)
    await scene.scheduler.revoke_token("ana")
    await scene.clock.sleep("20s")
    await task
    assert (wire.events[-1].event, wire.events[-1].data) == ("closing", {"reason": "unauthorized"})


@virtual
async def test_a_revoked_token_loses_its_stream_within_five_seconds_while_events_come(scene, monkeypatch):
    token, wire = await scene.scheduler.create_token("ana", "viewer"), Wire()
    task = await scene.read(wire, token)
    for number in range(60):
        if number == 30:
            await scene.scheduler.revoke_token("ana")
        await scene.touch()
        await scene.clock.sleep("1s")
        if number == 30 + 6:
            break
    assert task.done(), "six seconds of events after the end of its right"
    assert (wire.events[-1].event, wire.events[-1].data) == ("closing", {"reason": "unauthorized"})
    assert len(wire.events) > 30, "and it read until then"
    assert scene.gate.failures.wait("here") == 0


def test_a_server_ends_the_stream_of_a_revoked_token_though_events_go_on(server, client):
    assert client.post("/api/jobs", json={"name": "noisy", "every": "6h", "kind": "noise"}).status_code == 201
    token = server.terminal.ask("token", "create", "listener", "--role", "viewer").out.strip()
    over = threading.Event()

    def noise():
        while not over.wait(0.05):
            client.post("/api/jobs/noisy/pause", json={"note": "again"})

    with server.client(token) as listener, reading(listener, stream="job") as events:
        assert server.terminal.ask("token", "revoke", "listener").code == 0
        maker = threading.Thread(target=noise)
        maker.start()
        try:
            said = list(events)
        finally:
            over.set()
            maker.join()
    assert (said[-1].event, said[-1].data) == ("closing", {"reason": "unauthorized"})
    assert len(said) < 20 * 10, "a matter of seconds"


@virtual
async def test_a_slow_reader_is_notified_and_dropped_while_others_go_on(scene, monkeypatch):
    monkeypatch.setattr(module, "MOST_BEHIND", 300)
    slow, quick = Wire(), Wire()
    tasks = [await scene.read(wire) for wire in (slow, quick)]
    slow.taking.clear()
    for _ in range(10):
        await scene.touch(40)
        await scene.clock.sleep("1s")
    assert len(quick.events) == 400
    slow.taking.set()
    await scene.clock.sleep("1s")
    last = slow.events[-1]
    assert (last.event, last.data["reason"], slow.over) == ("dropped", "slow", True)
    again = Wire()
    tasks.append(await scene.read(again, place=module.read_place(last.data["resume_after"])))
    assert slow.events[:-1] + again.events == quick.events, "and comes back without a gap"
    for wire in (quick, again):
        wire.left.set()
    await asyncio.gather(*tasks)


@virtual
async def test_a_reader_that_takes_nothing_is_cut_off(scene, monkeypatch):
    wire = Wire()
    task = await scene.read(wire)
    wire.taking.clear()
    await scene.touch()
    await scene.clock.sleep("70s")
    wire.taking.set()
    await asyncio.wait_for(task, 5)
    assert wire.over


@virtual
async def test_a_fault_in_a_stream_is_not_swallowed(scene, monkeypatch):
    async def broken(*_):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(scene.feed, "after", broken)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        await (await scene.read(Wire()))


@virtual
async def test_what_is_kept_in_memory_is_bounded_and_the_store_has_the_rest(scene, monkeypatch):
    monkeypatch.setattr("wakeful.surfaces.api.event_feed.RING_CHARS", 2_000)
    wire = Wire()
    await scene.touch(500)
    _, newest = await scene.scheduler.server_side.event_ids()
    task = await scene.read(wire, place=StreamCursor(0))
    await scene.touch(500)
    await scene.clock.sleep("5s")
    assert len(scene.feed._ring) < 60
    assert scene.feed._chars == sum(one.chars for one in scene.feed._ring) <= 2_000
    ids = [int(one.id.partition("-")[0]) for one in wire.events]
    assert ids == list(range(1, newest + 501))
    wire.left.set()
    await task


@pytest.mark.promise("X24")
@virtual
async def test_the_groups_in_memory_are_no_more_after_an_hour_than_after_a_minute(scene, monkeypatch):
    monkeypatch.setattr("wakeful.surfaces.api.event_feed.RING_GROUPS", 100)
    wire = Wire()
    task = await scene.read(wire)
    counts = []
    for _ in range(20):
        await scene.touch(60)
        await scene.clock.sleep("3m")
        gc.collect()
        counts.append(sum(isinstance(one, RenderedGroup) for one in gc.get_objects()))
    assert max(counts) <= 100, counts
    assert len(wire.events) == 20 * 60, "and the reader got all"
    wire.left.set()
    await task


@pytest.mark.promise("X24")
@virtual
async def test_a_reader_looks_only_at_what_is_new_however_much_is_kept_for_others(scene, monkeypatch):
    looked = [0]

    class Counted(list):
        def __getitem__(self, at):
            looked[0] += 1
            return super().__getitem__(at)

        def __iter__(self):
            for one in super().__iter__():
                looked[0] += 1
                yield one

    scene.feed._ring = Counted()
    wires = [Wire() for _ in range(5)]
    tasks = [await scene.read(wire) for wire in wires]
    await scene.touch(1000)
    await scene.clock.sleep("1s")
    assert len(scene.feed._ring) == 1000, "all of it is kept"
    looked[0] = 0
    await scene.touch()
    await scene.clock.sleep("1s")
    assert looked[0] <= 100 * len(wires), "a few searches for its place, and the one that is new"
    assert [len(wire.events) for wire in wires] == [1001] * 5
    for wire in wires:
        wire.left.set()
    await asyncio.gather(*tasks)


@pytest.mark.promise("X24")
@virtual
async def test_events_are_written_out_once_for_all_readers(scene, monkeypatch):
    written = []
    events_of = event_feed.events_of
    monkeypatch.setattr(event_feed, "events_of", lambda group: written.append(group.id) or events_of(group))
    wires = [Wire() for _ in range(10)]
    tasks = [await scene.read(wire) for wire in wires]
    await scene.touch(50)
    await scene.clock.sleep("1s")
    assert len(written) == 50
    assert [len(wire.events) for wire in wires] == [50] * 10
    for wire in wires:
        wire.left.set()
    await asyncio.gather(*tasks)


@virtual
async def test_streams_are_bounded_in_all_and_of_each_caller(scene, monkeypatch):
    scene.streams = ReaderCounts(ConnectionLimits(streams=3, streams_of_one=2))
    wires = [Wire(), Wire()]
    tasks = [await scene.read(wire) for wire in wires]
    with pytest.raises(ApiError) as refused:
        scene.streams.check("ana")
    assert refused.value.status == 429
    scene.streams.check("ben")
    with scene.streams.open("ben"), pytest.raises(ApiError) as refused:
        scene.streams.check("cid")
    assert refused.value.status == 503
    for wire in wires:
        wire.left.set()
    await asyncio.gather(*tasks)
    scene.streams.check("ana")


def test_streams_leave_half_of_the_connections_to_others():
    assert ConnectionLimits(most=20).most_streams == 10
