"""An option of a job is described once, and every surface has it from there."""

from __future__ import annotations

import jsonschema_rs
import pytest

from wakeful.agents.configuration import AgentSchedule
from wakeful.api.definitions import read_options
from wakeful.api.models import JobCreate
from wakeful.api.vocabulary import FIELDS
from wakeful.cli import command_tree
from wakeful.fleet.configuration import job_schema
from wakeful.kernel.rules.option_fields import OPTIONS
from wakeful.kernel.rules.option_types import JobOptions
from wakeful.kernel.rules.options import OptionValues
from wakeful.kernel.rules.options import read_options as kernel_reads


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_surface_offers_every_option_with_the_same_meaning(option):
    assert option.name in JobOptions.__annotations__
    assert option.name in OptionValues._fields
    written = JobCreate.model_validate({"name": "a", "every": "1h", option.name: option.example})
    assert kernel_reads(read_options(written)) == kernel_reads({option.name: option.example})
    assert FIELDS[option.name] == (option.help, option.example)
    for schema in (job_schema(), AgentSchedule.model_json_schema()):
        assert option.name in schema["properties"]
    for command in ("add", "edit"):
        flags = {flag for one in command_tree().commands[command].params for flag in one.opts}
        assert option.flag.name.partition("/")[0] in flags


def test_an_example_of_an_option_is_one_that_its_schema_takes():
    for option in OPTIONS:
        assert jsonschema_rs.is_valid(option.schema, option.example), option.name
