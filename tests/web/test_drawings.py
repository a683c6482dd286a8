"""Drawings are text: what they are made from decides every letter of them."""

from __future__ import annotations

import asyncio
import re
from itertools import cycle
from types import SimpleNamespace

import pytest

from wakeful.kernel.rules.verdict import Verdict
from wakeful.kernel.views.history import Lately
from wakeful.kernel.views.timeline import Band, Mark, Row, Timeline
from wakeful.store.runs import Ended
from wakeful.surfaces.web import remembering
from wakeful.surfaces.web.assets import assets, squeezed
from wakeful.surfaces.web.drawings.bars import ledger_bar, meter, sparkline
from wakeful.surfaces.web.drawings.timeline import draw_back, draw_row, draw_rows, rows_with_room
from wakeful.surfaces.web.remembering import Remembered
from wakeful.surfaces.web.rendering import ansi, linked, render, span, visible
from wakeful.surfaces.web.workflows import way_of
from wakeful.testing import VirtualClock, run

pytestmark = pytest.mark.promise("X28")


def ended(outcome, took):
    return Ended(1, 1, "done", outcome, 0, took)


def test_good_runs_stand_up_as_tall_as_they_were_long_and_bad_ones_hang_down():
    drawn = str(sparkline(Lately((ended("success", 1000), ended("error", 5), ended("noop", 3), ended("success", 500)))))
    assert '<path class="ok" d="M2 15v-14M20 15v-7"/>' in drawn
    assert '<path class="bad" d="M8 16v7"/>' in drawn
    assert '<path class="quiet" d="M14 15v-2"/>' in drawn
    assert 'aria-label="last 4: 2 good, 1 quiet, 1 failed"' in drawn


def test_every_slot_has_its_part_of_the_bar():
    drawn = str(ledger_bar([("l1", 3), ("l3", 1)]))
    assert 'class="l1" x="0.0%" width="75.0%"' in drawn
    assert 'class="l3" x="75.0%" width="25.0%"' in drawn


def test_a_meter_never_leaves_its_trough():
    assert 'width="100%"' in str(meter(30, 20))
    assert 'width="0%"' in str(meter(0, 20)).replace('"0.0%"', '"0%"')


def test_a_time_in_which_nothing_could_run_is_hatched_behind_every_row():
    drawn = str(draw_back(Timeline(0, 500, 1000, [], 0, [Band(100, 300, asleep=True)]), [250]))
    assert '<rect x="10.0%" width="20.0%" height="100%" fill="url(#hatch)"/>' in drawn
    assert '<line class="now" x1="50.0%" x2="50.0%" y2="100%"/>' in drawn


def places_of_dashes(drawn):
    """Where the line of coming starts has its dashes, in percent of the width."""
    found = re.search(r'"f each" x1="([\d.]+)%" .* pathLength="(\d+)" stroke-dasharray="([\d. ]+)"', drawn)
    if found is None:
        return []
    at, places, pattern = 0.0, [], cycle(map(float, found[3].split()))
    while at < int(found[2]) - 1:
        dash = next(pattern)
        places.append(float(found[1]) + (at + dash / 2) / 100)
        at += dash + next(pattern)
    return places


@pytest.mark.parametrize(
    ("minutes", "bars", "dashes", "dotted"), [(5, 1, 0, True), (10, 72, 0, True), (30, 24, 24, False)]
)
def test_runs_and_starts_that_lie_closely_together_are_one_bar_and_a_dotted_line(minutes, bars, dashes, dotted):
    step, half = minutes * 60_000, 12 * 3_600_000
    marks = [Mark(at, at + 1_000, "success", "run_1") for at in range(0, half, step)]
    row = Row(SimpleNamespace(name="often"), marks, list(range(half + step, 2 * half + 1, step)), more_ahead=False)
    drawn = str(draw_row(row, Timeline(0, half, 2 * half, [row], 0, []), str))
    assert drawn.count('<rect class="b ok"') == bars
    assert len(places_of_dashes(drawn)) == dashes
    assert ('<line class="f dots"' in drawn) == dotted
    assert len(drawn) < 10_000


@pytest.mark.parametrize("hours", [(13, 14, 15, 16), (13, 17, 18, 23.5), (14, 14.5)])
def test_coming_starts_are_dashes_of_one_line_each_where_it_is_due(hours):
    hour = 3_600_000
    row = Row(SimpleNamespace(name="sometimes"), [], [int(at * hour) for at in hours], more_ahead=False)
    drawn = str(draw_row(row, Timeline(0, 12 * hour, 24 * hour, [row], 0, []), str))
    assert places_of_dashes(drawn) == pytest.approx([at / 24 * 100 for at in hours], abs=0.02)
    assert drawn.count("<line") == 1


def test_failures_that_would_hide_one_another_are_one_link_that_says_how_many():
    at = (100_000, 101_000, 102_000, 300_000)
    marks = [Mark(one, one + 1, "error", f"run_{one}") for one in at]
    drawn = str(
        draw_row(
            Row(SimpleNamespace(name="bad"), marks, [], more_ahead=False), Timeline(0, 500_000, 10**6, [], 0, []), str
        )
    )
    assert '<a href="/runs/run_102000" aria-label="102000 error, the last of 3">' in drawn
    assert '<a href="/runs/run_300000" aria-label="300000 error">' in drawn
    assert drawn.count("<a ") == 2


