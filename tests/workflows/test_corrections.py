"""Code that failed: its hook is asked for a correction, three times at most, and a person decides about it."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from tests.workflows.mailroom import fails, virtual
from wakeful import LogicError, Scheduler, Workflow, ids
from wakeful.domains.workflows import views
from wakeful.domains.workflows.configuration import WorkflowSection, install_configured
from wakeful.domains.workflows.fixes.hook import NoAnswer, read_answer
from wakeful.domains.workflows.fixes.tables import Fixes
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.errors import InvalidJob

pytestmark = pytest.mark.promise("K12")


class Hook:
    """Answers with a corrected version of the mailroom, or with what it is given."""

    def __init__(self, room, answers=()):
        self.room, self.answers, self.requests = room, list(answers), []

    async def __call__(self, request):
        self.requests.append(request)
        found = self.answers.pop(0) if self.answers else "corrected"
        if isinstance(found, Exception):
            raise found
        if not isinstance(found, str):
            return found
        workflow = self.room.workflow()
        if found != "same":
            workflow.version = f"{found}-{len(self.requests)}"
        if found == "corrected":
            self.room.act.clear()
        return workflow


def opened(room, hook, *, apply):
    scheduler = room.scene.scheduler()
    workflow = room.workflow()
    workflow.auto_fix, workflow.auto_fix_apply = hook, apply
    scheduler.add_workflow(workflow)
    return scheduler


async def fixes(scheduler):
    """Oldest first."""
    return (await scheduler.read(lambda tx: tx.of(Fixes).of("mailroom", 50)))[::-1]


async def shown(scheduler):
    return await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))


def wrong(room, phase, times=99):
    """The code of a phase is wrong once there is a mail."""
    failing = fails(LogicError("no subject"), times)

    async def act(ctx):
        if "poll" in room.phases():
            await failing(ctx)

    room.act[phase] = act


@pytest.mark.parametrize("phase", ["prepare", "next"])
@virtual
async def test_a_correction_is_deployed_and_the_run_goes_on_where_the_rules_say(room, phase):
    room.mails, hook = ["a"], Hook(room)
    wrong(room, phase)
    async with opened(room, hook, apply=True) as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.ledger == ["a"]
        [request] = hook.requests
        assert (request.workflow, request.handler, request.attempt) == ("mailroom", "append", 1)
        assert request.phase == ("preparing" if phase == "prepare" else "emitting")
        assert request.error == "no subject"
        assert "LogicError: no subject" in request.traceback
        assert "wakeful/domains/workflows/running.py" not in request.traceback
        assert "async def prepare(ctx, state)" in request.files["append.prepare"]
        [fix] = await fixes(scheduler)
        assert (fix.status, fix.made, fix.who) == ("applied", "corrected-1", "auto_fix_apply")
        assert json.loads(fix.files).keys() == request.files.keys()
        attempts = await room.attempts(scheduler)
        failed = next(one for one in attempts if one.status == "failed:logic")
        again = next(one for one in attempts if one.retry_of == failed.id)
        assert (again.version, again.status) == ("corrected-1", "committed")
        assert (again.begins, again.result) == (
            ("prepare", again.result) if phase == "prepare" else ("emit", failed.result)
        )
        assert await room.events(scheduler) == {"a": "consumed"}
        assert await scheduler.list_alerts() == []
        assert (await room.handler(scheduler)).fixes == 0


@pytest.mark.parametrize("verdict", ["approve", "reject"])
@virtual
async def test_without_leave_to_apply_a_correction_waits_for_a_person(room, verdict):
    room.mails, hook = ["a"], Hook(room)
    wrong(room, "prepare", times=1)
    async with opened(room, hook, apply=False) as scheduler:
        await scheduler.start()
        await room.sleep("10m")
        assert len(hook.requests) == 1
        issue = (await shown(scheduler))["issue"]
        assert (issue["kind"], issue["actions"]) == ("logic", ["approve", "reject"])
        assert "A correction is proposed" in issue["message"]
        [alert] = await scheduler.list_alerts()
        assert "waits for your approval" in alert.message
        assert room.ledger == []
        await room.act_on(scheduler, verdict, issue["run"], who="Ada", note="looks right")
        await room.sleep("1m")
        [fix] = await fixes(scheduler)
        assert fix.who == "Ada"
        [done] = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).actions("mailroom", 9))
        assert (done.who, done.detail) == ("Ada", f"{ids.encode('fix', fix.id)}: looks right")
        if verdict == "approve":
            assert (fix.status, room.ledger) == ("applied", ["a"])
        else:
            assert (fix.status, room.ledger) == ("refused", [])
            await room.sleep("10m")
            assert len(hook.requests) == 1, "a person decides now"
            await room.act_on(scheduler, "resume", who="Ada")
            await room.sleep("1m")
            assert room.ledger == ["a"]
        assert (await room.row(scheduler)).issue is None
        assert await scheduler.list_alerts() == []


@pytest.mark.parametrize(
    ("answers", "statuses", "tries"),
    [
        (["wrong", "wrong", "wrong", "wrong"], ["applied"] * 3, 3),
        ([RuntimeError("no model"), {"files": 7}, 17, None], ["failed"] * 3, 3),
        ([Workflow("other"), "same", 17], ["failed"] * 3, 3),
        ([None], ["none"], 1),
        (["wrong", None], ["applied", "none"], 2),
    ],
)
@virtual
async def test_after_three_tries_or_without_an_answer_a_person_is_asked(room, answers, statuses, tries):
    room.mails, hook = ["a"], Hook(room, answers)
    wrong(room, "prepare")
    async with opened(room, hook, apply=True) as scheduler:
        await scheduler.start()
        await room.sleep("10m")
        assert len(hook.requests) == tries
        assert [request.attempt for request in hook.requests] == list(range(1, tries + 1))
        assert [fix.status for fix in await fixes(scheduler)] == statuses
        assert (await room.row(scheduler)).issue == "logic"
        [alert] = [one for one in await scheduler.list_alerts() if one.kind == "workflow"]
        assert "no subject" in alert.message
        room.act.clear()
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert room.ledger == ["a"]
        assert (await room.handler(scheduler)).fixes == 0, "from here on there are three tries again"


@virtual
async def test_a_process_that_dies_while_it_asks_has_used_one_try(room):
    room.mails, asked = ["a"], []
    wrong(room, "prepare")

    async def hang(request):
        asked.append(request.attempt)
        await asyncio.Event().wait()

    scheduler = opened(room, hang, apply=True)
    await scheduler.open()
    await scheduler.start()
    await room.sleep("1m")
    assert asked == [1]
    await room.crash(scheduler)
    hook = Hook(room)
    async with opened(room, hook, apply=True) as scheduler:
        await scheduler.start()
        await room.sleep("15m")
        assert [request.attempt for request in hook.requests] == [2]
        assert [fix.status for fix in await fixes(scheduler)] == ["failed", "applied"]
        assert room.ledger == ["a"]


@virtual
async def test_a_correction_that_only_its_process_had_is_asked_for_again(room):
    room.mails, hook = ["a"], Hook(room, ["wrong", "corrected"])
    wrong(room, "prepare")
    scheduler = opened(room, hook, apply=False)
    await scheduler.open()
    await scheduler.start()
    await room.sleep("1m")
    await room.crash(scheduler)
    async with opened(room, hook, apply=False) as scheduler:
        await scheduler.start()
        issue = (await shown(scheduler))["issue"]
        await room.act_on(scheduler, "approve", issue["run"], who="Ada")
        await room.sleep("1m")
        lost, again = await fixes(scheduler)
        assert (lost.status, again.status) == ("failed", "proposed")
        assert "was lost" in lost.note


def test_a_program_corrects_files_and_a_workflow_in_code_has_none():
    scheduler = Scheduler("sqlite://")
    workflow = Workflow("coded", auto_fix=["./fix"])

    @workflow.consumer("c", subscribes=["t"]).prepare
    async def prepare(ctx, state): ...

    with pytest.raises(InvalidJob, match="give a function"):
        scheduler.add_workflow(workflow)
    with pytest.raises(InvalidJob, match="auto_fix is a function"):
        Workflow("coded", auto_fix="./fix")


@pytest.mark.parametrize("name", ["../a.py", "/etc/a.py", "a.txt", "~/a.py", "b/../../a.py"])
def test_a_correction_stays_in_the_workflows_folder(name):
    with pytest.raises(NoAnswer, match="no Python file"):
        read_answer({"files": {name: "x = 1"}})


BROKEN = """
from wakeful import Interval, Workflow
workflow = Workflow("filed")

