"""What every store promises about sessions, watches and reports."""

from __future__ import annotations

from tests.store.samples import NOW, job, run
from wakeful.domains.agents import domain
from wakeful.domains.agents.tables import KeptSession, Sessions, Watch
from wakeful.store.reports import ReportedEnd


def kept(job_id, session=None, used_at=NOW):
    return KeptSession(job_id, session or f"s-{job_id}", "model", NOW, used_at)


def report(run_id, **changes):
    return ReportedEnd(run_id, NOW, "success", '{"n":1}', None, None)._replace(**changes)


def test_a_job_keeps_one_session_and_the_last_one_given_counts(store):
    store.write(lambda tx: tx.of(Sessions).keep(kept(1)))
    store.write(lambda tx: tx.of(Sessions).keep(kept(1, "other")))
    assert store.read(lambda tx: tx.of(Sessions).of(1)) == kept(1, "other")
    assert store.read(lambda tx: tx.of(Sessions).of(2)) is None
    assert store.read(lambda tx: tx.of(Sessions).of_all([1, 2])) == {1: "other"}
    assert store.read(lambda tx: tx.of(Sessions).of_all([])) == {}


def test_a_session_is_forgotten_only_by_its_own_name(store):
    store.write(lambda tx: tx.of(Sessions).keep(kept(1)))
    assert store.write(lambda tx: tx.of(Sessions).forget(1, "s-other")) is False
    assert store.write(lambda tx: tx.of(Sessions).forget(1, "s-1")) is True
    assert store.write(lambda tx: tx.of(Sessions).forget(1, "s-1")) is False


def test_the_sessions_used_longest_ago_are_crowded_out_and_those_of_removed_jobs_first(store):
    store.add(job(1), job(2), job(3, removed_at=NOW), job(4))
    for number in (1, 2, 3, 4):
        store.write(lambda tx, number=number: tx.of(Sessions).keep(kept(number, used_at=NOW + number)))
    assert store.write(lambda tx: tx.of(Sessions).crowd_out(3)) == ["s-3"]
    store.write(lambda tx: tx.of(Sessions).touch(1, NOW + 10))
    assert store.write(lambda tx: tx.of(Sessions).crowd_out(2)) == ["s-2"]
    assert store.write(lambda tx: tx.of(Sessions).crowd_out(2)) == []
    assert store.read(lambda tx: tx.of(Sessions).of_all([1, 2, 3, 4])) == {1: "s-1", 4: "s-4"}


def test_a_session_in_which_work_is_going_on_is_not_crowded_out(store):
    store.add(job(1, run_id=9), job(2, run_id=10, removed_at=NOW), job(3))
    for number in (1, 2, 3):
        store.write(lambda tx, number=number: tx.of(Sessions).keep(kept(number, used_at=NOW + number)))
    assert store.write(lambda tx: tx.of(Sessions).crowd_out(1)) == []
    assert store.read(lambda tx: tx.of(Sessions).of_all([1, 2, 3])).keys() == {1, 2, 3}


def test_a_jobs_session_goes_with_its_job(store):
    store.add(job(1))
    store.write(lambda tx: tx.of(Sessions).keep(kept(1)))
    store.write(lambda tx: tx.jobs.forget([1], domain.job_tables))
    assert store.read(lambda tx: tx.of(Sessions).of(1)) is None


def test_watches_are_listed_with_what_became_of_their_runs(store):
    store.add(job(1), job(2))
    store.add_runs(run(10, status="waiting", node=7), run(11, job_id=2, outcome="success"))
    for run_id in (11, 10, 12):
        store.write(lambda tx, run_id=run_id: tx.of(Sessions).watch(Watch(run_id, f"http://there/{run_id}", NOW)))
    store.write(lambda tx: tx.of(Sessions).watch(Watch(10, "http://there/moved", NOW + 1)))
    found = store.read(lambda tx: tx.of(Sessions).watched())
    assert [(each.watch.run_id, each.status, each.node) for each in found] == [
        (10, "waiting", 7),
        (11, "done", None),
        (12, None, None),
    ]
    assert found[0].watch == Watch(10, "http://there/moved", NOW + 1)
    store.write(lambda tx: tx.of(Sessions).unwatch([10, 12]))
    store.write(lambda tx: tx.of(Sessions).unwatch([]))
    assert [each.watch.run_id for each in store.read(lambda tx: tx.of(Sessions).watched())] == [11]


def test_the_first_report_about_a_run_counts(store):
    store.add(job(1))
    store.add_runs(run(10, status="active"))
    assert store.write(lambda tx: tx.reports.add(report(10))) is True
    assert store.write(lambda tx: tx.reports.add(report(10, outcome="error", error="no"))) is False
    assert store.read(lambda tx: tx.reports.of([10, 11])) == {10: report(10)}
    assert store.read(lambda tx: tx.reports.of([])) == {}
    store.write(lambda tx: tx.reports.drop([10]))
    assert store.read(lambda tx: tx.reports.of([10])) == {}


def test_reports_about_runs_that_ended_some_other_way_are_swept_up_with_the_next_one(store):
    store.add(job(1), job(2))
    store.add_runs(run(10, status="active"), run(11, job_id=2, status="active"))
    store.write(lambda tx: tx.reports.add(report(10)))
    store.write(lambda tx: tx.runs.finish([(10, "done", "cancelled", NOW, NOW, None)]))
    store.write(lambda tx: tx.reports.add(report(11)))
    assert list(store.read(lambda tx: tx.reports.of([10, 11]))) == [11]


def test_the_sessions_of_one_owner_crowd_out_no_others(store):
    store.add(job(1, owner="fox"), job(2, owner="hen"), job(3, owner="hen"), job(4), job(5))
    for number in (1, 2, 3, 4, 5):
        store.write(lambda tx, number=number: tx.of(Sessions).keep(kept(number, used_at=NOW + number)))
    assert sorted(store.write(lambda tx: tx.of(Sessions).crowd_out(1))) == ["s-2", "s-4"]
    assert store.read(lambda tx: tx.of(Sessions).of_all([1, 2, 3, 4, 5])) == {1: "s-1", 3: "s-3", 5: "s-5"}


def test_a_session_is_found_by_its_name_and_by_whose_job_keeps_it(store):
    store.add(job(1, owner="fox"), job(2), job(3, owner="fox", removed_at=NOW))
    for number in (1, 2, 3):
        store.write(lambda tx, number=number: tx.of(Sessions).keep(kept(number)))
    assert store.read(lambda tx: [tx.of(Sessions).called(name) for name in ("s-2", "s-9")]) == [kept(2), None]
    names = ("s-1", "s-2", "s-3", "s-9")
    assert store.read(lambda tx: [tx.of(Sessions).is_kept_by("fox", name) for name in names]) == [
        True,
        False,
        False,
        False,
    ]
    store.write(lambda tx: tx.of(Sessions).rename("s-1", "s-2"))
    assert store.read(lambda tx: tx.of(Sessions).of_all([1, 2])) == {1: "s-2", 2: "s-2"}
    assert store.read(lambda tx: tx.of(Sessions).is_kept_by("fox", "s-2")) is True
