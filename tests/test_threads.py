"""Threads of their own for what blocks: bounded, counted where they do not come back, and never waited for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading

import pytest

from tests.waiting import eventually
from wakeful import Scheduler, threads
from wakeful import clock as clocks
from wakeful.console.opening import now_ms
from wakeful.console.store_location import StoreLocation
from wakeful.domains.delivery import sending
from wakeful.domains.delivery.tables import DeliveryFilter
from wakeful.domains.delivery.views import list_deliveries
from wakeful.errors import ThreadsBusy
from wakeful.surfaces.cli.doctor import examine
from wakeful.threads import LimitedThreadPool, left_behind


class Gate:
    """A call that begins, and returns once it is let."""

    def __init__(self):
        self.begun, self.open = threading.Semaphore(0), threading.Event()

    def __call__(self, *_):
        self.begun.release()
        self.open.wait()

    async def begins(self, room):
        """The task that waits for it, once a thread has begun it."""
        task = asyncio.ensure_future(room.call(self))
        await asyncio.to_thread(self.begun.acquire)
        return task


async def give_up(task):
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_a_call_has_the_context_of_its_caller_and_its_answer_or_error_is_theirs():
    known = contextvars.ContextVar("known", default=0)

    async def main():
        known.set(7)
        room = LimitedThreadPool("tests")
        assert await room.call(known.get) == 7
        with pytest.raises(ZeroDivisionError):
            await room.call(lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await room.call(lambda: next(iter(())))

    asyncio.run(main())


@pytest.mark.promise("X26")
def test_calls_that_are_given_up_are_counted_until_they_return_and_take_no_thread_of_another_room():
    gate, changes = Gate(), []

    async def main():
        stuck, other = LimitedThreadPool("stuck", 2), LimitedThreadPool("other", 2)
        unwatch = threads.watch(lambda: changes.append(left_behind()))
        for number in range(2):
            await give_up(await gate.begins(stuck))
            assert left_behind() == {"stuck": number + 1}
        with pytest.raises(ThreadsBusy, match="2 calls of stuck did not return, and no thread is left"):
            await stuck.call(int)
        assert await other.call(int) == 0
        gate.open.set()
        await asyncio.to_thread(eventually, left_behind, lambda left: not left)
        assert await stuck.call(int) == 0
        unwatch()
        assert changes == [{"stuck": 1}, {"stuck": 2}, {"stuck": 1}, {}]

    asyncio.run(main())


def test_what_no_thread_has_begun_is_not_done_once_it_is_given_up():
    gate, done = Gate(), []

    async def main():
        room = LimitedThreadPool("queue", 1)
        first = await gate.begins(room)
        second = asyncio.ensure_future(room.call(done.append, 1))
        await clocks.sleep(0)
        await give_up(second)
        assert left_behind() == {}
        gate.open.set()
        await first
        assert await room.call(lambda: list(done)) == []

    asyncio.run(main())


def test_a_process_ends_beside_a_thread_that_never_does():
    code = (
        "import asyncio, threading\nfrom wakeful.threads import LimitedThreadPool\n"
        "async def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    loop.set_default_executor(LimitedThreadPool('rest'))\n"
        "    loop.run_in_executor(None, threading.Event().wait)\n"
        "    LimitedThreadPool('own').submit(threading.Event().wait)\n"
        "asyncio.run(main())\nprint('ended')\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout == "ended\n"


@pytest.mark.promise("A8", "X26")
def test_a_connector_that_hangs_is_an_alert_until_its_calls_return_and_sends_no_more_than_it_has_threads(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sending, "SEND_LIMIT_S", 0.02)
    monkeypatch.setattr("wakeful.domains.delivery.rules.LADDER", (1, 1, 1, 1))
    gate = Gate()
    url = f"sqlite:///{tmp_path}/t.db"

    async def until(ask, good):
        while not good(found := await ask()):
            await clocks.sleep(0.005)
        return found

    async def main():
        async with Scheduler(url) as scheduler, asyncio.timeout(60):
            scheduler.connectors.register("sms", gate, rules={"attempts": 6})
            await scheduler.start()
            await scheduler.deliver("hello", to="sms")

            async def hung():
                return [alert.message for alert in await scheduler.list_alerts() if alert.kind == "hung"]

            async def failed():
                found = await scheduler.read(lambda tx: list_deliveries(tx, DeliveryFilter()))
                return [one for one in found if one["status"] == "failed"]

            (message,) = await until(failed, bool)
            assert message["last_error"] == "4 calls of connector sms did not return, and no thread is left."
            (said,) = await until(hung, lambda found: found and found[0].startswith("4 calls"))
            assert said.startswith("4 calls of connector sms did not return in time on ")
            checks = await asyncio.to_thread(examine, StoreLocation(url, None, tmp_path / "t.db"), now_ms())
            assert any("4 calls of connector sms" in check.found and not check.ok for check in checks)
            gate.open.set()
            await until(hung, lambda found: not found)
            await scheduler.stop()

    asyncio.run(main())
