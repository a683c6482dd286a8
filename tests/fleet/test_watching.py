"""A file that is watched while it is served: when it is read, what is reported, and which place applied it."""

from __future__ import annotations

import os

import pytest

from tests.fleet.test_applying import HOURLY, apply, fleet, names
from tests.fleet.test_planning import HOUR, NOW, owned, wanted
from tests.kernel.scene import virtual
from wakeful import Once
from wakeful.config.entries import Entry, FleetFile
from wakeful.domains.files import CONFIG_ALERT
from wakeful.domains.files.applying import place_of
from wakeful.domains.files.planning import PlanContext, make_plan
from wakeful.domains.files.watching import FileWatch, _notes_on
from wakeful.errors import InvalidSetting, StoreError
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.engine.alerts import open_alert
from wakeful.triggers.moments import from_ms

pytestmark = pytest.mark.promise("X15")


class Written:
    """A file with the names of jobs, and how often it was read."""

    def __init__(self, path):
        self.path = path
        self.reads = 0
        self.error = None
        self.ticks = 0
        self.write("a")

    def write(self, text):
        """Each time the file has another time stamp."""
        self.path.write_text(text)
        self.ticks += 1
        os.utime(self.path, (self.ticks, self.ticks))

    def load(self):
        self.reads += 1
        if self.error is not None:
            raise self.error
        text = self.path.read_text()
        if "wrong" in text:
            raise InvalidSetting(f"{text} cannot be used.")
        entries = tuple(Entry(NewJob(name, HOURLY), enabled=True, notes=None, references=()) for name in text.split())
        return FleetFile(self.path, "main", entries, {}, text, (), (), (), "UTC")


@pytest.fixture
def written(tmp_path):
    return Written(tmp_path / "wakeful.yaml")


def watching(scheduler, written, beside=None):
    watch = FileWatch(scheduler, written.path, written.load, lambda _: (), beside)
    scheduler.host.before_start(watch.prepare)
    scheduler.host.add_service(watch)


@virtual
async def test_a_file_that_is_being_written_is_read_once_it_is_whole(scene, written):
    async with scene.scheduler() as scheduler:
        watching(scheduler, written)
        await scheduler.start()
        await scene.sleep(1.2)
        assert (written.reads, await names(scheduler)) == (1, ["a"])
        for text in ("a b", "a b c", "a b c d"):
            written.write(text)
            await scene.sleep(0.5)
        assert written.reads == 1, "it was another one at every look"
        await scene.sleep(1)
        assert (written.reads, await names(scheduler)) == (2, ["a", "b", "c", "d"])
        await scheduler.stop()


@virtual
async def test_what_could_not_be_stored_is_tried_again_and_a_mistake_is_reported_once(scene, written):
    async with scene.scheduler() as scheduler:
        watching(scheduler, written)
        written.error = StoreError("away")
        await scheduler.start()
        await scene.sleep(3)
        assert written.reads > 2
        written.error = None
        await scene.sleep(2)
        assert await names(scheduler) == ["a"]
        for _ in range(3):
            written.write("wrong")
            await scene.sleep(2)
        (alert,) = await scheduler.list_alerts()
        assert (alert.kind, alert.times) == (CONFIG_ALERT, 1)
        written.write("a")
        await scene.sleep(2)
        assert await scheduler.list_alerts() == []
        written.write("wrong")
        await scene.sleep(2)
        assert len(await scheduler.list_alerts()) == 1, "it is a mistake again"
        await scheduler.stop()


class Sections:
    """What else is in a file: one that says `odd` is taken over in part, and then fails."""

    def __init__(self, written):
        self._written = written
        self._before = self.holds = "a"

    def is_taken(self):
        return self.holds == self._written.path.read_text()

    async def take(self):
        self._before, self.holds = self.holds, self._written.path.read_text()
        if "odd" in self.holds:
            raise RuntimeError("a domain stumbles")

    async def put_back(self):
        self.holds = self._before


@virtual
async def test_a_file_over_which_a_domain_stumbles_is_not_half_applied(scene, written):
    async with scene.scheduler() as scheduler:
        sections = Sections(written)
        watching(scheduler, written, sections)
        await scheduler.start()
        written.write("a odd")
        await scene.sleep(2)
        assert (sections.holds, await names(scheduler)) == ("a", ["a"])
        (alert,) = await scheduler.list_alerts()
        assert "It was not applied: RuntimeError: a domain stumbles" in alert.message
        written.write("a b")
        await scene.sleep(2)
        assert (sections.holds, await names(scheduler), await scheduler.list_alerts()) == ("a b", ["a", "b"], [])
        await scheduler.stop()


