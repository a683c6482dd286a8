"""What presets make of the output that was recorded of the programs themselves."""

from __future__ import annotations

import pytest

from tests.agents.recorded import expected, made_of, recordings

EXPECTED = expected()
RECORDED = {(one.program, one.version, one.case): one for one in recordings()}


@pytest.mark.parametrize("case", sorted(RECORDED), ids="/".join)
def test_a_preset_understands_what_the_program_printed(case):
    assert made_of(RECORDED[case]) == EXPECTED[case]


def test_every_recording_has_a_row_and_every_row_a_recording():
    assert sorted(EXPECTED) == sorted(RECORDED)
