"""A field of a job is described once, and every surface offers it with the same meaning and the same error."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import jsonschema_rs
import pytest

from tests.agents.virtual_agents import agent
from tests.house.source import ROOT
from wakeful.config.entries import Setting, forms, read_entry
from wakeful.config.job_schema import job_schema
from wakeful.config.loading import json_schema
from wakeful.domains.agents.agents_file import entries_of
from wakeful.domains.agents.configuration import AgentSchedule
from wakeful.errors import SchedulerError
from wakeful.fields import Field
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.rules.option_fields import OPTIONS, JobOptions, OptionValues
from wakeful.kernel.rules.options import as_written, read_options
from wakeful.routing.models import JobCreate, JobPatch, JobPut
from wakeful.surfaces.api.definitions import new_job
from wakeful.surfaces.api.vocabulary import FIELDS as WORDS
from wakeful.surfaces.cli import command_tree
from wakeful.surfaces.cli.completing import candidates
from wakeful.surfaces.cli.definition import OF_KINDS, command_payload, flags, job_options, request_payload, trigger_data
from wakeful.triggers import trigger_from_data
from wakeful.triggers.fields import BESIDE, BY_WORD, OF_PINGS, PING, RHYTHMS, keyword

pytestmark = pytest.mark.promise("D1")

RHYTHM = [rhythm.field for rhythm in RHYTHMS if rhythm.field.flag is not None]
MODIFIER = list(BESIDE.values())
OWN = [field for fields in OF_KINDS.values() for field in fields if fields != OF_PINGS]
EVERYWHERE = [*RHYTHM, *MODIFIER, PING, *OPTIONS]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IN_FILES = {"tz": "timezone"}
NOT_FOR_AGENTS = {"ping", "grace", "deliver"}  # which is where the reply goes
BESIDE_WHAT = {"anchor": "every", "on": "after", "grace": "ping"}
TYPED = {
    "active_hours": "09:00-17:00", "backoff": "1m,5m,15m", "deliver": ["phone", "failure"], "lanes": ["gpu=1"],
    "retention": "7d,100", "env": ["LEVEL=full"], "headers": ["Accept: text/html"],
    "success_codes": "0,3", "expect": ["200", "204"],
}  # fmt: skip
WRONG = {**dict.fromkeys(("tz", "cron", "after", "labels"), ""), "stagger": -1}


def whole(field: Field, value=None) -> dict:
    """A job that says this, beside whatever it needs."""
    value = field.example if value is None else value
    word = BESIDE_WHAT.get(field.name, "every")
    beside = {} if field in RHYTHM else {"after": "other"} if word == "after" else {"every": "6h"}
    return {**beside, **({"ping": True} if word == "ping" else {}), field.name: value}


def in_python(field: Field, value=None) -> NewJob:
    said = whole(field, value)
    options = {key: said.pop(key) for key in [*said] if key in JobOptions.__annotations__}
    ping, grace = said.pop("ping", None), {"grace": said.pop("grace")} if "grace" in said else {}
    [rhythm] = [BY_WORD[word] for word in said if word in BY_WORD]
    value = said.pop(rhythm.word)
    data = {"type": rhythm.type, **({rhythm.value: value} if rhythm.value else {}), **said}
    data = {"type": "ping", "schedule": data, **grace} if ping or grace else data
    return NewJob("job", trigger_from_data(data), **options)


def over_http(model, field: Field, value=None) -> NewJob:
    return new_job(model.model_validate({"name": "job", **whole(field, value)}), "job")


def in_a_file(field: Field, value=None) -> NewJob:
    said = {IN_FILES.get(key, key): one for key, one in whole(field, value).items()}
    what = {} if "ping" in said else {"command": ["true"]}
    entry, problems = read_entry("job", {**said, **what}, Setting(Path("/srv"), "UTC", forms()))
    if problems:
        raise SchedulerError(" ".join(problem.message for problem in problems))
    return entry.new


def of_an_agent(field: Field, value=None) -> NewJob:
    said = {IN_FILES.get(key, key): one for key, one in whole(field, value).items()}
    entries = entries_of({"a": agent(schedules={"tick": {"prompt": "x", **said}})}, Path("/srv"), "UTC")
    return next(entry.new for entry in entries if entry.new.name == "a.tick")


def typed(field: Field) -> dict:
    """What is typed for a job that says this."""
    words = {key: TYPED.get(key, one if one is True else str(one)) for key, one in whole(field).items()}
    if field.flag is not None and field.flag.many and not isinstance(words[field.name], list):
        words[field.name] = list(map(str, field.example))
    if field.name == "deliver":
        words["deliver"], words["deliver_on"] = words["deliver"]
    return words


def on_the_command_line(field: Field) -> NewJob:
    said = typed(field)
    data = trigger_data(said, NOW, "UTC")
    grace = {"grace": said["grace"]} if "grace" in said else {}
    data = {"type": "ping", "schedule": data, **grace} if "ping" in said else data
    return NewJob("job", trigger_from_data(data), **job_options(said))


def meaning(new: NewJob) -> tuple:
    """What is stored; the zone is the surface's own where none is given."""
    data = new.trigger.to_data()
    inner = data.get("schedule", data)
    inner.pop("tz", None)
    inner.get("active_hours", {}).pop("timezone", None)
    return data, as_written(read_options(new.options))


