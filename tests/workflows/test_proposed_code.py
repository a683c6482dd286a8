"""Proposed code: nothing of it runs before it is accepted, and then first in a process that has no secrets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys

import pytest

from wakeful import Scheduler, ids
from wakeful.domains.workflows import actions
from wakeful.domains.workflows.configuration import WorkflowSection, install_configured
from wakeful.domains.workflows.fixes.syntax import refuse_other_workflow, refuse_syntax
from wakeful.domains.workflows.fixes.tables import Fixes
from wakeful.domains.workflows.tables import WorkflowVerbs

SECRET = "DB_PASSWORD"  # noqa: S105 - the name of a variable
BROKEN = """
from wakeful import Interval, Workflow
workflow = Workflow("filed")

@workflow.producer(Interval("1h"), publishes=["mail"])
async def poll(ctx, state):
    return {"word": WORD}
"""
SPIES = """
import json, os
with open(%r, "a") as file:
    file.write(json.dumps([os.getpid(), dict(os.environ)]) + "\\n")
print("what a module prints does no harm")
WORD = "right"
"""
ANSWERS = "import json, os, sys\nprint(json.dumps({'files': json.load(open('answer.json'))}))\n"


class Desk:
    """A served workflow in a file, whose code fails, and a program that answers with the files it is given."""

    def __init__(self, folder):
        self.folder, self.trace = folder, folder / "trace.jsonl"
        (folder / "filed.py").write_text(BROKEN)
        (folder / "fix.py").write_text(ANSWERS)
        self.entry = {"file": "filed.py:workflow", "auto_fix": [sys.executable, "fix.py"]}

    def answer(self, files):
        (self.folder / "answer.json").write_text(json.dumps(files))

    @property
    def traces(self):
        return [json.loads(line) for line in self.trace.read_text().splitlines()] if self.trace.exists() else []

    @contextlib.asynccontextmanager
    async def opened(self):
        context = {"folder": self.folder, "file": self.folder / "wakeful.yaml"}
        section = WorkflowSection.model_validate([self.entry], context=context)
        scheduler = Scheduler(f"sqlite:///{self.folder}/w.db")
        install_configured(scheduler, section, None)
        async with scheduler:
            await scheduler.start()
            yield scheduler
            await scheduler.stop()

    async def reached(self, scheduler, *statuses):
        async with asyncio.timeout(60):
            while True:
                fixes = await scheduler.read(lambda tx: tx.of(Fixes).of("filed", 9))
                if fixes and fixes[0].status in statuses:
                    return fixes[0]
                await asyncio.sleep(0.02)


async def approve(scheduler, fix):
    run = ids.run_text(fix.run_id)
    await scheduler.transact(lambda tx, context: actions.approve(tx, context, "filed", run, who="Ada"))


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setenv(SECRET, "hunter2")
    return Desk(tmp_path)


def test_proposed_code_is_not_run_before_it_is_approved_and_then_first_without_secrets(desk):
    desk.answer({"filed.py": BROKEN + SPIES % str(desk.trace)})

    async def main():
        async with desk.opened() as scheduler:
            proposed = await desk.reached(scheduler, "proposed", "failed")
            assert (proposed.status, proposed.made, desk.traces) == ("proposed", None, [])
            await approve(scheduler, proposed)
            applied = await desk.reached(scheduler, "applied", "failed", "lapsed")
            row = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).get("filed"))
            assert (applied.status, applied.made) == ("applied", row.version)

    asyncio.run(main())
    (first, environment), (second, _) = desk.traces
    assert (first != os.getpid(), second) == (True, os.getpid())
    assert SECRET not in environment
    assert environment["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit('no')", "SystemExit: no"),
        ("import os\nos._exit(3)", "its process ended with 3"),
        ("workflow = Workflow('other')\n@workflow.producer(Interval('1h'))\nasync def p(ctx, state): ...", "'other'"),
        ("workflow = globals()['Work' + 'flow']('other')", "other has no handlers"),
        ("del workflow", "no workflow called workflow"),
        ("def broken(:", "SyntaxError"),
    ],
)
def test_an_accepted_correction_that_does_not_load_leaves_the_files_as_they_are(desk, code, why):
    desk.answer({"filed.py": f"{BROKEN}\n{code}\n"})
    desk.entry["auto_fix_apply"] = True

    async def main():
        async with desk.opened() as scheduler:
            return await desk.reached(scheduler, "failed", "applied")

    failed = asyncio.run(main())
    assert failed.status == "failed"
    assert why in failed.note
    assert (desk.folder / "filed.py").read_text() == BROKEN


def test_the_program_that_corrects_gets_what_is_listed_and_no_secret(desk, monkeypatch):
    monkeypatch.setenv("MODEL_KEY", "k1")
    seen = desk.folder / "seen.json"
    (desk.folder / "fix.py").write_text(f"import json, os\njson.dump(dict(os.environ), open({str(seen)!r}, 'w'))\n")
    desk.entry["auto_fix_env"] = ["MODEL_KEY", "MODE=headless", "NOT_SET_HERE"]

    async def main():
        async with desk.opened() as scheduler:
            await desk.reached(scheduler, "none")

    asyncio.run(main())
    environment = json.loads(seen.read_text())
    assert SECRET not in environment
    assert "NOT_SET_HERE" not in environment
    assert (environment["MODEL_KEY"], environment["MODE"]) == ("k1", "headless")


def test_a_correction_does_not_leave_its_folder_through_a_link(desk, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (desk.folder / "lib").symlink_to(elsewhere)
    desk.answer({"filed.py": "WORD = 'right'\n" + BROKEN, "lib/planted.py": "X = 1\n"})
    desk.entry["auto_fix_apply"] = True

    async def main():
        async with desk.opened() as scheduler:
            return await desk.reached(scheduler, "failed", "applied")

    assert "leads out of the workflow's folder" in asyncio.run(main()).note
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("workflow = Workflow('mine')", None),
        ("workflow: Workflow = wakeful.Workflow(name='mine')", None),
        ("workflow = wakeful.Workflow(name='other')", "it is of a workflow called 'other'"),
        ("workflow = Workflow('other')\nworkflow = Workflow('mine')", None),
        ("workflow = make()", None),
        ("from parts import workflow", None),
        ("from parts import *", None),
        ("import parts as workflow", None),
        ("a, workflow = make()", None),
        ("if True:\n    workflow = Workflow('mine')", None),
        ("flow = Workflow('mine')", "it has no workflow called workflow"),
    ],
)
def test_what_a_source_holds_is_told_from_its_syntax_where_that_says_it(source, wrong):
    assert refuse_other_workflow(source, "workflow", "mine") == wrong


@pytest.mark.parametrize("text", ["def broken(:", "x = 1\0", "(" * 100_000, "return 1"])
def test_what_is_no_python_is_refused_in_words(text):
    assert "Error" in refuse_syntax({"a.py": "x = 1\n", "b.py": text})
