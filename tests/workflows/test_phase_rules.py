"""Phases, failures and times of workflows, as tables."""

from __future__ import annotations

import urllib.error
from datetime import UTC, datetime
from itertools import product

import httpx
import pytest
from typer.main import get_command

from wakeful import ApprovalNeeded, LogicError, TransientError
from wakeful.domains.workflows.admission import WorkflowState, may_start
from wakeful.domains.workflows.commands import app
from wakeful.domains.workflows.failures import classify
from wakeful.domains.workflows.phases import (
    FAILURES,
    MUTATIONS,
    PHASES,
    STATUS,
    first_phase,
    is_forward,
    keeps_reservations,
    settled_mutation,
    where_to_begin,
)
from wakeful.domains.workflows.timing import backoff, due_after_commit, read_wake_at, reconcile_delay
from wakeful.domains.workflows.turns.order import in_order
from wakeful.domains.workflows.words import ACTIONS, answer_commands

NOW = 1_800_000_000_000
SECOND = 1_000

#: (phase, mutation): where a run begins that continues one which ended there; with approval where that differs.
BEGINS = {
    ("preparing", "none"): "prepare",
    ("prepared", "none"): ("prepare", "mutate"),
    ("mutating", "none"): ("prepare", "mutate"),
    ("mutating", "in_flight"): "reconcile",
    ("mutating", "applied"): "emit",
    ("mutating", "skipped"): "emit",
    ("mutated", "applied"): "emit",
    ("emitting", "applied"): "emit",
    ("emitting", "skipped"): "emit",
    ("emitting", "none"): "prepare",
}


@pytest.mark.promise("K8", "K10")
@pytest.mark.parametrize(("phase", "mutation"), list(BEGINS))
@pytest.mark.parametrize("failure", FAILURES)
def test_the_next_run_begins_where_the_table_says(phase, mutation, failure):
    expected = BEGINS[phase, mutation]
    if isinstance(expected, tuple):
        expected = expected[failure == "approval"]
    assert where_to_begin(phase, mutation, failure) == expected


@pytest.mark.promise("K10", "K11")
@pytest.mark.parametrize(("phase", "failure"), list(product(PHASES, FAILURES)))
def test_no_run_mutates_again_while_it_is_unknown_or_certain_that_the_first_did(phase, failure):
    assert where_to_begin(phase, "in_flight", failure) == "reconcile"
    assert where_to_begin(phase, "applied", failure) == "emit"
    assert where_to_begin(phase, "skipped", failure) == "emit"


@pytest.mark.promise("K10")
@pytest.mark.parametrize(("phase", "mutation", "failure"), list(product(PHASES, MUTATIONS, FAILURES)))
def test_reservations_are_released_only_where_everything_begins_again(phase, mutation, failure):
    begin = where_to_begin(phase, mutation, failure)
    assert keeps_reservations(begin) is (begin != "prepare")
    assert first_phase(begin) in PHASES


@pytest.mark.promise("K8")
def test_phases_only_move_forward():
    for before, after in product(range(6), repeat=2):
        assert is_forward(PHASES[before], PHASES[after]) is (after >= before)


@pytest.mark.promise("K8")
def test_every_class_of_failure_has_a_status_of_its_own():
    assert len(set(STATUS.values())) == len(FAILURES)


def answered(status):
    """What httpx raises for an answer of that status."""
    response = httpx.Response(status, request=httpx.Request("GET", "http://a"))
    return httpx.HTTPStatusError("no", request=response.request, response=response)


@pytest.mark.promise("K12")
@pytest.mark.parametrize(
    ("error", "place", "expected"),
    [
        (TransientError("busy"), "handler", "transient"),
        (TransientError("busy"), "mutate", "transient"),
        (ApprovalNeeded("May I?"), "mutate", "approval"),
        (ApprovalNeeded("May I?"), "call", "approval"),
        (LogicError("wrong"), "handler", "logic"),
        (LogicError("wrong"), "mutate", "reconciliation"),
        (ValueError("timeout, rate limit, unauthorized"), "handler", "logic"),
        (ConnectionError("gone"), "handler", "transient"),
        (ConnectionError("gone"), "call", "transient"),
        (TimeoutError("slow"), "call", "transient"),
        (PermissionError("token expired"), "call", "approval"),
        (ValueError("no"), "call", "logic"),
        (answered(401), "call", "approval"),
        (answered(403), "call", "approval"),
        (answered(429), "call", "transient"),
        (answered(425), "call", "transient"),
        (answered(503), "call", "transient"),
        (answered(404), "call", "logic"),
        (answered(503), "handler", "transient"),
        (answered(503), "mutate", "reconciliation"),
        (httpx.ConnectError("gone"), "call", "transient"),
        (urllib.error.HTTPError("http://a", 429, "busy", None, None), "call", "transient"),
        (ConnectionError("gone"), "mutate", "reconciliation"),
        (TimeoutError("slow"), "timeout", "transient"),
        (TimeoutError("slow"), "timeout_in_mutate", "reconciliation"),
        (TransientError("ours"), "engine", "internal"),
    ],
)
def test_a_failure_is_classified_by_where_it_arose(error, place, expected):
    assert classify(error, place) == expected


