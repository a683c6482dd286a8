"""When an incident is worth a message, as tables of pure rules."""

from __future__ import annotations

import pytest

from wakeful.kernel.rules.alerting import (
    CLOSED,
    DEFAULTS,
    OPENED,
    REPEATED,
    AlertRules,
    closer_look,
    many,
    rules_from,
    rules_text,
    to_send,
    to_send_at_end,
    worth_opening,
)
from wakeful.store.records import AlertRow

NOW = 1_000_000_000
HOUR = 3_600_000
SENT = AlertRules("phone")


def alert(**changes):
    return AlertRow(1, "failing:7", "failing", 7, "m", NOW - 10 * HOUR, NOW, 2, None, None)._replace(**changes)


@pytest.mark.promise("X5")
@pytest.mark.parametrize(
    ("rules", "found", "is_new", "what"),
    [
        (SENT, {}, True, OPENED),
        (SENT, {"notified_at": NOW - HOUR}, False, REPEATED),
        (SENT, {"notified_at": NOW - HOUR + 1}, False, None),  # its cooldown is not over
        (SENT._replace(cooldown=0), {"notified_at": NOW}, False, REPEATED),
        (SENT, {"notified_at": NOW - 5 * HOUR, "acked_at": NOW - HOUR}, False, None),
        (SENT, {"notified_at": NOW - 5 * HOUR, "snoozed_until": NOW + 1}, False, None),
        (SENT, {"notified_at": NOW - 5 * HOUR, "snoozed_until": NOW}, False, REPEATED),
        (SENT, {"snoozed_until": NOW + 1}, True, None),  # opened while its job is snoozed
        (SENT, {"notified_at": None}, False, OPENED),  # it was not announced yet
        (DEFAULTS, {}, True, None),  # there is no recipient
    ],
)
def test_what_is_sent_about_an_incident_that_is_noticed(rules, found, is_new, what):
    assert to_send(rules, alert(**found), is_new=is_new, now=NOW) == what


@pytest.mark.promise("X5")
@pytest.mark.parametrize(
    ("rules", "found", "what"),
    [
        (SENT, {"notified_at": NOW - 1}, CLOSED),
        (SENT, {"notified_at": NOW - 1, "acked_at": NOW - 1}, CLOSED),
        (SENT, {"notified_at": None}, None),  # it was never announced
        (SENT, {"notified_at": NOW - 1, "snoozed_until": NOW + 1}, None),
        (DEFAULTS, {"notified_at": NOW - 1}, None),
    ],
)
def test_what_is_sent_about_an_incident_that_is_over(rules, found, what):
    assert to_send_at_end(rules, alert(closed_at=NOW, **found), NOW) == what


@pytest.mark.parametrize(
    ("after", "kind", "errors", "opens"),
    [
        (2, "failing", 1, False),
        (2, "failing", 2, True),
        (1, "failing", 1, True),
        (3, "failing", 2, False),
        (9, "disabled", 0, True),
    ],
)
def test_a_job_is_failing_after_so_many_failures_in_a_row(after, kind, errors, opens):
    assert worth_opening(AlertRules(after=after), kind, errors) is opens


@pytest.mark.parametrize(
    ("names", "count", "words"),
    [
        (["a"], 1, "a"),
        (["a", "b"], 2, "a and b"),
        (["a", "b", "c"], 3, "a, b and c"),
        (list("abcdefg"), 7, "a, b, c, d, e and 2 more"),
        (["a", "b"], 1000, "a, b and 998 more"),
    ],
)
def test_many_jobs_are_a_few_names_and_a_number(names, count, words):
    assert many(names, count) == words


def test_settings_are_stored_and_read_and_what_a_later_version_added_is_left_out():
    rules = AlertRules("phone", 3, 5, 7, ("clock",))
    assert rules_from(rules_text(rules)) == rules
    assert rules_from(None) == rules_from("") == DEFAULTS
    assert rules_from('{"to": "x", "later": 1}') == DEFAULTS._replace(to="x")


@pytest.mark.parametrize(
    ("kind", "key", "job", "command"),
    [
        ("failing", "failing:7", "nightly copy", "wakeful explain 'nightly copy'"),
        ("workflow", "workflow:shop", None, "wakeful workflow show shop"),
        ("delivery_failed", "delivery_failed:phone", "backup", "wakeful delivery list --failed"),
        ("no_connector", "no_connector:phone", None, "wakeful connector list"),
        ("clock", "clock:back", None, None),
    ],
)
def test_an_incident_names_the_command_that_shows_more(kind, key, job, command):
    assert closer_look(kind, key, job) == command
