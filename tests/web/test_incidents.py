"""Where an incident leads: to the page that says why, whatever it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from wakeful.domains import domains
from wakeful.kernel.views.records import Alert
from wakeful.kernel.views.slots import WHY
from wakeful.surfaces.web.incidents import place_of, subject_of
from wakeful.surfaces.web.rendering import because, quoted, render

pytestmark = pytest.mark.promise("X28")
NOW = datetime(2026, 11, 19, tzinfo=UTC)


def alert(kind: str, about: str, job: str | None = None) -> Alert:
    job_id = "job_1" if job else None
    return Alert("alr_1", f"{kind}:{about}", kind, job, job_id, "It went wrong.", NOW, NOW, 1, None, None)


@pytest.mark.parametrize(
    ("kind", "about", "job", "place"),
    [
        ("workflow", "led/ger", None, "/workflows/led%2Fger"),
        ("parked", "ledger", None, "/workflows/ledger"),
        ("budget", "agent:triage", "triage.wake", "/agents/triage"),
        ("budget", "all", None, None),
        ("delivery_failed", "phone", "hello", "/deliveries?status=failed"),
        ("no_node", "gpu", "train", "/nodes"),
        ("failing", "1", "a/b", "/jobs/a%2Fb"),
        ("clock", "here", None, None),
    ],
)
def test_an_incident_leads_to_the_page_that_says_why(kind, about, job, place):
    assert place_of(alert(kind, about, job)) == place


def test_an_incident_is_named_by_what_it_is_about():
    assert subject_of(alert("failing", "1", "a/b")) == "a/b"
    assert subject_of(alert("budget", "agent:triage")) == "triage"
    assert subject_of(alert("delivery_failed", "phone")) == "phone"


def test_what_needs_a_person_beyond_the_first_four_is_named():
    found = {"here": "", "questions": [], "may_act": False, "answered": 0, "last_answer": None, "again": {}, "more": 3}
    about = [(alert("failing", "1", "a"), "/jobs/a")] * 4
    times = SimpleNamespace(clock=lambda _: "12:00")
    also = [("nightly", "disabled", "/jobs/nightly"), ("<b>", "delivery_failed", None)]
    text = str(render("now/needs.html", **found, alerts=about, also=also, times=times, quoted=quoted))
    assert '<a href="/jobs/nightly">' in text
    assert "<bdi>nightly</bdi>: disabled" in text
    assert '<a href="/alerts">' in text
    assert "<bdi>&lt;b&gt;</bdi>: delivery failed" in text


def test_why_a_slot_waits_or_was_passed_over_is_said_in_words():
    known = {*WHY, *(reason for domain in domains() for reason in domain.skip_reasons)}
    assert {"at_capacity", "over_budget", "blocked"} <= known
    for reason in known:
        assert " " in because(reason), reason
        assert "_" not in because(reason), reason
    assert because("new_reason") == "new reason"
