"""Hundreds of worlds in every test run; a seed that ever failed is kept here."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from tests.simulation.faulty_store import Faults
from tests.simulation.invariants import Broken
from tests.simulation.world import CROWDED, World, live
from wakeful import Once, Trigger
from wakeful.kernel.engine import admission, ending, turn
from wakeful.kernel.loop import sweep
from wakeful.kernel.loop.handlers import Active
from wakeful.kernel.loop.loop import Engine
from wakeful.kernel.loop.loop_state import News
from wakeful.kernel.rules import option_reading, parking
from wakeful.scheduler import core
from wakeful.store import alarms
from wakeful.store.jobs import Jobs
from wakeful.store.records import JobState
from wakeful.store.sqlite_session import SqliteSession

SEEDS = range(96)
GROUPS = 8
CROWDED_SEEDS = range(CROWDED, CROWDED + 48)
CROWDED_GROUPS = 8
#: Each once broke a promise.
KEPT = (5069, 90634, 90879)


@pytest.mark.promise("H2", "H9", "H11", "H12", "X14", "X27")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_at_any_moment_loses_doubles_or_strands_a_run(group: int) -> None:
    starts = deaths = undone = 0
    for seed in SEEDS[group::GROUPS]:
        world = live(seed, steps=40)
        starts += world.starts
        deaths += world.deaths
        undone += world.undone
    assert starts > 100
    assert deaths > 5
    assert undone > 0


@pytest.mark.promise("H2", "H9", "H12", "X14", "X22")
@pytest.mark.parametrize("group", range(CROWDED_GROUPS))
def test_whatever_happens_no_job_starts_before_one_of_higher_priority(group: int) -> None:
    starts = compared = 0
    for seed in CROWDED_SEEDS[group::CROWDED_GROUPS]:
        world = live(seed, steps=40)
        starts += world.starts
        compared += world.order.compared
    assert starts > 10
    assert compared > 0, "turns that took less than all there was"


@pytest.mark.parametrize("seed", KEPT)
def test_what_once_broke_a_promise_breaks_none(seed: int) -> None:
    live(seed)


@pytest.mark.parametrize("seed", [3, 71])
def test_a_seed_replays_exactly(seed: int) -> None:
    first, second = live(seed, steps=40), live(seed, steps=40)
    assert first.steps == second.steps
    assert first.trace.digest() == second.trace.digest()


class Unstoppable(World):
    """Most handlers go on for a while after they are cancelled."""

    kinds = (("deaf", 20), ("good", 2))


class Prompt(World):
    """Several people add jobs at once, to run now or tomorrow, and wait; nothing goes wrong, so nothing starts late."""

    kinds = (("good", 1),)
    weights: ClassVar[dict[str, int]] = {"_add_at_once": 1}

    async def _add_at_once(self) -> None:
        await asyncio.gather(self._add(), self._add(), self._add())
        await asyncio.sleep(900)

    def _trigger(self) -> Trigger:
        now = datetime.fromtimestamp(self.clock.now() / 1000, UTC)
        return Once(now + timedelta(seconds=self.rng.choice((0, 86_400))))

    def _options(self) -> dict[str, object]:
        return {}

    def _needs(self) -> dict[str, object]:
        return {}

    def _look(self) -> None:
        super()._look()
        for row in self._watch().execute("SELECT message FROM alerts WHERE kind = 'missed'"):
            raise Broken(f"{row['message']}, and nothing was wrong")


def _breaks(seeds: range = range(40), kind: type[World] = World, steps: int = 40) -> str:
    """The first broken promise the worlds find, or nothing."""
    for seed in seeds:
        try:
            live(seed, steps, kind)
        except Broken as broken:
            return str(broken)
    return ""


def test_it_finds_a_lane_that_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "free_lanes", lambda _tx, _runs: None)
    assert "lane" in _breaks()


def test_it_finds_a_parked_job_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Jobs, parked: str, now: int, limit: int) -> int:
        sql = "UPDATE job_state SET parked = NULL WHERE parked = ?"
        return self._session.execute(sql, (parked,))

    monkeypatch.setattr(Jobs, "requeue_parked", forget)
    assert "nothing will ever start" in _breaks()


def test_it_finds_a_run_that_is_started_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Engine._apply

    def twice(self: Engine, result: turn.TurnResult) -> None:
        apply(self, result._replace(claimed=result.claimed + result.claimed[:1]))

    monkeypatch.setattr(Engine, "_apply", twice)
    assert "started twice" in _breaks()


def test_it_finds_a_change_that_is_covered_up_by_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine as it first was: what changed while a turn was being committed was forgotten with its answer.

    Replies take seconds here, so that turns and changes meet often. What is forgotten is not lost: a sweep finds that
    its start was missed, and its alert makes the engine look again. So the world looks for starts that are late; and
    without that look, what is forgotten stays where it is.
    """
    monkeypatch.setattr(Faults, "max_delay", 3.0)
    assert _breaks(range(5, 7), Prompt) == ""
    apply = Engine._apply

    def forgetful(self: Engine, result: turn.TurnResult) -> None:
        apply(self, result)
        self._state.news = News.NONE

    monkeypatch.setattr(Engine, "_apply", forgetful)
    assert "did not start within its grace" in _breaks(range(5, 20), Prompt)
    monkeypatch.setattr(sweep, "watch_missed", lambda _tx, _context, _lines: None)
    assert "nothing happens" in _breaks(range(40), Prompt, steps=1)