@virtual
async def test_applying_a_file_ends_the_alert_about_it(scene):
    async with scene.scheduler() as scheduler:
        made = fleet(scheduler, "a")
        for place in (made.place, "there:/other.yaml"):
            await scheduler.transact(lambda tx, context, p=place: open_alert(tx, context, CONFIG_ALERT, p, "wrong"))
        await apply(scheduler, made)
        left = await scheduler.read(lambda tx: [alert.key for alert in tx.alerts.all_open()])
        assert left == [f"{CONFIG_ALERT}:there:/other.yaml"]


@virtual
async def test_what_one_place_applied_is_still_to_be_applied_by_another(scene):
    async with scene.scheduler() as scheduler:
        first = fleet(scheduler, "a", "b", file_hash="1")
        await apply(scheduler, first, unless_applied=True)
        assert await apply(scheduler, first, unless_applied=True) is None
        other = fleet(scheduler, "a", "b", file_hash="1", place="there:/wakeful.yaml")
        assert await apply(scheduler, other, unless_applied=True) is not None


@pytest.mark.parametrize(("state", "is_over"), [({}, True), ({"paused": 1}, False)])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_one_shot_that_was_stopped_by_a_person_is_not_over(state, is_over, enabled):
    """What is over is run again at a new time; what a person stopped stays so."""
    past, later = Once(from_ms(NOW - HOUR)), Once(from_ms(NOW + HOUR))
    stopped = owned(wanted(trigger=past), enabled=enabled, last_slot=NOW - HOUR, slot_runs=1)
    stopped = stopped._replace(state=stopped.state._replace(enabled=0, ended_at=NOW - HOUR, **state))
    plan = make_plan([wanted(trigger=later, enabled=enabled)], [stopped], PlanContext(NOW, "UTC", {}))
    (update,) = plan.update
    assert update.revives is (is_over and enabled)


@pytest.mark.parametrize(("ms", "passed"), [(-1, True), (0, False), (1, False)])
def test_a_one_shot_of_this_moment_has_not_passed(ms, passed):
    plan = make_plan([wanted(trigger=Once(from_ms(NOW + ms)))], [], PlanContext(NOW, "UTC", {}))
    assert plan.passed == (["a"] if passed else [])
    assert len(plan.create) == (0 if passed else 1)


@virtual
async def test_a_server_whose_file_was_replaced_by_another_says_so_and_what_to_do(scene, written, tmp_path, caplog):
    caplog.set_level("INFO", "wakeful.config")
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", file_hash="a", place=place_of(written.path)))
        other = tmp_path / "other.yaml"
        other.write_text("b")
        await apply(scheduler, fleet(scheduler, "b", file_hash="b", place=place_of(other)), confirmed=True)
        watching(scheduler, written)
        await scheduler.start()
        await scene.sleep(1.2)
        assert await names(scheduler) == ["b"]
        [said] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert said.startswith(f"{written.path} is not applied: {other} was applied after it, ")
        assert "give one of them a fleet of its own (fleet: NAME)" in said
        assert said.endswith(f"to go back to this one, run wakeful apply {written.path} --yes")
        await scheduler.stop()


@virtual
async def test_a_server_whose_file_is_what_is_stored_says_nothing(scene, written, caplog):
    caplog.set_level("INFO", "wakeful.config")
    async with scene.scheduler() as scheduler:
        await apply(scheduler, fleet(scheduler, "a", file_hash="a", place=place_of(written.path)))
        watching(scheduler, written)
        await scheduler.start()
        await scene.sleep(1.2)
        assert [record for record in caplog.records if record.levelname == "WARNING"] == []
        await scheduler.stop()


def test_what_waits_for_jobs_that_come_or_are_gone_is_logged(tmp_path):
    plan = make_plan([], [], PlanContext(NOW, "UTC"))._replace(notes=("1 event waits for a.",))
    found = [text % tuple(values) for level, text, *values in _notes_on(tmp_path / "wakeful.yaml", plan) if level > 20]
    assert found == [f"{tmp_path / 'wakeful.yaml'}: 1 event waits for a."]
