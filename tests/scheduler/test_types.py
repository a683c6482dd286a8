"""A type checker finds misspelt and wrong options, on the scheduler and on its synchronous facade."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.house.source import PACKAGE, ROOT
from wakeful.kernel.rules.option_fields import JobOptions
from wakeful.kernel.rules.options import OPTION_NAMES

GOOD = """
from datetime import timedelta
import wakeful
from wakeful import Context, Every, MutationResult, NewJob, Prepared, Run, Scheduler, Workflow
from wakeful.domains.workflows import Event, Events, PlainContext

scheduler = Scheduler("sqlite://")

@scheduler.job(Every("1h"), timeout="10m", retry=["1s", timedelta(seconds=2)], lanes={"gpu": 1})
async def fetch(run: Run) -> int:
    return run.attempt

@scheduler.job(Every("1h"), retry={"delays": [1, 2.5], "on": "transient"}, catch_up={"within": "2h"})
def tidy() -> None: ...

@scheduler.on_job_due("report")
def report(run: Run) -> None: ...

async def main() -> None:
    added: str = await scheduler.add_job("a", Every("1h"), overlap="queue", priority=3, if_exists="keep")
    await scheduler.add_jobs([NewJob("b", Every("1h"), max_errors=0)])
    await scheduler.update_job(added, enabled=False, timeout=None, trigger=Every("2h"))

workflow = Workflow("flow")
sort = workflow.consumer("sort", subscribes=["mail"])

async def post(row: str) -> int: return 1

@sort.prepare
async def prepare(ctx: Context, state: dict[str, int]) -> Prepared:
    mails: Events = await ctx.peek("mail", limit=10)
    first: Event = mails[0]
    return Prepared({"mail": [first.id]})

@sort.mutate
async def mutate(ctx: Context, prepared: Prepared) -> int:
    return await ctx.call(post, "a")

@sort.next
async def next_(ctx: Context, prepared: Prepared, result: MutationResult, state: dict[str, int]) -> dict[str, int]:
    length: int = await ctx.call(len, "abc")
    await ctx.publish("sorted", message_id=ctx.run_id, payload=result.value)
    return {"rows": state.get("rows", 0) + length}

plain = workflow.consumer("plain", subscribes=["mail"])

@plain.prepare
def plain_prepare(ctx: PlainContext, state: dict[str, int]) -> Prepared:
    found: Events = ctx.peek("mail", where={"order": 7})
    length: int = ctx.call(len, ctx.run_id)
    answer: int = ctx.call(post, "a")
    return Prepared({"mail": [one.id for one in found]}, length + answer)

async def operate() -> None:
    scheduler.add_workflow(workflow)
    event: dict[str, object] = await scheduler.workflows.publish("flow", "mail", message_id="1")
    await scheduler.workflows.settle("flow", "run_1", "happened", result=3)

with wakeful.sync.Scheduler("sqlite://", timezone="UTC") as blocking:
    shown: dict[str, object] = blocking.workflows.pause("flow", note="holidays")
    @blocking.job(Every("1h"), timeout="10m")
    def nightly(run: Run) -> int:
        return run.attempt

    started: str = blocking.add_job("a", Every("1h"), overlap="queue", if_exists="keep")
    name: str = blocking.update_job(started, timeout=3).name
    attempt: int = nightly(blocking.get_run_log("a", limit=1)[0])
"""

BAD = """
import wakeful
from wakeful import Context, Every, NewJob, Run, Scheduler
scheduler = Scheduler("sqlite://")
blocking = wakeful.sync.Scheduler("sqlite://")
async def main() -> None:
    scheduler.job(Every("1h"), tiemout="10m")  # error
    scheduler.job(Every("1h"), overlap="sometimes")  # error
    await scheduler.add_job("a", Every("1h"), retires=3)  # error
    await scheduler.add_job("a", Every("1h"), max_errors="3")  # error
    await scheduler.add_job("a", Every("1h"), if_exists="replace")  # error
    await scheduler.update_job("a", enabled="no")  # error
    await scheduler.update_job("a", payloda=1)  # error
    NewJob("b", Every("1h"), lanes=["gpu"])  # error
    blocking.add_job("a", Every("1h"), tiemout="10m")  # error
    blocking.update_job("a", overlap="sometimes")  # error
    blocking.job(Every("1h"), retires=3)  # error
    number: int = blocking.add_job("a", Every("1h"))  # error
    wakeful.sync.Scheduler("sqlite://", time_zone="UTC")  # error
    await scheduler.workflows.settle("flow", "run_1", "perhaps")  # error
    await scheduler.workflows.publish("flow", "mail")  # error
    blocking.workflows.pause("flow", notes="holidays")  # error
async def post(row: str) -> int: return 1
async def mutate(ctx: Context, prepared: object) -> None:
    await ctx.call(post, 5)  # error
    ctx.approve()  # error
    await ctx.peek("mail", most=3)  # error
@scheduler.on_job_due("report")  # error
def report(run: Run, more: int) -> None: ...
@blocking.on_job_due("report")  # error
def blocking_report(run: Run, more: int) -> None: ...
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What mypy says about both programs: the lines with errors, by file."""
    folder = tmp_path_factory.mktemp("typed")
    for name, program in {"good.py": GOOD, "bad.py": BAD}.items():
        (folder / name).write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache" / "users")]
    done = subprocess.run([*command, "good.py", "bad.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    errors = re.findall(r"^(\w+)\.py:(\d+): error: (.*)", done.stdout, re.MULTILINE)
    return [(file, int(line), text) for file, line, text in errors]


def test_a_type_checker_accepts_every_way_to_write_options(found):
    assert [text for file, _, text in found if file == "good"] == []


def test_a_type_checker_finds_misspelt_and_wrong_options(found):
    wrong = {number for number, line in enumerate(BAD.splitlines(), 1) if "# error" in line}
    assert {line for file, line, _ in found if file == "bad"} == wrong
    assert any('did you mean "timeout"?' in text for _, _, text in found)


def test_the_types_name_every_option_there_is():
    assert set(JobOptions.__annotations__) == set(OPTION_NAMES)


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()
