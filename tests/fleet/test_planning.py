"""The plan: what a file wants and what is stored, as a table."""

from __future__ import annotations

import pytest

from wakeful.domains.files.planning import DesiredJob, OwnedJob, PlanContext, make_plan
from wakeful.kernel.hooks import Draft
from wakeful.kernel.rules.policy import trigger_text
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Cron, Every, Interval, Once

NOW = 1_767_225_600_000  # 2026-01-01T00:00Z
HOUR = 3_600_000
TERMS = PlanContext(NOW, "UTC", {"argv": "command"})


def wanted(name="a", trigger=None, *, payload='{"argv":["x"]}', options="{}", owner=None, enabled=True, notes=None):
    return DesiredJob(Draft(name, trigger or Every("1h"), "command", payload, options, owner, "file"), enabled, notes)


def owned(one=None, *, enabled=True, notes=None, **state):
    """What is stored once that was applied, 90 minutes ago."""
    draft = (one or wanted()).draft
    then = NOW - 3 * HOUR // 2
    text = trigger_text(draft.trigger.resolved(then, "UTC"))
    job = JobDef(1, draft.name, draft.kind, draft.owner, "file", text, draft.payload, draft.options, then, then, None)
    return OwnedJob(job, JobState.new(1)._replace(**state), enabled, notes)


def failed():
    one = owned(errors=5)
    return one._replace(state=one.state._replace(enabled=0))


def shape(plan):
    return (
        [one.draft.name for one in plan.create],
        {one.owned.job.name: set(one.changes) for one in plan.update},
        [one.job.name for one in plan.remove],
        plan.unchanged,
    )


CRON = Cron("0 2 * * *", tz="UTC")


@pytest.mark.promise("X15")
@pytest.mark.parametrize(
    ("want", "have", "expected"),
    [
        ([], [], ([], {}, [], 0)),
        ([wanted()], [], (["a"], {}, [], 0)),
        ([], [owned()], ([], {}, ["a"], 0)),
        ([wanted()], [owned()], ([], {}, [], 1)),
        ([wanted("b")], [owned()], (["b"], {}, ["a"], 0)),
        ([wanted(trigger=Every("2h"))], [owned()], ([], {"a": {"schedule", "next"}}, [], 0)),
        ([wanted(trigger=CRON)], [owned(wanted(trigger=CRON))], ([], {}, [], 1)),
        ([wanted(trigger=Interval("5m"))], [owned(wanted(trigger=Interval("5m")))], ([], {}, [], 1)),
        ([wanted(payload='{"argv":["y"]}')], [owned()], ([], {"a": {"command"}}, [], 0)),
        ([wanted(options='{"timeout":60000}')], [owned()], ([], {"a": {"timeout"}}, [], 0)),
        ([wanted(owner="ops")], [owned()], ([], {"a": {"owner"}}, [], 0)),
        ([wanted(notes="why")], [owned()], ([], {"a": {"notes"}}, [], 0)),
        ([wanted(enabled=False)], [owned()], ([], {"a": {"enabled"}}, [], 0)),
        # what a person or the engine did since is not the file's business
        ([wanted()], [owned(paused=1)], ([], {}, [], 1)),
        ([wanted(trigger=Every("2h"))], [owned(paused=1, next_at=None)], ([], {"a": {"schedule"}}, [], 0)),
        ([wanted()], [failed()], ([], {}, [], 1)),
        # a one-shot whose time has passed is not made anew
        ([wanted(trigger=Once("2025-12-31T00:00Z"))], [], ([], {}, [], 0)),
    ],
)
def test_a_plan_is_the_difference_and_nothing_more(want, have, expected):
    assert shape(make_plan(want, have, TERMS)) == expected


def test_a_grid_stays_where_it_is_whatever_else_changes():
    before = owned(next_at=NOW + HOUR // 2)
    plan = make_plan([wanted(trigger=Every("1h", jitter=5))], [before], TERMS)
    assert plan.update[0].changes["next"] == ("2026-01-01T00:30:00Z", "2026-01-01T00:30:00Z")


def test_a_schedule_that_moves_is_reported_with_its_old_and_new_time():
    before = owned(wanted(trigger=CRON), next_at=NOW + 2 * HOUR)
    changes = make_plan([wanted(trigger=Cron("0 3 * * *", tz="UTC"))], [before], TERMS).update[0].changes
    assert changes == {
        "schedule": ("every day at 02:00, UTC", "every day at 03:00, UTC"),
        "next": ("2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z"),
    }


@pytest.mark.parametrize(
    ("kept", "gone", "most"), [(1, 1, False), (1, 2, True), (0, 1, True), (2, 2, False), (3, 0, False)]
)
def test_more_than_half_is_too_much(kept, gone, most):
    jobs = [owned(wanted(f"job{n}")) for n in range(kept + gone)]
    assert make_plan([wanted(f"job{n}") for n in range(kept)], jobs, TERMS).removes_most is most
