"""`undo`: what a command did by mistake, taken back."""

from __future__ import annotations

import asyncio
import getpass
import re
from types import SimpleNamespace

import pytest

from wakeful import Scheduler, ids
from wakeful.kernel.actions.selections import BulkResult
from wakeful.kernel.engine.alerts import open_alert
from wakeful.surfaces.cli import pausing


def action_in(answer):
    """The action that a command says it can be undone by."""
    found = re.search(r"^undo within 10 minutes: wakeful undo (act_[0-9a-z]{13})$", answer.err, re.MULTILINE)
    assert found, answer
    return found[1]


def statuses(wakeful):
    return {job["name"]: job["status"] for job in wakeful("list", "--json").json}


@pytest.mark.promise("X27")
@pytest.mark.usefixtures("stocked")
def test_the_last_action_is_taken_back_or_the_one_that_is_named(wakeful):
    first = action_in(wakeful("pause", "other"))
    last = action_in(wakeful("remove", "job", "-y"))
    assert statuses(wakeful) == {"other": "paused"}
    answer = wakeful("undo", first)
    assert (answer.code, answer.out) == (0, "Not paused any more: other\n")
    assert wakeful("undo", "--json").json == {"id": last, "what": "remove", "restored": ["job"], "kept": {}, "count": 1}
    assert statuses(wakeful) == {"job": "idle", "other": "idle"}
    answer = wakeful("undo")
    assert answer.code == 3
    assert "did nothing in the last 10 minutes that can be undone" in answer.err


@pytest.mark.promise("X27")
@pytest.mark.usefixtures("stocked")
def test_all_that_one_command_changed_is_one_action(wakeful):
    action = action_in(wakeful("pause", "job", "other"))
    assert action_in(wakeful("resume", "job")) != action
    answer = wakeful("undo", action)
    assert answer.out == "Not paused any more: other\n"
    assert f"Note: job was resumed since, by {getpass.getuser()}: left as it is." in answer.err
    assert wakeful("undo", action).code == 4
    done = wakeful("undo", "--list", "--json").json
    (resumed, paused) = [action for action in done if action["undoable"]]
    assert (resumed["what"], resumed["actor"], resumed["via"]) == ("resume", getpass.getuser(), "cli")
    assert (paused["what"], paused["changed"], paused["undo_until"] is None) == ("pause", 2, False)
    listed = wakeful("undo", "--list").out
    assert "job and 1 more" in listed
    assert wakeful("resume", "--all", "--json").json["action"] is None  # there was nothing to do


@pytest.mark.promise("X27")
def test_a_token_that_was_revoked_is_on_record_and_the_revoking_cannot_be_undone(wakeful):
    wakeful("token", "create", "laptop", "--role", "viewer")
    assert wakeful("token", "revoke", "laptop", "--yes").code == 0
    (head,) = wakeful("undo", "--list", "--json").json
    assert (head["what"], head["name"], head["actor"], head["via"]) == (
        "revoke_token", "laptop", getpass.getuser(), "cli",
    )  # fmt: skip
    assert (head["undoable"], head["undo_until"]) == (False, None)
    assert "no" in wakeful("undo", "--list").out.splitlines()[-1].split()
    refused = wakeful("undo", head["id"])
    assert (refused.code, "cannot be undone: create another token instead" in refused.err) == (4, True)
    assert wakeful("undo").code == 3, "the last thing that can be undone is meant"


def test_there_is_an_answer_without_actions_too(wakeful):
    assert wakeful("undo", "--list").out.startswith("Nothing on record")
    assert wakeful("undo", "--list", "--json").json == []
    assert wakeful("undo", "--list", "act_0000000000000").code == 2
    assert wakeful("undo").code == 3