HALF = 12 * 3_600_000
HALF_WINDOW = Timeline(0, HALF, 2 * HALF, [], 0, [])


def every(minutes, name="often", outcome=lambda turn: "success", took=lambda turn: 1_000, rank=0):
    starts = range(0, HALF, minutes * 60_000)
    marks = [Mark(at, at + took(turn), outcome(turn), f"run_{at:013}") for turn, at in enumerate(starts)]
    ahead = list(range(HALF, 2 * HALF, minutes * 60_000))
    return Row(SimpleNamespace(name=name), marks, ahead[:200], more_ahead=False, rank=rank)


def places_of_strips(drawn):
    """Where the dashes of strips of good runs begin, in percent of the width, and how wide they are."""
    found = []
    for begin, end, length, dashes in re.findall(
        r'"s ok" x1="([-\d.]+)%" x2="([\d.]+)%" pathLength="(\d+)" stroke-dasharray="([\d. ]+)"', drawn
    ):
        scale, at, pattern = (float(end) - float(begin)) / int(length), 0.0, cycle(map(float, dashes.split()))
        while at < int(length) - 1:
            dash = next(pattern)
            found.append((float(begin) + at * scale, dash * scale))
            at += dash + next(pattern)
    return sorted(found)


@pytest.mark.parametrize("took", [lambda _: 1_000, lambda turn: 60_000 * (2 + turn * 7 % 5)])
def test_where_a_page_has_many_bars_those_of_a_row_are_dashes_of_a_line_in_the_same_places(took):
    rows = [every(20, took=took), *(every(15, f"other-{number}") for number in range(9))]
    apart = re.findall(r'"b ok" x="([\d.]+)%" width="([\d.]+)%"', str(draw_row(rows[0], HALF_WINDOW, str)))
    drawn = str(draw_rows(rows, HALF_WINDOW, str)[0])
    assert '<rect class="b ok"' not in drawn
    assert "<title>often: 36 runs" in drawn, "and one title says what they are"
    strips = places_of_strips(drawn)
    assert len(strips) == len(apart) == 36
    for (begin, wide), (left, width) in zip(strips, apart, strict=True):
        assert begin + wide / 2 == pytest.approx(float(left) + float(width) / 2, abs=0.06)
        assert wide == pytest.approx(float(width) + 0.22, abs=0.06)


def test_a_strip_goes_on_behind_a_failure_that_covers_its_place():
    rows = [every(20, outcome=lambda turn: "error" if turn == 9 else "success")] + [every(15, "other")] * 9
    drawn = str(draw_rows(rows, HALF_WINDOW, str)[0])
    assert drawn.count('"s ok"') == 1
    assert drawn.count("<a ") == 1
    assert len(places_of_strips(drawn)) == 36


def test_what_runs_is_a_link_to_its_run():
    marks = [Mark(HALF - 1000, None, "active", "run_1")]
    drawn = str(draw_row(Row(SimpleNamespace(name="a"), marks, [], more_ahead=False), HALF_WINDOW, lambda _: "11:59"))
    assert '<a href="/runs/run_1" aria-label="running since 11:59"><rect class="b run"' in drawn


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([every(15, f"job-{n}", rank=n) for n in range(40)], id="often"),
        pytest.param(
            [every(20, f"job-{n}", took=lambda turn: 60_000 * (2 + turn * 7 % 5), rank=n) for n in range(40)], id="long"
        ),
        pytest.param([every(10, f"job-{n}", lambda _: "error", rank=n) for n in range(40)], id="nothing goes well"),
        pytest.param([every(15, f"job-{n}", lambda _: "noop", rank=n) for n in range(40)], id="nothing to do"),
        pytest.param(
            [every(15, "W" * 200, lambda turn: ("error", "success")[turn % 2], rank=n) for n in range(40)], id="names"
        ),
    ],
)
def test_the_timeline_of_a_busy_fleet_leaves_room_for_the_page(rows):
    drawn = list(zip(rows, draw_rows(rows, HALF_WINDOW, lambda _: "12:00"), strict=True))
    shown = rows_with_room(drawn)
    assert len(shown) >= 8
    assert [row for row, _ in shown] == rows[: len(shown)], "what is left out is what matters least"
    assert sum(len(one) + 255 + 2 * len(row.job.name) for row, one in shown) <= 16_000


def test_few_bars_are_drawn_one_by_one_each_with_its_time():
    rows = [every(60, f"job-{n}") for n in range(10)]
    drawn = draw_rows(rows, HALF_WINDOW, str)
    assert len(rows_with_room(list(zip(rows, drawn, strict=True)))) == 10
    assert all(str(one).count('<rect class="b ok"') == str(one).count("<title>") == 12 for one in drawn)


