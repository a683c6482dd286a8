"""The example in the docstring of every public method runs as it stands there."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect

import pytest

import wakeful
from tests.house.test_scheduler_names import USERS
from wakeful import Every, Manual, Scheduler, Wait

#: What a guide runs, and what needs several nodes: their examples are only read.
READ = {"run_forever", "drain_node"}
CLASS = "Scheduler"


def documentation(name):
    return inspect.getdoc(getattr(Scheduler, name) if name != CLASS else Scheduler) or ""


def examples(name):
    return doctest.DocTestParser().get_examples(documentation(name))


async def execute(name):
    """Run the examples on a scheduler with jobs that succeed, fail, ask for approval and wait for a report."""
    async with Scheduler("sqlite:///wakeful.db", node="here") as scheduler:

        @scheduler.on_job_due("backup")
        async def backup():
            return {"files": 3}

        @scheduler.on_job_due("flaky")
        async def flaky():
            raise OSError

        @scheduler.on_job_due("export")
        async def export():
            return Wait()

        await scheduler.add_job("backup", Every("6h"), kind="backup")
        await scheduler.add_job("flaky", Manual(), kind="flaky")
        await scheduler.add_job("publish", Manual(), kind="publish", approval=True)
        await scheduler.add_job("export", Manual(), kind="export")
        scheduler.on_job_due("publish", backup)
        await scheduler.start()
        if "waiting" in documentation(name):
            await until_waiting(scheduler, "publish", "export")
        names = {key: getattr(wakeful, key) for key in wakeful.__all__}
        names |= {"scheduler": scheduler, "asyncio": asyncio}
        for example in examples(name):
            printed = await evaluate(example.source, names)
            matches = doctest.OutputChecker().check_output(example.want, printed, doctest.ELLIPSIS)
            assert matches, f"{name}: {example.source}{example.want!r} is promised, and it prints {printed!r}"


async def until_waiting(scheduler, *jobs):
    """Start the jobs and return when their runs wait."""
    changed = asyncio.Event()
    unsubscribe = scheduler.subscribe(lambda _: changed.set())
    runs = [await scheduler.run_job(job) for job in jobs]
    while {(await scheduler.get_run(run)).status for run in runs} != {"waiting"}:
        await asyncio.wait_for(changed.wait(), 30)
        changed.clear()
    unsubscribe()


def test_the_class_documents_every_parameter():
    parameters = set(inspect.signature(Scheduler).parameters)
    assert [name for name in parameters if f"`{name}`" not in documentation(CLASS)] == []


async def evaluate(source, names):
    """What an interactive session would print for a statement, which may await."""
    printed = []
    names["print"] = lambda *args: printed.append(" ".join(map(str, args)) + "\n")
    tree = ast.parse(source)
    mode = "eval" if isinstance(tree.body[0], ast.Expr) else "exec"
    code = compile(source, "<example>", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(code, names)  # noqa: S307 - our own docstrings
    if inspect.iscoroutine(value):
        value = await value
    return "".join(printed) + (f"{value!r}\n" if value is not None and mode == "eval" else "")


@pytest.mark.promise("H16")
@pytest.mark.parametrize("name", [CLASS, *sorted(USERS)])
def test_every_method_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examples(name), f"Scheduler.{name} has no example"
    if name not in READ:
        asyncio.run(execute(name))
