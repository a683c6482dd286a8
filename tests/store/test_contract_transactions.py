"""What every store promises about its transactions: all or nothing, isolated, and announced only once stored."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from pathlib import Path

import pytest

from tests.store.samples import OpenStore, job, run
from wakeful.clock import SystemClock
from wakeful.errors import InvalidJob, SchedulerNotOpen, StoreError
from wakeful.store import make_store
from wakeful.store.alerts import Alerts
from wakeful.store.events import EventVerbs, Skips
from wakeful.store.facts import Facts
from wakeful.store.jobs import Jobs
from wakeful.store.lanes import Lanes
from wakeful.store.nodes import Members
from wakeful.store.runs import Runs

PATIENCE_S = 120


class Gate:
    """A work that keeps the writer busy until it is let go, so that what is handed in meanwhile waits together."""

    def __init__(self):
        self._entered, self._open = threading.Event(), threading.Event()

    def __call__(self, tx):
        self._entered.set()
        assert self._open.wait(PATIENCE_S)

    async def entered(self):
        assert await asyncio.to_thread(self._entered.wait, PATIENCE_S)

    def open(self):
        self._open.set()


def mark(name):
    return lambda tx: tx.lanes.add({name: 1})


def fail_after(name):
    def work(tx):
        tx.lanes.add({name: 1})
        tx.events.emit("run", name)
        raise KeyError(name)

    return work


def lanes(store):
    return set(store.read(lambda tx: tx.lanes.all()))


def test_a_work_answers_with_its_result_and_knows_the_time(store, clock):
    assert store.write(lambda tx: ("answer", tx.now)) == ("answer", clock.now())
    assert store.read(lambda tx: tx.now) == clock.now()


def test_what_a_work_wrote_it_reads_and_everybody_after_it(store):
    assert store.write(lambda tx: (tx.lanes.add({"a": 1}), tx.lanes.used(["a"]))[1]) == {"a": 1}
    assert store.read(lambda tx: tx.lanes.used(["a"])) == {"a": 1}


def test_a_work_that_raises_undoes_all_of_it(store):
    def work(tx):
        tx.jobs.add([job(1)])
        tx.runs.add([run(1)])
        tx.lanes.add({"a": 1})
        tx.events.emit("run", "started")
        tx.facts.put({"k": "v"})
        raise LookupError("changed its mind")

    with pytest.raises(LookupError, match="changed its mind"):
        store.write(work)
    assert store.read(lambda tx: (tx.jobs.by_id(1), tx.runs.get(1), tx.lanes.all())) == (None, None, {})
    assert store.read(lambda tx: (tx.events.after(0), tx.facts.of(["k"]))) == ([], {})


def test_a_row_the_schema_refuses_undoes_the_work_it_was_part_of(store):
    store.add_runs(run(1))
    with pytest.raises(StoreError):
        store.write(lambda tx: (tx.lanes.add({"a": 1}), tx.runs.add([run(1)])))
    assert lanes(store) == set()


def test_half_of_a_surrogate_pair_is_refused_in_words(store):
    with pytest.raises(InvalidJob, match="surrogate"):
        store.write(lambda tx: (tx.lanes.add({"a": 1}), tx.facts.put({"k": "\ud800"})))
    assert lanes(store) == set()


def test_of_works_that_wait_together_a_failing_one_undoes_only_itself(store):
    gate = Gate()
    works = [
        mark("a"),
        fail_after("b"),
        mark("c"),
        lambda tx: tx.runs.add([run(1), run(1)]),
        mark("d"),
        fail_after("e"),
    ]

    async def main():
        first = asyncio.create_task(store.store.write(gate))
        await gate.entered()
        waiting = [asyncio.create_task(store.store.write(work)) for work in works]
        await asyncio.sleep(0)
        gate.open()
        await first
        return await asyncio.gather(*waiting, return_exceptions=True)

    ended = [type(result) for result in store.do(main())]
    assert ended[0] is ended[2] is ended[4] is type(None)
    assert ended[1] is ended[5] is KeyError
    assert issubclass(ended[3], StoreError)
    assert lanes(store) == {"a", "c", "d"}
    assert store.read(lambda tx: (tx.runs.all_open(), tx.events.after(0))) == ([], [])


def test_works_are_done_in_the_order_they_were_handed_in(store):
    async def main():
        await asyncio.gather(*(store.store.write(lambda tx, n=n: tx.events.emit("run", n)) for n in range(200)))

    store.do(main())
    found = store.read(lambda tx: tx.events.after(0, limit=500))
    assert [(group.seq, group.body) for group in found] == [(n + 1, f"[{n}]") for n in range(200)]


def test_a_work_whose_caller_gave_up_is_stored_all_the_same(store):
    gate, received = Gate(), []
    store.store.on_events(lambda groups: received.extend(group.body for group in groups))

    async def main():
        first = asyncio.create_task(store.store.write(gate))
        await gate.entered()
        given_up = asyncio.create_task(
            store.store.write(lambda tx: (tx.lanes.add({"a": 1}), tx.events.emit("run", "done")))
        )
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        gate.open()
        await first
        return await store.store.write(lambda tx: tx.lanes.used(["a"]))

    assert store.do(main()) == {"a": 1}
    assert received == ['["done"]']


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_read_sees_one_moment_and_does_not_block_writers(store):
    looked, written = threading.Event(), threading.Event()
    store.write(mark("a"))

    def look_twice(tx):
        before = tx.lanes.all()
        looked.set()
        assert written.wait(PATIENCE_S)
        return before, tx.lanes.all()

    async def main():
        reading = asyncio.create_task(store.store.read(look_twice))
        assert await asyncio.to_thread(looked.wait, PATIENCE_S)
        await store.store.write(mark("b"))
        written.set()
        return await reading

    assert store.do(main()) == ({"a": 1}, {"a": 1})
    assert lanes(store) == {"a", "b"}


def test_a_read_is_not_kept_waiting_by_a_write(store):
    gate = Gate()

    async def main():
        writing = asyncio.create_task(store.store.write(gate))
        await gate.entered()
        found = await store.store.read(lambda tx: tx.lanes.all())
        gate.open()
        await writing
        return found

    assert store.do(main()) == {}


def test_a_read_that_writes_is_refused_and_changes_nothing(store):
    with pytest.raises(StoreError):
        store.read(mark("a"))
    assert lanes(store) == set()
    store.write(mark("b"))


def test_what_a_read_raises_reaches_its_caller_and_the_next_read_is_fresh(store):
    with pytest.raises(ZeroDivisionError):
        store.read(lambda tx: (tx.lanes.all(), 1 / 0))
    store.write(mark("a"))
    assert lanes(store) == {"a"}


# -- what is announced, and when --------------------------------------------------------------------------------------


def test_listeners_hear_of_a_commit_before_its_caller_goes_on_and_never_of_a_failure(store):
    heard = []
    store.store.on_events(lambda groups: heard.extend((group.stream, group.seq, group.body) for group in groups))
    with pytest.raises(KeyError):
        store.write(fail_after("b"))
    assert heard == []

    async def main():
        await store.store.write(lambda tx: tx.events.emit("run", 1, 2))
        return list(heard)

    assert store.do(main()) == [("run", 2, "[1,2]")]
    store.write(mark("quiet"))
    assert len(heard) == 1
    assert [(g.stream, g.seq, g.body) for g in store.read(lambda tx: tx.events.after(0))] == heard


def test_uncommitted_changes_are_not_announced(store):
    gate, heard = Gate(), []
    store.store.on_events(heard.extend)

    async def main():
        writing = asyncio.create_task(store.store.write(lambda tx: (tx.events.emit("run", 1), gate(tx))))
        await gate.entered()
        early = list(heard), await store.store.read(lambda tx: tx.events.after(0))
        gate.open()
        await writing
        return early

    assert store.do(main()) == ([], [])
    assert len(heard) == 1


class TakenMeanwhile(list):
    """What seemed to be left was taken by another thread before it could be."""

    def __bool__(self):
        return True

    def __len__(self):
        return 1


def test_a_reader_whose_connection_was_taken_by_another_at_the_last_moment_opens_one(store_url):
    async def main():
        store = make_store(store_url, SystemClock())
        await store.open()
        store._idle_readers = TakenMeanwhile()
        try:
            return await store.read(lambda tx: tx.now)
        finally:
            store._idle_readers = [*store._idle_readers]
            await store.close()

    assert asyncio.run(main()) > 0


# -- open and closed --------------------------------------------------------------------------------------------------


def test_a_store_that_is_not_open_says_so(store_url, clock):
    opened = OpenStore(store_url, clock)
    for call in (opened.write, opened.read):
        with pytest.raises(SchedulerNotOpen):
            call(lambda tx: tx.now)
    with opened:
        opened.do(opened.store.open())  # once more changes nothing
        assert opened.write(lambda tx: tx.now)
        opened.do(opened.store.close())
        opened.do(opened.store.close())
        for call in (opened.write, opened.read):
            with pytest.raises(SchedulerNotOpen):
                call(lambda tx: tx.now)


@pytest.mark.promise("H12")
def test_what_was_stored_is_there_when_the_store_is_opened_again(store_url, clock):
    with OpenStore(store_url, clock) as first:
        first.add(job(1, due_at=5))
        first.add_runs(run(1, slot=5))
        first.write(lambda tx: tx.events.emit("run", 1))
    with OpenStore(store_url, clock) as second:
        assert second.read(lambda tx: tx.jobs.due(5, 9)) == [job(1, due_at=5)]
        assert second.read(lambda tx: tx.runs.all_open()) == [run(1, slot=5)]
        second.write(lambda tx: tx.events.emit("run", 2))
        assert [group.seq for group in second.read(lambda tx: tx.events.after(0))] == [1, 2]


def test_a_closing_store_finishes_what_it_was_given_and_refuses_the_rest(store_url, clock):
    gate = Gate()
    opened = OpenStore(store_url, clock)

    async def main():
        first = asyncio.create_task(opened.store.write(gate))
        await gate.entered()
        before = [asyncio.create_task(opened.store.write(mark(f"lane-{n}"))) for n in range(100)]
        await asyncio.sleep(0)
        closing = [asyncio.create_task(opened.store.close()) for _ in range(2)]
        await asyncio.sleep(0)
        after = asyncio.create_task(opened.store.write(mark("late")))
        gate.open()
        ended = await asyncio.gather(first, *before, *closing, return_exceptions=True)
        with pytest.raises(SchedulerNotOpen):
            await after
        return ended

    with opened:
        assert opened.do(main()) == [None] * 103
        opened.do(opened.store.open())
        assert len(lanes(opened)) == 100


# -- nothing is left out ----------------------------------------------------------------------------------------------


def test_every_verb_of_the_store_is_held_to_this_contract():
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_contract_*.py"))
    verbs = {
        f"{'events' if group is EventVerbs else group.__name__.lower()}.{name}"
        for group in (Jobs, Runs, Lanes, Alerts, EventVerbs, Facts, Members, Skips)
        for name, _ in inspect.getmembers(group, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(verbs) > 50
    assert sorted(verbs - set(re.findall(r"tx\.(\w+\.\w+)\(", tests))) == []
