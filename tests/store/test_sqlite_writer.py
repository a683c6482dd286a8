"""The one writer of a SQLite store, other processes beside it, and what is on disk when it is announced."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from datetime import UTC, datetime

import pytest

from tests.store.another_process import AnotherProcess, output_of
from tests.store.samples import NOW, OpenStore, job, run
from wakeful import Once, Scheduler
from wakeful.clock import SystemClock
from wakeful.errors import StoreFull
from wakeful.store.records import RunDetails

PATIENCE_S = 120


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def store(file, clock):
    with OpenStore(f"sqlite:///{file}", clock) as opened:
        yield opened


def seen_by_others(file, sql):
    """What any other process would read from the file right now."""
    connection = sqlite3.connect(file)
    found = connection.execute(sql).fetchall()
    connection.close()
    return found


# -- on disk before it is announced -----------------------------------------------------------------------------------


@pytest.mark.promise("H12")
def test_the_writer_keeps_a_log_and_forces_every_commit_to_the_disk(store):
    def settings(tx):
        return [tx.jobs._session.rows(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")]

    assert store.write(settings) == ["wal", 2]
    assert store.read(settings) == ["wal", 2]


@pytest.mark.promise("H12")
def test_what_is_answered_or_announced_can_be_read_by_another_process_at_that_moment(store, file):
    found = []
    store.store.on_events(lambda _: found.append(seen_by_others(file, "SELECT key FROM lanes")))

    async def main():
        await store.store.write(lambda tx: (tx.lanes.add({"a": 1}), tx.events.emit("run", 1)))
        found.append(seen_by_others(file, "SELECT key FROM lanes"))

    store.do(main())
    assert found == [[("a",)], [("a",)]]


@pytest.mark.promise("H12")
def test_a_run_is_on_disk_before_its_handler_is_called_and_its_end_before_it_is_announced(file):
    found = {}

    async def main():
        ended = asyncio.Event()
        async with Scheduler(f"sqlite:///{file}") as scheduler:

            @scheduler.on_job_due("work")
            async def work(run):
                found["called"] = seen_by_others(file, "SELECT status, outcome, attempt FROM runs")

            @scheduler.subscribe
            def listen(event):
                if "finished" in str(event):
                    found["announced"] = seen_by_others(file, "SELECT status, outcome, attempt FROM runs")
                    ended.set()

            await scheduler.start()
            await scheduler.add_job("once", Once(datetime.now(UTC)), kind="work")
            found["added"] = seen_by_others(file, "SELECT name FROM jobs")
            async with asyncio.timeout(PATIENCE_S):
                await ended.wait()

    asyncio.run(main())
    assert found == {"added": [("once",)], "called": [("active", None, 1)], "announced": [("done", "success", 1)]}


# -- beside other processes -------------------------------------------------------------------------------------------


def test_anothers_write_gets_in_while_this_one_commits_back_to_back(store, file):
    """The other asks once and again without waiting in between; here the writer is never idle until it got in."""
    stubborn = """
connection = sqlite3.connect(url[10:], timeout=0, isolation_level=None)
say("ready")
wait()
while True:
    try:
        connection.execute("INSERT INTO lanes (key, used) VALUES ('theirs', 1)")
        break
    except sqlite3.OperationalError:
        pass
say("in")
wait()
"""
    commits = 0

    async def keep_busy():
        nonlocal commits
        while not await store.store.write(lambda tx: "theirs" in tx.lanes.all()):
            commits += 1
            assert commits < 20_000

    async def main():
        await asyncio.gather(*(keep_busy() for _ in range(50)))

    with AnotherProcess(stubborn, f"sqlite:///{file}") as other:
        assert other.hear() == "ready"
        other.say()
        store.do(main())
        assert other.hear() == "in"


def test_a_change_made_elsewhere_is_noticed_once_and_an_own_one_never(store, file):
    def changed():
        return store.do(store.store.changed_elsewhere())

    assert not changed()
    store.write(lambda tx: tx.lanes.add({"ours": 1}))
    assert not changed()
    assert output_of("attempt(url)", f"sqlite:///{file}") == "done"
    assert changed()
    assert not changed()
    store.write(lambda tx: tx.lanes.add({"ours": 1}))
    assert output_of("attempt(url)", f"sqlite:///{file}") == "done"
    store.write(lambda tx: tx.lanes.add({"ours": 1}))
    assert [changed(), changed()] == [True, False]


def test_a_writer_that_rests_is_not_woken_to_notice_a_change_and_a_busy_one_is_asked_in_its_turn(store, file):
    handed_in = []
    write = store.store.write

    async def recorded(work, **options):
        handed_in.append(work)
        return await write(work, **options)

    store.store.write = recorded
    assert output_of("attempt(url)", f"sqlite:///{file}") == "done"
    assert store.do(store.store.changed_elsewhere())
    assert handed_in == []

    async def while_busy():
        begun, end = threading.Event(), threading.Event()
        busy = asyncio.ensure_future(write(lambda _: (begun.set(), end.wait(120))))
        await asyncio.to_thread(begun.wait, 20)
        asked = asyncio.ensure_future(store.store.changed_elsewhere())
        await asyncio.sleep(0)
        assert len(handed_in) == 1
        end.set()
        await busy
        return await asked

    assert not store.do(while_busy())


def test_looking_in_from_elsewhere_is_no_change(store, file):
    only_reads = """