@pytest.mark.parametrize("field", EVERYWHERE, ids=lambda field: field.name)
def test_every_surface_offers_every_field_with_the_same_meaning(field):
    wanted = meaning(in_python(field))
    assert field not in OPTIONS or field.name in wanted[1]  # an example that is not the default
    for model in (JobCreate, JobPut, JobPatch):
        assert meaning(over_http(model, field)) == wanted
    assert meaning(in_a_file(field)) == wanted
    assert meaning(on_the_command_line(field)) == wanted
    if field.name not in NOT_FOR_AGENTS:
        trigger, options = meaning(of_an_agent(field))
        assert trigger == wanted[0]
        own = {"lanes", "timeout"}  # beside those of the agent, and with a minute more
        assert {name: options.get(name) for name in wanted[1].keys() - own} == {
            name: value for name, value in wanted[1].items() if name not in own
        }


@pytest.mark.parametrize("field", EVERYWHERE, ids=lambda field: field.name)
def test_every_surface_refuses_a_wrong_value_with_the_same_sentence(field):
    value = WRONG.get(field.name, {"odd": "one"})
    with pytest.raises((SchedulerError, TypeError)) as caught:
        field.read(field.name, value)
    said = str(caught.value).rstrip(".").removeprefix(keyword(field.name))
    with pytest.raises(SchedulerError) as in_file:
        in_a_file(field, value)
    assert said in str(in_file.value)
    with pytest.raises((SchedulerError, ValueError)) as by_http:
        over_http(JobCreate, field, value)
    is_of_another_type = "validation error" in str(by_http.value)  # refused before its reader sees it
    assert is_of_another_type or said in str(by_http.value)
    if field.name not in NOT_FOR_AGENTS:
        with pytest.raises(SchedulerError) as in_agents:
            of_an_agent(field, value)
        assert said in str(in_agents.value)


@pytest.mark.parametrize("field", [*EVERYWHERE, *OWN], ids=lambda field: field.name)
def test_every_field_is_in_the_schemas_the_help_and_the_completion(field):
    key = IN_FILES.get(field.name, field.name)
    assert job_schema()["properties"][key]["description"] == field.help
    if field in EVERYWHERE and field.name not in NOT_FOR_AGENTS:
        assert AgentSchedule.model_json_schema()["properties"][key]["description"] == field.help
    assert field.flag is not None or field.name == "command"  # which is typed after --
    for command in ("add", "edit") if field.flag is not None else ():
        [one] = [one for one in command_tree().commands[command].params if field.option.partition("/")[0] in one.opts]
        assert one.help.startswith(field.help.replace("`", ""))
        offered = [candidate.word for candidate in candidates([command, field.option, ""], lambda *_: [])]
        assert offered == list(field.choices)
    if field in EVERYWHERE and field.name != "interval":  # which is also the value of `every`
        assert WORDS[field.name] == (field.help, field.example)


@pytest.mark.parametrize("field", OWN, ids=lambda field: field.name)
def test_what_a_kind_takes_means_the_same_in_a_file_and_on_the_command_line(field):
    is_request = field in OF_KINDS["http"]
    key = "url" if is_request else "command"
    main = {"url": "https://example.org/health"} if is_request else {"command": ["true"]}
    said = {**main, field.name: field.example}
    entry, problems = read_entry("job", {"every": "1h", **said}, Setting(Path("/srv"), "UTC", forms()))
    assert problems == []
    words = {name: TYPED.get(name, one) for name, one in said.items() if name != "command"}
    words = {name: str(one) if isinstance(one, int) else one for name, one in words.items()}
    payload = request_payload(words) if is_request else command_payload(words, said["command"], Path("/srv"))
    assert payload == entry.new.payload
    assert entry.new.kind == {"url": "http"}.get(key, key)


@pytest.mark.parametrize("field", [*EVERYWHERE, *OWN], ids=lambda field: field.name)
def test_an_example_of_a_field_is_one_that_its_schema_takes(field):
    assert jsonschema_rs.is_valid(field.schema, field.example)


def test_an_option_has_a_type_and_a_default_and_a_flag_belongs_to_one_field():
    names = {option.name for option in OPTIONS}
    assert (
        names == JobOptions.__annotations__.keys() - {"bounded"} == set(OptionValues._fields) - {"bounded", "retry_on"}
    )
    options = [field.option for _, field, _ in flags()]
    assert len(options) == len(set(options))
    assert "jobs" in json_schema()["properties"]


def test_the_guide_lists_every_key_of_a_job():
    guide = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    table = guide[guide.index("| schedule |") : guide.index("| other |")]
    keys = {IN_FILES.get(field.name, field.name) for field in (*EVERYWHERE, *OWN)}
    assert {key for key in keys if f"`{key}" not in table} == set()
