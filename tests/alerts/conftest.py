"""The scene of the kernel's tests, for alerts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.scene import minutely_sweeps, postgres_scene, scene, sqlite_scene

__all__ = ["minutely_sweeps", "postgres_scene", "scene", "sqlite_scene"]

HERE = Path(__file__).parent


#: What is also tried on the slower store every day; the rest there is long.
EVERY_DAY = (
    "test_a_job_that_is_disabled_is_one_message_that_says_so_and_failing_is_not_over",
    "test_a_process_that_dies_between_opening_and_sending_loses_no_message_and_doubles_none",
    "test_a_slot_that_passed_while_nothing_ran_is_one_alert_and_one_when_the_job_has_started",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None or HERE not in item.path.parents or "postgres" not in case.id.split("-"):
            continue
        if item.originalname not in EVERY_DAY:
            item.add_marker(pytest.mark.long)
