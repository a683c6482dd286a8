"""Worlds of several nodes on one PostgreSQL database in every test run; a seed that ever failed is kept here."""

from __future__ import annotations

import pytest

from tests.simulation.fleet import Fleet, live_together
from tests.simulation.invariants import Broken
from tests.simulation.siege import Ambush, Siege
from wakeful.kernel.cluster import membership
from wakeful.kernel.engine import turn
from wakeful.kernel.engine.admission import Admission
from wakeful.store.jobs import Jobs
from wakeful.store.lanes import Lanes, Load
from wakeful.store.nodes import Members
from wakeful.store.records import NodeRow, NodeState

SEEDS = range(8)
GROUPS = 4
#: Each once broke a promise.
KEPT = (115,)  # and 3, which is among the seeds


@pytest.mark.promise("X2", "X13", "X14", "H2", "H9", "H11", "H12")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_of_any_node_loses_doubles_or_strands_a_run(group: int) -> None:
    starts = deaths = 0
    for seed in SEEDS[group::GROUPS]:
        fleet = live_together(seed)
        starts += fleet.starts
        deaths += fleet.deaths
    assert starts > 10
    assert deaths >= 1


@pytest.mark.parametrize("group", range(10))
def test_a_hundred_worlds_lose_double_and_strand_nothing(group: int) -> None:
    for seed in range(1000 + 10 * group, 1010 + 10 * group):
        live_together(seed, steps=60)


@pytest.mark.parametrize("seed", KEPT)
def test_what_once_broke_a_promise_breaks_none(seed: int) -> None:
    live_together(seed)


def test_a_seed_replays_exactly() -> None:
    first, second = live_together(2, steps=25), live_together(2, steps=25)
    assert first.steps == second.steps


# -- rules broken on purpose -------------------------------------------------------------------------------------------


def _breaks(seeds: range = range(8), world: type[Fleet] = Siege) -> str:
    """The first broken promise that these worlds find, or nothing."""
    for seed in seeds:
        try:
            if issubclass(world, Siege):
                live_together(seed, steps=10, nodes=3, world=world)
            else:
                live_together(seed)
        except Broken as broken:
            return str(broken)
    return ""


def test_a_siege_alone_breaks_nothing() -> None:
    assert live_together(1, steps=10, nodes=3, world=Siege).deaths > 1


def test_an_ambush_alone_breaks_nothing() -> None:
    assert live_together(1, steps=10, nodes=3, world=Ambush).starts > 20


@pytest.mark.promise("X2")
def test_it_finds_a_node_that_claims_after_it_was_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that does not ask whether its node was taken over from: neither alone nor with what is due."""
    alive = NodeState(draining=False, held=0, parked=True)
    monkeypatch.setattr(Members, "standing", lambda _self, _node_id, *, parked: alive)
    monkeypatch.setattr(Jobs, "due_for", lambda self, _node_id, now, limit, *, parked: (alive, self.due(now, limit)))
    assert "which was taken over from" in _breaks(range(4), Ambush)


def test_it_finds_a_late_result_that_covers_up_a_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling without asking whether the job still runs this run."""
    settle_all = turn.settle_all

    def blind(tx, node, ended):
        states = tx.jobs.states
        runs = {item.run.job_id: item.run.id for item in ended}

        class Blind(Jobs):
            def states(self, job_ids):
                found = states(job_ids)
                return {job_id: state._replace(run_id=runs[job_id]) for job_id, state in found.items()}

        tx.jobs = Blind(tx.jobs._session)
        return settle_all(tx, node, ended)

    monkeypatch.setattr(turn, "settle_all", blind)
    assert _breaks(range(3, 12), Fleet)


def test_it_finds_a_node_that_is_taken_over_though_it_was_heard_of_since(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking over without comparing what was read with what is there now, where reading and writing lie apart."""
    seen: dict[int, NodeRow] = {}

    def long_ago(self: Members, since: int) -> list[NodeRow]:
        nodes = [seen.setdefault(node.id, node) for node in self.alive()]
        return [node for node in nodes if node.seen_at < since]

    def take(self: Members, silent: NodeRow, by: int, now: int) -> bool:
        sql = "UPDATE nodes SET stopped_at = ?, taken_by = ? WHERE id = ?"
        return self._session.execute(sql, (now, by, silent.id)) == 1

    monkeypatch.setattr(Members, "silent", long_ago)
    monkeypatch.setattr(membership.PeerObserver, "heard_lately", lambda _self, _node_id: False)
    monkeypatch.setattr(Members, "take_over", take)
    assert "it is well" in _breaks()


def test_it_finds_runs_that_no_node_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Members, "silent", lambda _self, _since: [])
    assert "has been dead" in _breaks()


def test_it_finds_a_lane_that_each_node_counts_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lanes, "loads", lambda _self, keys: dict.fromkeys(keys, Load(0, None, contested=False)))
    assert "D6: lane" in _breaks()


def test_it_finds_a_job_that_runs_where_it_must_not(monkeypatch: pytest.MonkeyPatch) -> None:
    admit = Admission.admit

    def anywhere(self, job, options, state):
        return admit(self, job, options._replace(labels=()), state)

    monkeypatch.setattr(Admission, "admit", anywhere)
    assert "X13" in _breaks()
