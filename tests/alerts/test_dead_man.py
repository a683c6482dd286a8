"""The dead man's URL is called while the loop turns and the store answers, and not otherwise."""

from __future__ import annotations

import logging

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.kernel.scene import virtual
from wakeful.domains.alerts import configure
from wakeful.domains.alerts.configuration import AlertsSection, install, reload
from wakeful.domains.alerts.dead_man import DEAD_MAN, DeadMan, _close, is_healthy
from wakeful.errors import SchedulerError
from wakeful.kernel.engine.alerts import open_alert
from wakeful.scheduler import SchedulerState
from wakeful.store.records import NodeRow
from wakeful.triggers.moments import from_ms

pytestmark = pytest.mark.usefixtures("minutely_sweeps")

URL = "https://dead.example.org/ping/PLANTED-SECRET"
OTHER = "https://other.example.org/ping/KEY"
NOW = 1_800_000_000_000


class Watcher:
    """The service at the other end."""

    def __init__(self, scene):
        self._scene = scene
        self.times = []
        self.answer = 200

    async def __call__(self, url):
        assert url == URL
        self.times.append(self._scene.clock.now())
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.promise("X5")
@virtual
async def test_it_is_called_at_the_start_and_then_more_than_once_a_minute(scene):
    watcher = Watcher(scene)
    async with scene.scheduler() as scheduler:
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))
        before = scene.clock.now()
        await scheduler.start()
        await scene.sleep("10m")
        assert watcher.times[0] - before < 1000
        assert max(b - a for a, b in zip(watcher.times, watcher.times[1:], strict=False)) <= 60_000
        await scheduler.stop()
        count = len(watcher.times)
        await scene.sleep("10m")
        assert len(watcher.times) == count


@pytest.mark.promise("X5")
@pytest.mark.parametrize(
    ("changes", "healthy"),
    [
        ({}, True),
        ({"status": "stopping"}, False),
        ({"trouble": "the disk is full"}, False),
        ({"last_check_at": None}, False),
        ({"last_check_at": from_ms(NOW - 74_000)}, True),
        ({"last_check_at": from_ms(NOW - 75_000)}, False),  # the loop stands
    ],
)
def test_a_loop_that_stands_or_a_store_that_is_away_is_not_healthy(changes, healthy):
    state = SchedulerState("running", from_ms(NOW - 100_000), 1, 1, from_ms(NOW), None)
    assert is_healthy(state._replace(**changes), NOW) is healthy


@pytest.mark.promise("X5")
@virtual
async def test_a_call_that_fails_is_logged_once_alerted_and_holds_nothing_up(scene, caplog):
    phone, watcher = Phone(scene), Watcher(scene)
    watcher.answer = SchedulerError(f"{URL} cannot be reached: refused")
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))
        with caplog.at_level(logging.WARNING, "wakeful.alerts"):
            await scheduler.start()
            await scene.sleep("10m")
        assert len([record for record in caplog.records if record.name == "wakeful.alerts"]) == 1
        assert phone.events == [("dead_man", "opened")]
        watcher.answer = 204
        await scene.sleep("2m")
        assert phone.events == [("dead_man", "opened"), ("dead_man", "closed")]
        seen = caplog.text + "".join(phone.texts) + repr(await scheduler.list_alerts(open_only=False))
        assert "PLANTED-SECRET" not in seen
        assert "dead.example.org" in phone.texts[0]


@virtual
async def test_one_call_that_fails_is_no_alert_and_an_answer_of_an_error_is_a_failure(scene):
    watcher = Watcher(scene)
    async with scene.scheduler() as scheduler:
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))
        await scheduler.start()
        await scene.sleep(1)
        watcher.answer = 500
        await scene.sleep(35)
        watcher.answer = 200
        await scene.sleep("2m")
        assert await scheduler.list_alerts(open_only=False) == []
        watcher.answer = 404
        await scene.sleep("2m")
        assert [alert.message.rpartition(": ")[2] for alert in await scheduler.list_alerts()] == ["it answered 404"]


@virtual
async def test_what_an_earlier_life_could_not_call_is_closed_by_the_first_call_that_works(scene):
    watcher = Watcher(scene)
    watcher.answer = 500
    async with scene.scheduler() as scheduler:
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))
        await scheduler.start()
        await scene.sleep("2m")
        assert len(await scheduler.list_alerts()) == 1
    watcher.answer = 200
    async with scene.scheduler() as scheduler:
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))
        await scheduler.start()
        await scene.sleep("1m")
        assert await scheduler.list_alerts() == []


@virtual
async def test_an_answer_closes_the_alerts_of_nodes_that_are_gone_and_of_no_other(scene):
    def answered(tx, context):
        for number, name, left_at in ((1, "gone", tx.now), (2, "there", None)):
            tx.members.join(NodeRow(number, name, tx.now, tx.now, left_at, "{}"))
            open_alert(tx, context, DEAD_MAN, name, f"Node {name} cannot call the dead man's URL")
        _close(tx, context)
        return [alert.key for alert in tx.alerts.open_of(DEAD_MAN)]

    async with scene.scheduler() as scheduler:
        assert await scheduler.transact(answered) == ["dead_man:there"]


@pytest.mark.promise("X5")
@virtual
async def test_an_address_that_is_changed_in_the_file_is_called_from_then_on(scene):
    called = []

    async def call(url):
        called.append(url)
        return 500 if url == OTHER else 200

    async with scene.scheduler() as scheduler:
        companion = DeadMan(scheduler, None, call)
        scheduler.host.add_service(companion)
        await scheduler.start()
        await scene.sleep("5m")
        assert called == []
        for url in (URL, OTHER, URL, None):
            called.clear()
            await companion.take(url)
            await scene.sleep("5m")
            assert set(called) == ({url} if url is not None else set())
            kinds = [alert.kind for alert in await scheduler.list_alerts()]
            assert kinds == ([DEAD_MAN] if url == OTHER else [])
        await scheduler.stop()
        await companion.take(URL)
        called.clear()
        await scene.sleep("5m")
        assert called == [], "nothing is called while nothing runs"


@pytest.mark.promise("X5")
@virtual
async def test_a_file_that_is_read_again_changes_the_address(scene, monkeypatch):
    called = []

    async def post(self, url):
        called.append(url)
        return 200

    monkeypatch.setattr(DeadMan, "_post", post)
    async with scene.scheduler() as scheduler:
        install(scheduler, AlertsSection(dead_man_url=URL), None)
        await scheduler.start()
        await scene.sleep("1m")
        await reload(scheduler, AlertsSection(dead_man_url=OTHER))
        await scene.sleep("1m")
        assert (called[0], called[-1], set(called)) == (URL, OTHER, {URL, OTHER})
        await reload(scheduler, AlertsSection())
        called.clear()
        await scene.sleep("5m")
        assert called == []
