"""One table of states: what the code allows, the database accepts and the page says is the same."""

from __future__ import annotations

import itertools
import re
import sqlite3
from pathlib import Path

import pytest

from wakeful.errors import SchedulerError
from wakeful.kernel.rules.outcome import FAILURES, OUTCOMES, RUN_STATES, TRANSITIONS, ImpossibleTransition, after
from wakeful.store.jobs import STATUS_SQL
from wakeful.store.sqlite_file import migrations

PAGE = (Path(__file__).parents[2] / "docs" / "states.md").read_text(encoding="utf-8")
STEPS = list(itertools.product(TRANSITIONS, RUN_STATES))


def table(heading):
    """The rows of the page's table that begins with that column, without their marks."""
    lines = PAGE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def words(cell):
    return re.findall(r"`(\w+)`", cell)


def accepted(column):
    """The words that the schema's CHECK lets into a column of the runs."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(";".join(migrations()))
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'runs'").fetchone()
    connection.close()
    [allowed] = re.findall(rf"CHECK \({column} IN \(([^)]*)\)", sql)
    return tuple(re.findall(r"'(\w+)'", allowed))


def test_the_schema_accepts_the_states_and_outcomes_there_are():
    assert accepted("status") == RUN_STATES
    assert accepted("outcome") == OUTCOMES


def test_the_page_explains_every_state():
    assert [words(state) for state, _ in table("state")] == [[state] for state in RUN_STATES]


def test_the_page_shows_every_arrow():
    shown = {words(verb)[0]: (frozenset(words(start)), words(end)[0]) for verb, start, end, _ in table("verb")}
    assert shown == TRANSITIONS


def test_the_pages_drawing_has_every_state_and_verb():
    [drawing] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    drawn = set(re.findall(r"[a-z]+", drawing))
    assert drawn == {*RUN_STATES, *TRANSITIONS}


def test_the_page_explains_every_outcome_and_which_are_errors():
    rows = table("outcome")
    assert [words(outcome) for outcome, _, _ in rows] == [[outcome] for outcome in OUTCOMES]
    assert {words(outcome)[0] for outcome, _, error in rows if error == "yes"} == FAILURES
    assert {error for _, _, error in rows} == {"yes", "no"}


def test_the_page_explains_every_status_of_a_job_in_the_order_they_are_decided():
    assert [words(status)[0] for status, _ in table("status")] == list(STATUS_SQL)


def test_every_state_is_reached_and_only_done_is_the_end():
    left = {state for starts, _ in TRANSITIONS.values() for state in starts}
    reached = {end for _, end in TRANSITIONS.values()}
    assert left == set(RUN_STATES) - {"done"}
    assert reached == set(RUN_STATES)


@pytest.mark.parametrize(("verb", "state"), STEPS)
def test_a_step_is_made_as_the_table_says_or_refused_with_run_state_and_verb(verb, state):
    starts, end = TRANSITIONS[verb]
    if state in starts:
        assert after(verb, state, "run_1") == end
        return
    with pytest.raises(ImpossibleTransition) as caught:
        after(verb, state, "run_1")
    assert str(caught.value) == f"run_1 is {state}; it cannot {verb}."
    assert isinstance(caught.value, SchedulerError)
