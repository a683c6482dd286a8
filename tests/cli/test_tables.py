"""Tables fit, whatever is in them."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.console import tables
from wakeful.console.tables import GAP, Cell, Column, layout, table_lines

COLUMNS = [Column("NAME", 8), Column("SCHEDULE", 10, spare=2), Column("STATUS", 8), Column("LAST", 10, spare=1)]
ROWS = [["backup", "weekdays at 09:00, Europe/Berlin", "disabled", "success 3m ago"]]


def titles(width):
    return [COLUMNS[index].title for index, _ in layout(COLUMNS, ROWS, width)]


def test_with_room_for_all_nothing_is_cut():
    assert layout(COLUMNS, ROWS, 200) == [(0, 6), (1, 32), (2, 8), (3, 14)]


def test_the_widest_is_cut_first_and_spare_columns_go_last():
    assert layout(COLUMNS, ROWS, 50) == [(0, 6), (1, 16), (2, 8), (3, 14)]
    assert titles(42) == ["NAME", "SCHEDULE", "STATUS", "LAST"]
    assert titles(38) == ["NAME", "STATUS", "LAST"]
    assert titles(20) == ["NAME", "STATUS"]


@given(st.integers(20, 200), st.lists(st.lists(st.text(max_size=60), min_size=4, max_size=4), max_size=5))
def test_no_line_is_wider_than_the_terminal(width, rows):
    for line in table_lines(COLUMNS, rows, width):
        assert line.cell_len <= width
        assert "\n" not in line.plain


@given(st.integers(1, 19))
def test_a_terminal_too_narrow_for_anything_still_gets_something(width):
    kept = layout(COLUMNS, ROWS, width)
    assert [index for index, _ in kept] == [0, 2]
    assert all(size >= 1 for _, size in kept)
    assert sum(size for _, size in kept) + GAP >= 1


def test_a_row_without_a_last_value_ends_where_its_text_ends():
    rows = [["a", "b", "", ""]]
    assert [line.plain for line in table_lines(COLUMNS, rows, 200)][1].endswith("b")


LETTERS = st.text(st.sampled_from("ab c:[]-\t\n\x1bé語"), max_size=12)


@given(st.lists(st.lists(LETTERS, min_size=2, max_size=2), max_size=4), LETTERS)
def test_a_program_gets_the_same_text_as_a_terminal_without_colours(rows, text):
    columns = [Column("NAME"), Column("STATUS")]
    cells = [[name, Cell(status, "red")] for name, status in rows]

    def shown(*, piped):
        with pytest.MonkeyPatch.context() as here, contextlib.redirect_stdout(io.StringIO()) as out:
            here.setattr(tables, "is_piped", lambda: piped)
            tables.print_table(columns, cells)
            tables.print_sentence(text)
            tables.print_facts([("name", text), *((name or "x", Cell(status)) for name, status in rows)])
        return out.getvalue()

    assert shown(piped=True) == shown(piped=False)
