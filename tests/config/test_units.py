"""A file says units: a number alone is refused with both readings, and a wrong form is answered with a right one."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from wakeful.config.loading import load
from wakeful.config.models import Duration, Section
from wakeful.config.reading import ConfigError
from wakeful.config.units import DURATIONS, without_unit
from wakeful.fields import LASTING
from wakeful.kernel.rules import option_fields
from wakeful.triggers.fields import BESIDE, BY_WORD


def mistakes(tmp_path, text):
    path = tmp_path / "wakeful.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path)
    return [fault.message for fault in refused.value.faults]


@pytest.mark.promise("D7")
@pytest.mark.parametrize(
    ("text", "place", "number"),
    [
        ("jobs: {x: {every: 5, command: [ls]}}", "jobs.x.every", 5),
        ("jobs: {x: {every: 5m, timeout: 30, command: [ls]}}", "jobs.x.timeout", 30),
        ("jobs: {x: {every: 5m, backoff: [5m, 60], command: [ls]}}", "jobs.x.backoff.1", 60),
        ("alerts: {cooldown: 60}", "alerts.cooldown", 60),
        ("agents: {a: {runner: {start: [x], timeout: 10}}}", "agents.a.runner.timeout", 10),
        ("agents: {a: {runner: {start: [x]}, heartbeat: {every: 30}}}", "agents.a.heartbeat.every", 30),
    ],
)
def test_a_number_without_a_unit_is_refused_with_both_readings(tmp_path, text, place, number):
    said = f"{place} has no unit: write {number}s for seconds, or {number}m for minutes."
    assert mistakes(tmp_path, text) == [said]


def test_what_is_no_duration_of_ours_may_be_a_number():
    data = {"x": {"command": ["ls"], "env": {"timeout": 3}, "body": {"every": 5}, "max_runs": 3, "retry": 2}}
    assert list(without_unit({"jobs": data})) == []


def test_every_duration_of_a_file_is_known_by_its_key():
    fields = [*option_fields.OPTIONS, *BESIDE.values(), *(rhythm.field for rhythm in BY_WORD.values())]
    named = {field.name for field in fields if field.flag == LASTING}

    def models(model):
        return [model, *(one for inner in model.__subclasses__() for one in models(inner))]

    read = Duration.__metadata__[0]
    named |= {
        name
        for model in models(Section)
        if issubclass(model, BaseModel)
        for name, field in model.model_fields.items()
        if read in field.metadata
    }
    assert named - DURATIONS <= {"age", "slots"}  # whole days, which say so themselves
    assert len(named) > 8


@pytest.mark.parametrize(
    ("text", "example"),
    [
        ("agents: {a: {runner: {start: [x]}, heartbeat: true}}", "agents.a.heartbeat must be a section with keys of"),
        ("agents: {a: {runner: claude}}", "such as {preset: claude, cwd: ~/repo}"),
        ("alerts: phone", "such as {to: phone}"),
        ("jobs: {x: {every: 5m, retry: 30s, command: [ls]}}", 'or the delays, such as ["30s", "2m"]'),
    ],
)  # fmt: skip
def test_a_wrong_form_is_answered_with_a_right_one(tmp_path, text, example):
    assert example in mistakes(tmp_path, text)[0]