@workflow.producer(Interval("1h"), publishes=["mail"])
async def poll(ctx, state):
    return {"word": WORD}
"""
FIX = """
import json, sys
asked = json.load(sys.stdin)
text = asked["files"]["filed.py"]
if asked["attempt"] == 1:
    answer = {"filed.py": text + "def broken(:"}
else:
    answer = {"filed.py": "from words import WORD\\n" + text, "words.py": "WORD = 'right'\\n"}
open("asked.json", "a").write(json.dumps([asked["attempt"], asked["error"], "poll" in asked["traceback"]]) + "\\n")
print(json.dumps({"files": answer, "note": "WORD was not defined"}))
"""


def test_a_program_is_given_the_failure_and_its_files_are_written_and_deployed(tmp_path):
    (tmp_path / "filed.py").write_text(BROKEN)
    (tmp_path / "fix.py").write_text(FIX)
    entry = {"file": "filed.py:workflow", "auto_fix": [sys.executable, "fix.py"], "auto_fix_apply": True}
    context = {"folder": tmp_path, "file": tmp_path / "wakeful.yaml"}
    section = WorkflowSection.model_validate([entry], context=context)

    async def main():
        scheduler = Scheduler(f"sqlite:///{tmp_path}/w.db")
        install_configured(scheduler, section, None)
        async with scheduler:
            await scheduler.start()
            async with asyncio.timeout(60):
                while True:
                    handler = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).handler("filed", "poll"))
                    if handler.state != "{}":
                        break
                    await asyncio.sleep(0.05)
            row = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).get("filed"))
            kept = (await scheduler.read(lambda tx: tx.of(Fixes).of("filed", 9)))[::-1]
            await scheduler.stop()
            return handler, row, kept

    handler, row, kept = asyncio.run(main())
    assert handler.state == '{"word":"right"}'
    assert [fix.status for fix in kept] == ["failed", "applied"]
    assert "cannot be loaded: SyntaxError" in kept[0].note
    assert (kept[1].note, kept[1].made) == ("WORD was not defined", row.version)
    assert json.loads(kept[1].before) == {"filed.py": BROKEN}, "what was there is kept"
    assert (tmp_path / "words.py").read_text() == "WORD = 'right'\n"
    lines = [json.loads(line) for line in (tmp_path / "asked.json").read_text().splitlines()]
    assert lines == [[1, "name 'WORD' is not defined", True], [2, "name 'WORD' is not defined", True]]