async def main():
    store = await opened(url)
    say(await store.read(lambda tx: tx.lanes.all()))
    await store.close()
asyncio.run(main())
"""
    assert output_of(only_reads, f"sqlite:///{file}") == "{}"
    assert not store.do(store.store.changed_elsewhere())


def test_a_question_among_works_that_wait_is_answered(store):
    async def main():
        works = [store.store.write(lambda tx, n=n: tx.lanes.add({f"lane-{n}": 1})) for n in range(20)]
        return await asyncio.gather(*works, store.store.changed_elsewhere(), store.store.changed_elsewhere())

    assert store.do(main()) == [None] * 20 + [False, False]


# -- what SQLite alone can do, or do wrong ----------------------------------------------------------------------------


def test_any_text_survives_also_a_zero_in_it(store):
    text = 'before\0after \x01\x1f\x7f "quoted" \\ \u2028 \U0010ffff end'
    given = job(1, due_at=NOW, last_error=text, notes=text)
    store.add(given)
    store.write(lambda tx: tx.runs.detail([RunDetails(1, error=text)]))
    assert store.read(lambda tx: tx.jobs.due(NOW, 1)) == [given]
    assert store.read(lambda tx: tx.jobs.by_id(1)) == given
    assert store.read(lambda tx: (tx.runs.details(1).error, tx.runs.details_of([1])[1].error)) == (text, text)


def test_a_commit_that_fails_fails_every_work_in_it_and_announces_nothing(store):
    heard = []
    store.store.on_events(heard.extend)
    (pages,) = store.store._writer.execute("PRAGMA page_count").fetchone()
    store.store._writer.execute(f"PRAGMA max_page_count = {pages + 3}")

    async def main():
        works = [
            store.store.write(lambda tx, n=n: (tx.events.emit("run", n), tx.facts.put({f"{n}": "x" * 9000})))
            for n in range(12)
        ]
        return await asyncio.gather(*works, return_exceptions=True)

    ended = store.do(main())
    stored = {key for key in map(str, range(12)) if store.read(lambda tx: tx.facts.of([key]))}  # noqa: B023
    assert {str(number) for number, result in enumerate(ended) if not isinstance(result, StoreFull)} == stored
    assert any(isinstance(result, StoreFull) for result in ended)
    assert sorted(event.body for event in heard) == sorted(f"[{key}]" for key in stored)
    assert [group.seq for group in store.read(lambda tx: tx.events.after(0))] == list(range(1, len(stored) + 1))


REFUSED_COMMIT = """
async def main(inline):
    store, heard = make_store(url, SystemClock(), inline=inline), []
    await store.open()
    store.on_events(heard.extend)
    await store.write(lambda tx: tx.lanes.add({"before": 1}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(url[10:] + "-wal"), resource.RLIM_INFINITY))
    try:
        await store.write(lambda tx: (tx.lanes.add({"never": 1}), tx.events.emit("run", 1)))
    except SchedulerError:
        await asyncio.sleep(0)
        say(heard, await store.read(lambda tx: tx.lanes.all()))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.write(lambda tx: tx.events.emit("run", 1))
    say([group.seq for group in heard])
    await store.close()
"""


@pytest.mark.promise("H12")
@pytest.mark.parametrize("inline", [False, True], ids=["in a thread", "inline"])
def test_a_commit_that_the_disk_refuses_is_not_announced(file, inline):
    with AnotherProcess(f"{REFUSED_COMMIT}\nasyncio.run(main({inline}))", f"sqlite:///{file}") as other:
        assert other.hear() == "[] {'before': 1}"
        assert other.hear() == "[1]"


@pytest.mark.parametrize("inline", [False, True], ids=["in a thread", "inline"])
def test_a_store_without_a_thread_keeps_the_same_promises(tmp_path, clock, inline):
    heard = []
    with OpenStore(f"sqlite:///{tmp_path / 'one.db'}", clock, inline=inline) as store:
        store.store.on_events(heard.extend)
        store.add(job(1, due_at=5))
        with pytest.raises(KeyError):
            store.write(lambda tx: (tx.events.emit("run", 1), tx.runs.add([run(1)]), {}["nothing"]))
        assert store.read(lambda tx: (tx.runs.all_open(), tx.events.after(0))) == ([], [])
        assert heard == []
        store.write(lambda tx: tx.events.emit("run", 1))
        assert len(heard) == 1