@pytest.mark.promise("H10")
def test_it_finds_a_handler_that_swallows_its_cancellation_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaks(range(3), Unstoppable) == ""
    monkeypatch.setattr(Active, "refuses_to_end", lambda _self, _now: None)
    assert "does not stop, and there is no alert" in _breaks(kind=Unstoppable)


@pytest.mark.promise("X13")
def test_it_finds_a_label_that_cannot_be_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels as they first were: joined with commas, whatever they held."""
    for place in (option_reading, core):
        monkeypatch.setattr(place, "read_labels", lambda _key, value: frozenset(value))
    monkeypatch.setattr(World, "labels", ("gpu", "eu", "a,b"))
    assert _breaks(range(12)) == ""
    monkeypatch.setattr(admission, "place_key", lambda labels: "labels:" + ",".join(labels))
    monkeypatch.setattr(parking, "labels_of", lambda key: key.removeprefix("labels:").split(","))
    assert "waits for labels that the node has" in _breaks()


@pytest.mark.promise("X22")
@pytest.mark.parametrize(
    ("verb", "wrong"), [("due_alone", ("p.level DESC", "p.level")), ("due_alone", ("s.due_at, s.job_id", "s.job_id"))]
)
def test_it_finds_what_is_due_being_taken_out_of_order(
    monkeypatch: pytest.MonkeyPatch, verb: str, wrong: tuple[str, str]
) -> None:
    ask = getattr(alarms, verb)
    monkeypatch.setattr(alarms, verb, lambda now, limit: (ask(now, limit)[0].replace(*wrong), (now, limit)))
    assert "X22: of what is due" in _breaks(CROWDED_SEEDS)


@pytest.mark.promise("X22")
def test_it_finds_a_priority_that_an_edit_leaves_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    save = Jobs.save

    def forgetful(self: Jobs, states: list[JobState]) -> None:
        before = self.states([state.job_id for state in states])
        save(self, [state._replace(priority=before[state.job_id].priority) for state in states])

    monkeypatch.setattr(Jobs, "save", forgetful)
    assert "which is not its own" in _breaks(CROWDED_SEEDS)


@pytest.mark.promise("X22")
def test_it_finds_who_waits_for_a_lane_being_put_back_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    among = SqliteSession.among

    def oldest_first(self: SqliteSession, select: str) -> str:
        return among(self, select.replace("priority DESC, ", ""))

    monkeypatch.setattr(SqliteSession, "among", oldest_first)
    assert "X22: of what waits for press" in _breaks(CROWDED_SEEDS)
