"""Every field of every request and answer says what it means, and shows an example."""

from __future__ import annotations

import pytest

from wakeful import Scheduler
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.vocabulary import FIELDS, PARAMETERS

NEVER_SHOWN = {"cursor", "token"}  # what one server gives, and no other knows


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    store = tmp_path_factory.mktemp("described") / "a.db"
    return create_app(Scheduler(f"sqlite:///{store}"), ServerSettings()).openapi()


def fields(model, part):
    """Each field of a shape, in all its forms."""
    if isinstance(part, dict):
        for name, field in (part.get("properties") or {}).items():
            yield model, name, field
        for one in part.values():
            yield from fields(model, one)
    elif isinstance(part, list):
        for one in part:
            yield from fields(model, one)


def all_fields(schema):
    return [found for model, one in schema["components"]["schemas"].items() for found in fields(model, one)]


def test_every_field_of_a_model_has_a_description_and_an_example(schema):
    found = all_fields(schema)
    assert len(found) > 300
    assert {(model, name) for model, name, field in found if not field.get("description")} == set()
    shown = ("examples", "enum", "const")
    bare = {
        (model, name) for model, name, field in found if field.get("type") != "null" and not field.keys() & {*shown}
    }
    assert bare == set()


def test_every_parameter_has_a_description_and_an_example(schema):
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    found = [one for operation in operations for one in operation.get("parameters", [])]
    assert len(found) > 30
    assert {one["name"] for one in found if not one.get("description")} == set()
    bare = {one["name"] for one in found if not one["schema"].keys() & {"examples", "enum", "const"}}
    assert bare <= NEVER_SHOWN


def test_the_vocabulary_has_no_word_that_is_not_used(schema):
    found = all_fields(schema)
    used = {name for _, name, _ in found} | {f"{model}.{name}" for model, name, _ in found}
    assert FIELDS.keys() - used == set()
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    assert (
        PARAMETERS.keys() - {one["name"] for operation in operations for one in operation.get("parameters", [])}
        == set()
    )
