"""`undo`: what a command did by mistake, taken back."""

from __future__ import annotations

import getpass
import re

import pytest


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
    (resumed, paused) = wakeful("undo", "--list", "--json").json
    assert (resumed["what"], resumed["actor"], resumed["via"]) == ("resume", getpass.getuser(), "cli")
    assert (paused["what"], paused["changed"], paused["undo_until"] is None) == ("pause", 2, False)
    listed = wakeful("undo", "--list").out
    assert "job and 1 more" in listed
    assert wakeful("resume", "--all", "--json").json["action"] is None  # there was nothing to do


def test_there_is_an_answer_without_actions_too(wakeful):
    assert wakeful("undo", "--list").out.startswith("Nothing on record")
    assert wakeful("undo", "--list", "--json").json == []
    assert wakeful("undo", "--list", "act_0000000000000").code == 2
    assert wakeful("undo").code == 3