FILE = """
jobs:
  kept: {every: 1h, command: ["true"]}
  gone: {every: 1h, command: ["true"]}
  second: {every: 1h, command: ["true"]}
agents:
  fox: {runner: {start: ["true"]}, heartbeat: {every: 1h}}
workflows: [flow.py:workflow]
"""
FLOW = """
from wakeful import Interval, Workflow

workflow = Workflow("flow")


@workflow.producer(Interval("1h"))
async def poll(ctx, state):
    return {}
"""
#: Commands that can be undone, what they are on record as, and what is said when they are. `ALERT` is an alert's id.
UNDOABLE = [
    ("pause job other", "pause", "Not paused any more: job, other"),
    ("resume stopped", "resume", "Stopped again: stopped"),
    ("remove job -y", "remove", "Restored: job"),
    ("pause --all", "pause_all", "Not paused any more: everything"),
    ("alert ack ALERT", "acknowledge", "Not acknowledged any more: ALERT"),
    ("alert snooze ALERT job --for 2h", "snooze", "Not snoozed any more: ALERT, job"),
    ("agent pause fox", "pause", "Not paused any more: fox.heartbeat, fox.wake"),
    ("workflow pause flow", "pause_workflow", "Not paused any more: flow"),
    ("workflow drain flow", "drain_workflow", "Not drained any more: flow"),
]


def standing(wakeful):
    """All that the commands change, as it is shown."""
    jobs = {job["name"]: (job["status"], job["next_run_at"], job["notes"]) for job in wakeful("list", "--json").json}
    alerts = [(one["id"], one["acked_at"], one["snoozed_until"]) for one in wakeful("alert", "list", "--json").json]
    flows = [(one["name"], one["paused"], one["draining"]) for one in wakeful("workflow", "list", "--json").json]
    return jobs, alerts, flows, wakeful("status", "--json").json["hold"]


async def with_alert(store):
    """An alert about the job, and its id."""
    async with Scheduler(f"sqlite:///{store}") as scheduler:
        job_id = ids.decode((await scheduler.get_job("job")).id)[1]
        await scheduler.transact(lambda tx, node: open_alert(tx, node, "failed", job_id, "It failed", job_id=job_id))
        return (await scheduler.list_alerts())[0].id


@pytest.mark.promise("X27")
@pytest.mark.usefixtures("stocked")
def test_every_command_that_can_be_undone_says_how_and_is_on_record(wakeful, here, store):
    (here / "flow.py").write_text(FLOW)
    (here / "wakeful.yaml").write_text(FILE)
    assert wakeful("apply", "wakeful.yaml", "--db", store).code == 0
    wakeful("add", "stopped", "--every", "1h", "--", "true")
    wakeful("pause", "stopped")
    alert = asyncio.run(with_alert(store))
    for command, what, said in UNDOABLE:
        before = standing(wakeful)
        action = action_in(wakeful(*command.replace("ALERT", alert).split()))
        assert standing(wakeful) != before, command
        (head, *_) = wakeful("undo", "--list", "--json").json
        assert (head["id"], head["what"], head["actor"], head["via"]) == (action, what, getpass.getuser(), "cli")
        words, _, names = wakeful("undo").out.strip().partition(": ")
        assert f"{words}: {', '.join(sorted(names.split(', ')))}" == said.replace("ALERT", alert)
        assert standing(wakeful) == before, command


@pytest.mark.promise("X27")
def test_what_applying_a_file_removed_and_switched_is_one_action(wakeful, here, store):
    (here / "wakeful.yaml").write_text(FILE.partition("agents:")[0])
    wakeful("apply", "wakeful.yaml", "--db", store)
    before = standing(wakeful)
    (here / "wakeful.yaml").write_text(
        """
jobs:
  kept: {every: 1h, command: ["true"], enabled: false}
  second: {every: 1h, command: ["true"]}
"""
    )
    answer = wakeful("apply", "wakeful.yaml", "--db", store)
    assert statuses(wakeful) == {"kept": "disabled", "second": "idle"}
    (head, *_) = wakeful("undo", "--list", "--json").json
    assert (head["id"], head["what"], head["changed"]) == (action_in(answer), "apply", 2)
    assert wakeful("undo").out == "Undone: kept, gone\n"
    assert standing(wakeful) == before


def test_what_is_refused_is_said_of_every_part_of_many_jobs(monkeypatch):
    monkeypatch.setattr(pausing, "TOGETHER", 2)
    jobs = [SimpleNamespace(id=f"job_{number}") for number in range(5)]

    def act(tx, context, many):
        first, *others = many.refs
        return BulkResult(others, [first], {first: "no"}, f"act of {first}")

    async def work():
        async with Scheduler("sqlite://") as scheduler:
            return await pausing._by_parts(scheduler, jobs, act)

    done = asyncio.run(work())
    firsts = ["job_0", "job_2", "job_4"]
    assert done == BulkResult(["job_1", "job_3"], firsts, dict.fromkeys(firsts, "no"), "act of job_0")
