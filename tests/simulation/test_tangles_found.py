"""Mistakes about workflows, made on purpose: the worlds find each of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.tangles import ALL, Tangled
from tests.simulation.world import live
from wakeful import Noop
from wakeful.domains.workflows import adding, checkpoints, cut_off, deploying, handler_context, hooks, views, working
from wakeful.domains.workflows.approving import PREPARED, Approval, SeenEvents
from wakeful.domains.workflows.forgotten import Begun
from wakeful.domains.workflows.handler_context import HandlerContext
from wakeful.domains.workflows.running import Attempt
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.peeking import Events
from wakeful.domains.workflows.turns import rounds

FIRST, MOST = 50_000, 25  # of each plot: two hundred worlds of all


def _breaks(plot: str) -> str:
    """The first broken promise that worlds of this plot find, or nothing."""
    offset = [one.name for one in ALL].index(plot)
    for number in range(MOST):
        try:
            live(FIRST + offset + len(ALL) * number, 60, Tangled)
        except Broken as broken:
            return f"{FIRST + offset + len(ALL) * number}: {broken}"
    return ""


@pytest.mark.promise("X8")
def test_it_finds_an_approval_that_is_taken_for_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_any(self: Approval, _: str | None, phase: str) -> str | None:
        found = self._approved(phase)
        return str(found[-1]["by"]) if found else None

    monkeypatch.setattr(Approval, "of_prepared", of_any)
    monkeypatch.setattr(SeenEvents, "_is_same_so_far", lambda _: True)
    monkeypatch.setattr(SeenEvents, "until", None)
    assert "X8: paying did" in _breaks("paying")


@pytest.mark.promise("X8")
def test_it_finds_a_second_question_that_is_answered_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_any_question(self: SeenEvents) -> str | None:
        if self._entry is None or not (PREPARED in self._about or self._is_same_so_far()):
            return None
        self.used = True
        return str(self._entry["by"])

    monkeypatch.setattr(SeenEvents, "approved_by", of_any_question)
    assert "X8: paying did" in _breaks("paying")


@pytest.mark.promise("K7", "K10", "K11")
def test_it_finds_a_reconcile_beside_a_thread_that_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (working, hooks):
        monkeypatch.setattr(place, "is_left", lambda _: False)
    assert "in a thread was still working" in _breaks("threaded")


@pytest.mark.promise("K12")
def test_it_finds_a_change_that_is_tried_again_and_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(self: Any) -> None:
        await self._store(lambda tx, context: checkpoints.not_applied(tx, context, self._row))
        raise Noop("the mutation did not happen, and is prepared again")

    monkeypatch.setattr(Attempt, "_did_not_happen", at_once)
    monkeypatch.setattr(checkpoints, "backoff", lambda _: 0)
    assert "work.mutate failed" in _breaks("refused")


@pytest.mark.promise("K10")
def test_it_finds_a_workflow_that_is_put_back_and_never_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    new_attempt = hooks._new_attempt

    def with_the_old_job(tx: Any, parts: Any, job: Any, run: Any) -> Any:
        attempt = new_attempt(tx, parts, job, run)
        before = tx.of(WorkflowVerbs).run(attempt.retry_of) if attempt.begins != "prepare" else None
        return attempt if before is None else attempt._replace(job_id=before.job_id)

    monkeypatch.setattr(hooks, "_new_attempt", with_the_old_job)
    monkeypatch.setattr(deploying, "finish_removed", lambda *_, **__: None)
    assert "deadly needs attention" in _breaks("deadly")


@pytest.mark.promise("X14")
def test_it_finds_a_handler_that_ends_its_process_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = cut_off._crashed

    def without_a_ladder(tx: Any, handler: Any, workflow: Any, cut: Any, *, blamed: bool) -> Any:
        state = tx.jobs.states([cut.job_id])[cut.job_id]
        tx.jobs.save([state._replace(crashes=0, backoff_until=None)])
        cut, following = crashed(tx, handler._replace(blamed=0), workflow, cut, blamed=False)
        return cut, following._replace(issue=following.issue._replace(until=None), again=tx.now)

    monkeypatch.setattr(cut_off, "_crashed", without_a_ladder)
    monkeypatch.setattr(hooks, "count_on", lambda _tx, _handler: None)
    assert "killed its process" in _breaks("deadly")


@pytest.mark.promise("K12")
def test_it_finds_a_cancelled_call_that_counts_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandlerContext, "_note_cut_call", lambda _: None)
    assert "nothing was changed for it" in _breaks("hasty")


@pytest.mark.promise("K12")
def test_it_finds_a_call_that_was_cancelled_before_it_began_and_counts_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Begun, "is_lost", lambda _self, _name: False)
    assert "nothing was changed for it" in _breaks("hasty")


@pytest.mark.promise("K1", "K14")
def test_it_finds_pending_events_that_a_restart_or_a_deploy_does_not_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (adding, deploying):
        monkeypatch.setattr(place, "look_at_pending", lambda _tx, _context, _name: None)
    assert "pending" in _breaks("picky")


@pytest.mark.promise("K17")
def test_it_finds_events_that_are_hidden_behind_a_hundred_others(monkeypatch: pytest.MonkeyPatch) -> None:
    as_events = handler_context.as_events
    monkeypatch.setattr(handler_context, "as_events", lambda read: Events(as_events(read), more=False))
    assert "still pending" in _breaks("shop")


@pytest.mark.promise("K13")
def test_it_finds_a_producer_that_two_consumers_starve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MAX_ROUNDS", 10**6)
    assert "is due for" in _breaks("rally")


@pytest.mark.promise("K16")
def test_it_finds_a_run_of_a_handler_that_was_taken_out_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_deployed(tx: Any, name: str) -> list[Any]:
        table = tx.of(WorkflowVerbs)
        found = [table.latest(handler.job_id) for handler in table.handlers(name)]
        return [one for one in found if one is not None and one.status == "active"]

    monkeypatch.setattr(views, "in_progress", of_deployed)
    assert "is at work, and it is shown as idle" in _breaks("deadly")