def test_a_name_in_a_label_is_escaped():
    row = Row(SimpleNamespace(name='"><b>'), [], [], more_ahead=False)
    assert '"><b>' not in str(draw_row(row, Timeline(0, 1, 2, [row], 0, []), str))


@pytest.mark.parametrize(
    ("ms", "words"), [(350, "350 ms"), (42_000, "42 s"), (5_220_000, "1 h 27 min"), (90_061_000, "1 d 1 h"), (0, "0 s")]
)
def test_durations_are_said_in_their_two_largest_units(ms, words):
    assert span(ms) == words


def test_colours_of_a_terminal_become_classes_and_nothing_else_gets_through():
    assert str(ansi("a\x1b[31m<b>\x1b[0mc\x1b[2Kd\x00")) == 'a<span class="t-bad">&lt;b&gt;</span>cd\\u0000'


def test_runs_that_a_sentence_names_are_links():
    assert '<a class="mono" href="/runs/run_1hc39w89yc57c">' in str(linked("It continues run_1hc39w89yc57c."))
    assert "<script" not in str(linked("<script>run_1hc39w89yc57c</script>"))


def test_characters_that_hide_or_turn_text_are_made_visible():
    assert visible("a\u202eb\u200bc\x1b") == "a\\u202eb\\u200bc\\u001b"


def test_what_is_served_has_no_comments_and_stays_within_its_size():
    assert squeezed("// a\n  let x = 1; // kept\n\n/* b\n c */\ny\n") == "let x = 1; // kept\ny\n"
    sizes = {name.split(".")[0] + "." + name.rpartition(".")[2]: len(one.content) for name, one in assets().items()}
    assert sizes["dashboard.js"] <= 12_000 * 0.95, "the next change has room"
    assert sizes["dashboard.css"] <= 24_000 * 0.95


def test_what_was_costly_is_remembered_and_what_was_cheap_is_asked_again():
    class Store:
        pass

    clock = VirtualClock()

    async def scenario():
        store, asked, free = Store(), [], asyncio.Event()
        free.set()

        async def find():
            asked.append(1)
            await asyncio.sleep(0.02 if slow else 0)
            await free.wait()
            return len(asked)

        remembered: Remembered[int] = Remembered(clock)
        slow = False
        assert [await remembered.ask(store, "cheap", find) for _ in range(3)] == [1, 2, 3]
        slow = True
        assert [await remembered.ask(store, "costly", find) for _ in range(3)] == [4, 4, 4]
        free.clear()
        await clock.sleep("2s")  # more than forty times as long as it took
        assert [await remembered.ask(store, "costly", find) for _ in range(2)] == [4, 4]
        await clock.sleep("1s")
        assert await remembered.ask(store, "costly", find) == 4, "an older answer, while a new one is looked for"
        assert len(asked) == 5
        free.set()
        await clock.sleep("1s")
        assert (await remembered.ask(store, "costly", find), len(asked)) == (5, 5)

    run(scenario(), clock)


@pytest.mark.promise("X24")
def test_readers_of_what_takes_long_at_first_are_told_so_and_it_is_looked_for_once():
    class Store:
        pass

    clock = VirtualClock()

    async def scenario():
        store, asked, began = Store(), [], clock.boot()

        async def find():
            asked.append(1)
            await asyncio.sleep(10 * remembering.FIRST_S)
            return "found"

        remembered: Remembered[str] = Remembered(clock)
        assert await asyncio.gather(*(remembered.ask_soon(store, "key", find) for _ in range(3))) == [None] * 3
        assert clock.boot() - began == pytest.approx(1000 * remembering.FIRST_S, abs=10)
        assert await remembered.ask_soon(store, "key", find) is None
        assert clock.boot() - began < 1100 * remembering.FIRST_S, "who comes later is told at once"
        await clock.sleep("20s")
        assert await remembered.ask_soon(store, "key", find) == "found"
        assert await remembered.ask_soon(store, "key", find) == "found"
        assert len(asked) == 1

        async def fail():
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await remembered.ask_soon(store, "other", fail)

    run(scenario(), clock)


def test_the_way_of_a_run_says_which_phases_are_behind_it_where_it_is_and_what_lies_ahead():
    def states(phase, outcome=None):
        return [state for _, state in way_of({"phase": phase, "outcome": outcome})]

    assert states("preparing") == ["here", *["ahead"] * 5]
    assert states("mutating") == ["done", "done", "here", "ahead", "ahead", "ahead"]
    assert states("mutating", "error") == states("mutating")
    assert states("committed", "success") == ["done"] * 6
    assert states("parked") == ["ahead"] * 6, "a phase that is none of these"


@pytest.mark.promise("X24")
def test_what_is_still_being_counted_says_so_and_is_asked_for_again():
    record = str(render("now/record.html", here="", figures=None))
    verdict = Verdict("well", "All is well.")
    slots = str(render("now/verdict.html", here="", tally=None, verdict=verdict, shape=("ok", "ok")))
    assert "Being counted." in record
    assert "What came due today is being counted." in slots
    assert "<section" in record
    for text in (record, slots):
        assert "data-soon" in text.partition(">")[0]