@pytest.mark.promise("K11")
@pytest.mark.parametrize(
    ("verdict", "mutation", "begin"),
    [("happened", "applied", "emit"), ("did_not_happen", "none", "prepare"), ("skip", "skipped", "emit")],
)
def test_a_persons_verdict_decides_where_the_next_run_begins(verdict, mutation, begin):
    assert settled_mutation(verdict) == mutation
    assert where_to_begin("mutating", mutation, "reconciliation") == begin


def moment(seconds):
    return datetime.fromtimestamp(NOW / 1000 + seconds, UTC)


@pytest.mark.promise("K5")
@pytest.mark.parametrize(
    ("given", "seconds", "says"),
    [
        (None, None, None),
        (moment(60), 60, None),
        (moment(60).isoformat(), 60, None),
        (moment(60).strftime("%Y-%m-%dT%H:%M:%SZ"), 60, None),
        (moment(30), 30, None),
        (moment(29), 30, "30 s from now"),
        (moment(-5000), 30, "30 s from now"),
        (moment(86_400), 86_400, None),
        (moment(86_401), 86_400, "24 h from now"),
        (datetime(9999, 12, 31, tzinfo=UTC), 86_400, "24 h from now"),
        ("tomorrow", None, "dropped"),
        ("2026-01-01T09:00:00", None, "dropped"),
        (datetime(2030, 1, 1), None, "dropped"),  # noqa: DTZ001 - without a zone is the test
        (12345, None, "dropped"),
        ("", None, "dropped"),
    ],
)
def test_a_wake_time_is_kept_within_bounds_and_a_change_is_reported(given, seconds, says):
    wake = read_wake_at(given, NOW)
    assert wake.at == (None if seconds is None else NOW + seconds * SECOND)
    assert (says in wake.note) if says is not None else wake.note is None


@pytest.mark.promise("K12", "K13")
def test_backoff_grows_and_then_stays():
    assert [backoff(failures) // SECOND for failures in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]


@pytest.mark.promise("K11")
def test_reconciling_doubles_from_ten_seconds_and_ends_after_five_tries():
    assert [reconcile_delay(tries) for tries in range(1, 6)] == [10_000, 20_000, 40_000, 80_000, None]


@pytest.mark.promise("K4")
@pytest.mark.parametrize(
    ("pending", "looks_again", "wake_at", "expected"),
    [
        (False, False, None, None),
        (False, True, NOW + 60_000, NOW + 60_000),
        (True, True, NOW + 60_000, NOW),
        (True, False, NOW + 60_000, NOW + 60_000),
        (True, False, None, None),
    ],
)
def test_a_consumer_looks_again_at_what_changed_or_was_left_and_else_at_its_wake_time(
    pending, looks_again, wake_at, expected
):
    assert due_after_commit(pending=pending, looks_again=looks_again, wake_at=wake_at, now=NOW) == expected


@pytest.mark.promise("K7")
@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ([(1, 1), (2, 2), (9, 3)], [1, 2, 9]),
        ([(5, 1), (5, 2), (5, 3)], [5, 5, 5]),
        ([(5, 3), (5, 2), (5, 1)], [3, 4, 5]),
        ([(9, 1), (1, 2), (5, 3)], [1, 1, 5]),
        ([(9, 2), (1, 1), (5, 3)], [0, 1, 5]),
        ([(7, 1)], [7]),
    ],
)
def test_starts_that_are_out_of_order_are_put_back_by_as_little_as_it_takes(starts, expected):
    assert in_order(starts) == expected


OPEN = WorkflowState(paused=False, issue=None, issue_handler=None, backoff_until=None)


@pytest.mark.promise("K13")
@pytest.mark.parametrize(
    ("changes", "own", "other"),
    [
        ({}, None, None),
        ({"paused": True}, "paused", "paused"),
        ({"issue": "logic", "issue_handler": "a"}, "blocked", "blocked"),
        ({"issue": "internal", "issue_handler": "a"}, "blocked", "blocked"),
        ({"issue": "load"}, "blocked", "blocked"),
        ({"issue": "approval", "issue_handler": "a"}, None, "blocked"),
        ({"issue": "reconciliation", "issue_handler": "a"}, None, "blocked"),
        (
            {"issue": "transient", "issue_handler": "a", "backoff_until": NOW + 1},
            "backing_off",
            "blocked",
        ),
        ({"issue": "transient", "issue_handler": "a", "backoff_until": NOW}, None, "blocked"),
        ({"draining": True}, None, None),
    ],
)
def test_one_stuck_handler_keeps_the_others_from_starting(changes, own, other):
    standing = OPEN._replace(**changes)
    assert [(wait := may_start(standing, name, NOW)) and wait.reason for name in ("a", "b")] == [own, other]


def test_a_draining_workflow_takes_in_nothing_new():
    standing = OPEN._replace(draining=True)
    assert may_start(standing, "a", NOW, brings_new=True).reason == "draining"
    assert may_start(standing, "a", NOW) is None


@pytest.mark.parametrize("kind", ACTIONS)
def test_every_command_that_answers_an_issue_can_be_typed_as_it_stands(kind):
    commands = get_command(app).commands
    for line in answer_commands("shop", ACTIONS[kind], "run_1"):
        words = line.partition(" (")[0].split()
        if words[1] == "workflow":
            taken = [one for one in commands[words[2]].params if one.param_type_name == "argument"]
            assert len(words[3:]) == len(taken), line
        else:
            assert line in ("wakeful apply", "wakeful show run_1 (its trace)")
