"""The colours of the stylesheet: text and shapes are readable in both themes, on every ground they stand on."""

from __future__ import annotations

import re

import pytest

from wakeful.surfaces.web.assets import FOLDER

pytestmark = pytest.mark.promise("X28")
CSS = (FOLDER / "dashboard.css").read_text(encoding="utf-8")
TOKENS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", CSS)
}
WORDS = ("ink", "ink-2", "ink-3", "link", "ok", "bad", "wait", "crash")
SHAPES = ("ok-fill", "bad-fill", "wait-fill", "crash-fill", "run-fill", "quiet-fill", "edge")
#: Text on a ground of its own: notices, the selection bar, the strip of the demo, solid buttons.
PAIRS = (("bad", "bad-wash"), ("ink-2", "wait-wash"), ("ink", "wait-wash"), ("ink", "run-wash"), ("link", "run-wash"),
         ("ink-2", "run-wash"), ("page", "ink"), ("page", "ink-2"), ("wait", "wait-wash"))  # fmt: skip


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_the_guidelines_do():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card", "sunk"])
@pytest.mark.parametrize("word", WORDS)
def test_words_have_a_contrast_of_four_and_a_half_on_every_ground(word, ground, theme):
    assert contrast(TOKENS[word][theme], TOKENS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_borders_of_controls_have_a_contrast_of_three(shape, ground, theme):
    assert contrast(TOKENS[shape][theme], TOKENS[ground][theme]) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("word", "ground"), PAIRS)
def test_words_on_coloured_grounds_are_readable(word, ground, theme):
    assert contrast(TOKENS[word][theme], TOKENS[ground][theme]) >= 4.5


def test_no_colour_is_written_beside_the_tokens():
    rest = re.sub(r"--[\w-]+: light-dark\([^;]*;", "", CSS)
    assert re.findall(r"#[0-9a-f]{3,8}\b(?![^{}]*\{)", rest) == []
