"""Agreed cases: the next five times on which many implementations agree."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from wakeful.triggers import Cron

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/cron_sample.jsonl").read_text().splitlines()]


@pytest.mark.promise("H14", "D3")
@pytest.mark.parametrize("case", CASES, ids=[f"{case['expr']} {case['tz']}" for case in CASES])
def test_the_next_five_times_are_the_agreed_ones(case):
    trigger = Cron(case["expr"], tz=case["tz"])
    expected = [datetime.fromisoformat(moment) for moment in case["expect"]]
    assert trigger.upcoming(datetime.fromisoformat(case["after"]), 5) == expected
    assert trigger.next_after(datetime.fromisoformat(case["after"])) == expected[0]
