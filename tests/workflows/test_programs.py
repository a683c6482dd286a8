"""A program that a change has started goes on when the change is cut off: until it has ended, nothing is asked."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.service.real_time import real
from tests.workflows.test_threads import until
from wakeful import Applied, LogicError, NotApplied, Prepared, Scheduler, ScheduleTriggerError, Workflow
from wakeful.domains.workflows.programs import watch_programs
from wakeful.domains.workflows.threads import Work, is_left, seen_by

PAYS = "import sys; open(sys.argv[1]).read(); open(sys.argv[2], 'a').write('paid ')"


class Till:
    """A till that is a program: it pays once its gate is opened, whatever becomes of who started it."""

    def __init__(self, folder: Path) -> None:
        self.gate, self.book = folder / "gate", folder / "book"
        os.mkfifo(self.gate)
        self.book.touch()
        self.asked: list[str] = []

    async def pay(self, start: str) -> None:
        argv = [sys.executable, "-c", PAYS, str(self.gate), str(self.book)]
        if start == "exec":
            program = await asyncio.create_subprocess_exec(*argv)
        else:
            program = await asyncio.create_subprocess_shell(shlex.join(argv))
        await program.wait()

    def open(self) -> None:
        self.gate.open("w").close()

    def workflow(self, start: str) -> Workflow:
        workflow = Workflow("bank")
        pay = workflow.consumer("pay", subscribes=["bills"], timeout="1s")

        @pay.prepare
        async def prepare(ctx, state):
            return Prepared({"bills": [bill.id for bill in await ctx.peek("bills")]})

        @pay.mutate
        async def mutate(ctx, prepared):
            await ctx.call(self.pay, start)

        @pay.reconcile
        async def reconcile(ctx, prepared):
            self.asked.append(self.book.read_text())
            return Applied() if self.asked[-1] else NotApplied()

        return workflow


@pytest.mark.promise("K7", "K11")
@pytest.mark.parametrize("start", ["exec", "shell"])
@real
async def test_nothing_is_reconciled_before_the_program_of_a_mutation_has_ended(tmp_path, start):
    till = Till(tmp_path)
    async with Scheduler("sqlite://") as scheduler:
        scheduler.add_workflow(till.workflow(start))
        await scheduler.start()
        await scheduler.workflows.publish("bank", "bills", message_id="1")

        async def shown():
            return await scheduler.workflows.get("bank")

        async def statuses():
            return [one["status"] for one in await scheduler.workflows.events("bank")]

        found = await until(shown, lambda found: found["working"] is not None)
        run = found["working"]["run"]
        assert "A thread or program of it is still at work, and must end first." in found["issue"]["message"]
        with pytest.raises(ScheduleTriggerError, match="a thread or program of it is still at work"):
            await scheduler.workflows.settle("bank", run, "did_not_happen")
        assert till.asked == []
        till.open()
        await until(statuses, lambda found: found == ["consumed"])
        assert till.asked == ["paid "]
        assert till.book.read_text() == "paid "


@real
async def test_a_program_that_a_handler_leaves_behind_when_it_returns_was_meant_to_go_on(tmp_path):
    till, work = Till(tmp_path), Work(5)
    watch_programs(asyncio.get_running_loop())
    with seen_by(work):
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", PAYS, till.gate, till.book)
    assert not work.leave(lambda: lambda: None, cut=False)
    till.open()
    assert await program.wait() == 0
    assert not is_left(5)


@real
async def test_a_program_that_has_ended_is_waited_for_no_longer(tmp_path):
    till, work, seen = Till(tmp_path), Work(7), asyncio.Event()
    watch_programs(asyncio.get_running_loop())
    with seen_by(work):
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", PAYS, till.gate, till.book)
    assert work.leave(lambda: seen.set)
    assert is_left(7)
    till.open()
    await seen.wait()
    assert (await program.wait(), is_left(7)) == (0, False)


@real
async def test_a_program_that_cannot_be_started_is_not_waited_for_and_after_the_end_none_is_started():
    work = Work(6)
    watch_programs(asyncio.get_running_loop())
    with seen_by(work):
        with pytest.raises(FileNotFoundError):
            await asyncio.create_subprocess_exec("/no/such/program")
        assert not work.leave(lambda: lambda: None)
        with pytest.raises(LogicError, match="after its handler had been cut off"):
            await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    assert not is_left(6)
