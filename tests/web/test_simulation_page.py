"""`/simulate`: what the jobs will do, drawn as what they did, and nothing happens."""

from __future__ import annotations

import re

import pytest

from wakeful.kernel.views.timeline import Mark, Row, Timeline
from wakeful.surfaces.web.drawings.timeline import draw_row

pytestmark = pytest.mark.promise("X4", "X28")


class Named:
    name = "backup"


def drawn(*marks):
    row = Row(Named(), list(marks), [], more_ahead=False)
    return str(draw_row(row, Timeline(0, 1_000_000, 2_000_000, [row], 0, []), lambda at: f"{at // 1000} s"))


def test_the_page_says_what_will_run_and_changes_nothing(server, visitor):
    server.terminal.ask("add", "hourly", "--every", "1h", "--", "true")
    person = visitor("operator")
    before = person.client.get("/api/runs", headers={"Accept": "application/json"}).json()
    answer = person.get("/simulate?for=5h")
    assert answer.status_code == 200
    assert re.search(r"<h1>The next 5h: [45] runs", answer.text)
    assert "wakeful simulate --for 5h" in answer.text
    assert 'aria-label="hourly: 0 runs since' in answer.text
    assert person.client.get("/api/runs", headers={"Accept": "application/json"}).json() == before


def test_assumptions_of_the_address_are_those_of_the_simulation(server, visitor):
    server.terminal.ask("add", "fragile", "--every", "1h", "--retry", "0", "--", "true")
    text = visitor("operator").get("/simulate?for=5h&fail=fragile%3D1&down=00:00-23:59").text
    assert "wakeful simulate --for 5h --fail fragile=1 --down 00:00-23:59" in text
    assert 'fill="url(#hatch)"' in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("for=x", "for is a duration"),
        ("for=90d", "at most 31d"),
        ("seed=minus", "seed is a number"),
        ("fail=hourly", "fail is NAME=SHARE"),
        ("assume=nobody%3D3s", "There is no job named"),
        ("down='", "A quotation mark is missing"),
        ("for=%3Cscript%3E", "&lt;script&gt;"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_in_its_place(visitor, query, words):
    answer = visitor("operator").get(f"/simulate?{query}")
    assert answer.status_code == 200
    assert words in answer.text
    assert "<script>" not in answer.text


def test_the_page_is_for_operators(visitor):
    answer = visitor("viewer").get("/simulate")
    assert answer.status_code == 403
    assert "this page is for operators" in answer.text


def test_runs_are_never_drawn_as_one_across_now():
    both = drawn(Mark(999_000, 999_900, "success", "run_a"), Mark(1_000_500, 1_001_000, "success", ""))
    assert both.count('<rect class="b ok"') == 2
    assert drawn(*(Mark(at, at + 100, "success", "") for at in (998_000, 999_000))).count('<rect class="b ok"') == 1


def test_a_failure_that_was_simulated_has_its_shape_and_no_link():
    text = drawn(Mark(1_500_000, 1_500_100, "error", ""))
    assert 'href="#error"' in text
    assert "<a " not in text
    assert '<a href="/runs/run_a"' in drawn(Mark(500_000, 500_100, "error", "run_a"))


def test_of_many_failures_the_earlier_ones_stay_in_sight_as_bars():
    text = drawn(*(Mark(at * 1000, at * 1000 + 100, "error", f"run_{at}") for at in range(0, 1000, 10)))
    assert text.count("<a ") == text.count("error, the last of 2</title>") == 20
    assert re.search(r'<rect class="b bad" x="0\.0%"', text)


def test_runs_with_nothing_to_do_that_lie_close_together_are_one_bar_and_none_is_dropped():
    text = drawn(*(Mark(at * 1000, at * 1000 + 10, "noop", "run_a") for at in range(1000)))
    assert text.count('class="b quiet"') == 1
    assert "1000 runs from 0 s" in text
