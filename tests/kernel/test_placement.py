"""Placement: a job runs where all its labels are, and waits while no node has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.scene import at, virtual
from wakeful import InvalidJob, Manual, Once, Scheduler
from wakeful.kernel.rules.option_reading import RESERVED_LANES, RESERVED_PREFIXES
from wakeful.kernel.rules.options import read_options
from wakeful.kernel.rules.parking import (
    GLOBAL_LANE,
    HANDLER,
    PLACE,
    SUSPECT_LANE,
    is_lane,
    labels_of,
    place_key,
    serves,
)

words = st.one_of(st.text("ab,[] ", min_size=1), st.text(min_size=1)).filter(str.isprintable)


@pytest.mark.promise("X13")
@given(st.sets(words, min_size=1), st.sets(words))
def test_what_waits_for_labels_is_put_back_by_every_node_that_has_them_and_no_other(asked, others):
    key = place_key(tuple(sorted(asked)))
    assert sorted(labels_of(key)) == sorted(asked)
    assert serves(frozenset(), frozenset(asked | others), key)
    assert serves(frozenset(), frozenset(others), key) == (asked <= others)
    assert not is_lane(key)


@pytest.mark.promise("X13")
@pytest.mark.parametrize("labels", [["gpu"], ["gpu", "eu"], ["[1]"], ["]["], ['"'], ["größe x"]], ids=repr)
@virtual
async def test_a_job_that_waited_for_its_labels_runs_once_a_node_has_them_all(scene, labels):
    async with scene.scheduler(labels=labels[:-1]) as scheduler:  # one of two is not enough
        await scheduler.add_job("a", Once(at(0, 1)), labels=labels)
        await scheduler.start()
        await scene.until(at(0, 5))
        assert scene.runs == []
        assert "no running node is labelled" in str(await scheduler.explain("a"))
        assert ", ".join(sorted(labels)) in str(await scheduler.explain("a"))
    async with scene.scheduler(labels=[*labels, "more"]) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["a"]


@pytest.mark.promise("X13", "H16")
@pytest.mark.parametrize("label", ["a,b", ",", " gpu", "gpu "])
@virtual
async def test_a_label_that_cannot_be_written_on_the_command_line_is_refused_everywhere(scene, label):
    async with scene.scheduler() as scheduler:
        with pytest.raises(InvalidJob, match="no comma"):
            await scheduler.add_job("a", Manual(), labels=[label])
        await scheduler.add_job("a", Manual(), labels=["gpu"])
        with pytest.raises(InvalidJob, match="no comma"):
            await scheduler.update_job("a", labels=["gpu", label])
        assert (await scheduler.get_job("a")).options == {"labels": ["gpu"]}
    with pytest.raises(InvalidJob, match="no comma"):
        scene.scheduler(labels=[label])


@pytest.mark.promise("X13", "H16")
@pytest.mark.parametrize("labels", ["gpu", [1], [""], ["a\n"]], ids=repr)
def test_the_labels_of_a_node_are_a_list_of_words(labels):
    with pytest.raises(InvalidJob, match="list of labels"):
        Scheduler("sqlite://", labels=labels)


@pytest.mark.promise("X13")
@virtual
async def test_a_stored_label_with_a_comma_finds_its_node(scene):
    """Such a job can only have been stored before commas were refused."""
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0, 1)), labels=["x"])
        sql = 'UPDATE jobs SET options = \'{"labels":["a,b"]}\''
        await scheduler._store.write(lambda tx: tx.lanes._session.execute(sql))
        await scheduler.start()
        await scene.until(at(0, 5))
        [key] = (await scheduler.get_summary()).parked
        assert serves(frozenset(), frozenset({"a,b"}), key)
        assert not serves(frozenset(), frozenset({"a", "b"}), key)


@pytest.mark.promise("H16")
@pytest.mark.parametrize("lane", ["running", "crash-suspects", "kind:job", "labels:gpu"])
def test_a_lane_cannot_take_the_name_of_something_else_a_job_waits_for(lane):
    with pytest.raises(InvalidJob, match="uses itself"):
        read_options({"lanes": {lane: 1}})


def test_the_reserved_names_are_those_the_engine_uses():
    assert set(RESERVED_LANES) == {GLOBAL_LANE, SUSPECT_LANE}
    assert set(RESERVED_PREFIXES) == {HANDLER, PLACE}
