"""The state of the engine's loop: what its transitions lead to."""

from __future__ import annotations

import pytest

from wakeful.kernel.loop.loop_state import AdmissionState, Contact, LoopState, News


def state(**values):
    return LoopState(**values)


def test_news_that_may_be_about_a_run_is_not_covered_by_lesser_news_and_a_turn_takes_all():
    loop = state(news=News.NONE)
    loop.note_change(recheck_store=True)
    loop.note_change()
    assert loop.news is News.RECHECK
    assert loop.begin_turn()
    assert (loop.news, loop.turning) == (News.NONE, True)
    loop.note_change()
    loop.end_turn()
    assert (loop.news, loop.turning) == (News.CHANGED, False)
    assert not loop.begin_turn()


def test_who_may_start_again_looks_at_the_whole_store():
    loop = state()
    loop.begin()
    loop.begin_turn()
    loop.note_admission(admitted=True)
    assert loop.news is News.NONE, "nothing has changed"
    loop.note_admission(admitted=False)
    assert (loop.admission, loop.news) == (AdmissionState.BARRED, News.NONE)
    loop.note_admission(admitted=True)
    assert (loop.admission, loop.news) == (AdmissionState.OPEN, News.RECHECK)


def test_what_our_owner_closed_stays_closed_until_it_begins_again():
    loop = state()
    loop.begin()
    loop.stop_admitting()
    loop.note_admission(admitted=True)
    assert (loop.admitting, loop.admitted) == (False, False)
    loop.begin()
    assert (loop.admitting, loop.admitted) == (True, True)


@pytest.mark.parametrize(
    ("before", "lost", "found", "recovered"),
    [
        (Contact.SURE, Contact.UNSURE, Contact.SURE, Contact.SURE),
        (Contact.UNSURE, Contact.UNSURE, Contact.SURE, Contact.UNSURE),
        (Contact.AWAY, Contact.AWAY, Contact.BACK, Contact.UNSURE),
        (Contact.BACK, Contact.AWAY, Contact.BACK, Contact.SURE),
    ],
)
def test_trouble_with_the_store_and_claims_that_are_not_known_are_one_state(before, lost, found, recovered):
    def after(transition):
        loop = state(contact=before)
        transition(loop)
        return loop.contact

    assert after(LoopState.lose_claims) is lost
    assert after(LoopState.find_claims) is found
    assert after(LoopState.recover) is recovered
    assert after(lambda loop: loop.fail("away")) is Contact.AWAY


def test_trouble_is_new_once_also_if_the_store_answers_about_claims_in_between():
    loop = state()
    assert loop.fail("away")
    assert not loop.fail("still away")
    loop.find_claims()
    assert not loop.fail("away again")
    assert (loop.trouble, loop.unsure) == ("away again", True)
    loop.find_claims()
    assert loop.recover()
    assert (loop.trouble, loop.unsure, loop.recover()) == (None, False, False)
