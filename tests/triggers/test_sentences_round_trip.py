"""What is printed for a schedule can be typed back and means the same schedule."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from tests.triggers.generated import TRIGGERS
from wakeful.triggers import After, Cron, Every, Once, Ping
from wakeful.triggers.sentences import when


@pytest.mark.promise("X29")
@given(TRIGGERS)
@example(After(" a  b"))
@example(After('"'))
@example(After("the last run", on="any"))
@example(After("backup has", on="any"))
@example(After("20 minutes"))
@example(Cron("* 2,5 * * *", max_runs=1))
@example(Cron("7 1,5 9 * * *", max_runs=1))
@example(Cron("0 0-5,9-23 * * *", tz="Pacific/Guam", until="2026-12-24T18:00:00Z"))
@example(Ping(Every("14d"), grace="1m"))
@example(Cron("0 9 */2 * MON,5L", tz="Pacific/Chatham"))
@example(Once("2026-10-25T00:30:00.250Z", tz="Europe/Berlin"))
@example(Once("2026-10-25T01:30:00Z", tz="Europe/London"))
@example(Every(1234.567, "0002-01-05T00:00:00Z", tz="Europe/Dublin"))
def test_every_sentence_can_be_typed_back_and_means_the_same_schedule(trigger):
    sentence = trigger.describe()
    again = when(sentence)
    assert again == trigger, sentence
    assert again.describe() == sentence
