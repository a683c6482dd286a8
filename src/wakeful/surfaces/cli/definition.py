"""The options of `add` and `edit`, turned into what the library stores. Pure: the present is given.

`edit` changes what is named and leaves the rest.

Every field of jobs that has a flag is offered, in groups, with the flags of the command line alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.console.failures import WrongUse
from wakeful.console.humanize import zone_named
from wakeful.domains import fields_by_kind, finish_of
from wakeful.domains.command import COMMAND
from wakeful.domains.http import HTTP
from wakeful.domains.monitors import MONITOR
from wakeful.fields import Field, Flag, one_of
from wakeful.kernel.rules.option_fields import OPTIONS
from wakeful.kernel.rules.option_reading import DELIVER_ON
from wakeful.surfaces.cli.typed import NONE, ParseContext, duration, typed, typed_fields
from wakeful.triggers import settled_zone, system_zone, zone_name
from wakeful.triggers.fields import BESIDE, BY_TYPE, BY_WORD, TIMED, keyword
from wakeful.triggers.fields import FIELDS as WHEN


def _as_typed(key: str, value: Any) -> Mapping[str, Any]:
    return {key: value}


# fmt: off
_OF_DELIVERY = Field(
    "deliver_on", _as_typed, one_of(*DELIVER_ON),
    "Which results: `any` (default), `success`, `failure`, `change`.", "failure", Flag("WHICH"))
_OF_AGENTS = (
    Field("agent", _as_typed, {}, "Ask this agent instead of running a command.", "reporter", Flag("AGENT")),
    Field("prompt", _as_typed, {}, "With --agent: the prompt.", "What is new?", Flag("TEXT")),
)
# fmt: on
OF_KINDS: Mapping[str, tuple[Field, ...]] = fields_by_kind()
GROUPS: Mapping[str, tuple[Field, ...]] = {
    "When it runs": WHEN,
    "How it runs": (*OPTIONS, _OF_DELIVERY),
    "What it runs": (*(field for fields in OF_KINDS.values() for field in fields if field not in WHEN), *_OF_AGENTS),
}


def flags() -> Iterator[tuple[str, Field, Flag]]:
    """Each field that can be typed, with the group it is listed in."""
    for group, fields in GROUPS.items():
        yield from ((group, field, field.flag) for field in fields if field.flag is not None)


OWN_KINDS = tuple(kind for kind in OF_KINDS if kind not in (COMMAND, HTTP, MONITOR))
"""The kinds of which this command line knows their fields alone."""


def own_kind(wanted: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first such kind whose flags were typed, with the first of these."""
    return next(((kind, flag) for kind in OWN_KINDS if (flag := given(kind, wanted)) is not None), None)


def given(kind: str, wanted: Mapping[str, Any]) -> str | None:
    """The first flag about a kind of job that was typed; None if there is none."""
    return next((field.option for field in OF_KINDS[kind] if field.flag is not None and field.name in wanted), None)


RHYTHMS = tuple(word for word, rhythm in BY_WORD.items() if rhythm.field.flag is not None)
MOMENTS = tuple(field.name for _, field, flag in flags() if flag.form == "moment")

Definition = Mapping[str, Any]
"""What was typed, by the names of the fields."""


def takes_definition(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for every field; it gets what was typed as one value, `definition`."""
    own = inspect.signature(function, eval_str=True).parameters
    named = {keyword(field.name): (field, _parameter(group, field, flag)) for group, field, flag in flags()}

    def command(**given: Any) -> None:
        said = {field.name: given.pop(name) for name, (field, _) in named.items()}
        function(definition={name: value for name, value in said.items() if value is not None}, **given)

    kept = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in own.values() if part.name != "definition"]
    parameters = [*kept[:2], *(one for _, one in named.values()), *kept[2:]]  # context and name first: help reads well
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {part.name: part.annotation for part in parameters}
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command


def _parameter(group: str, field: Field, flag: Flag) -> inspect.Parameter:
    """The parameter of a field, as the parser takes it."""
    text = field.help.replace("`", "") + (" Repeatable." if flag.many else "")
    option = typer.Option(field.option, help=text, rich_help_panel=group, metavar=flag.metavar, show_default=False)
    plain: Any = list[str] if flag.many else str if flag.metavar is not None else bool
    hint: Any = Annotated[plain | None, option]
    return inspect.Parameter(keyword(field.name), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)


# -- when -------------------------------------------------------------------------------------------------------------


def trigger_data(
    wanted: Definition, now: datetime, default: str, old: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The trigger as plain data, or None if no option about it was given.

    `default` is the zone of a job that names none, `old` what is stored already.
    """
    given = [name for name in RHYTHMS if name in wanted]
    if len(given) > 1:
        raise WrongUse(f"--{given[0]} and --{given[1]} are two schedules: give one of them.")
    if old is None and not given:
        *some, last = (f"--{word}" for word in RHYTHMS)
        raise WrongUse(f"Give a schedule: {', '.join(some)}, --ping or {last}.")
    place = _zone(wanted, old)
    terms = ParseContext(now, zone_named(place if place is not None else default), place)
    changes = typed_fields(tuple(BESIDE[name] for name in TIMED), wanted, terms)
    rhythm = _rhythm(given[0], wanted, terms) if given else {}
    companions = typed_fields((BESIDE["on"], BESIDE["anchor"]), wanted, terms)
    if not rhythm and not changes and not companions:
        return None
    kept = dict(old or {})
    if rhythm and kept:
        kept = {key: value for key, value in kept.items() if key in TIMED and key in BY_TYPE[rhythm["type"]].beside}
    if rhythm.get("type") == "manual" and changes:
        raise WrongUse(f"--{next(iter(changes)).replace('_', '-')} is about times, and --manual has none.")
    merged = {**kept, **rhythm, **changes}
    if "tz" in wanted and "active_hours" in kept and "active_hours" not in changes:
        merged["active_hours"] = {**kept["active_hours"], "timezone": place or default}  # a job has one zone
    if merged.get("tz") is None and _needs_zone(wanted, merged):
        merged["tz"] = place or default
    for name in companions:
        _refuse_apart(name, merged["type"])
    return {key: value for key, value in {**merged, **companions}.items() if value is not None}


def _zone(wanted: Definition, old: Mapping[str, Any] | None) -> str | None:
    """The job's own zone, if it has one."""
    if "tz" in wanted:
        return None if wanted["tz"] == NONE else settled_zone(zone_name(wanted["tz"]), system_zone())
    kept = old or {}
    return kept.get("tz") or (kept.get("active_hours") or {}).get("timezone")


def _needs_zone(wanted: Definition, merged: Mapping[str, Any]) -> bool:
    """Whether the default zone is stored with the job: a time on its clock was given, or its zone taken away."""
    if "tz" not in BY_TYPE[merged["type"]].beside:
        return False
    if moments := [wanted[name] for name in MOMENTS if wanted.get(name, NONE) != NONE]:
        from wakeful.triggers.sentences import is_on_the_wall  # loads the grammar

        if any(map(is_on_the_wall, moments)):
            return True
    return wanted.get("tz") == NONE and (merged["type"] == "cron" or bool(merged.get("except")))


def _rhythm(word: str, wanted: Definition, terms: ParseContext) -> dict[str, Any]:
    rhythm = BY_WORD[word]
    said = typed_fields((rhythm.field,), wanted, terms)[word]
    if isinstance(said, dict):
        return said  # words say everything
    return {"type": rhythm.type, **({rhythm.value: said} if rhythm.value is not None else {})}


def _refuse_apart(name: str, kind: str) -> None:
    """--on and --anchor mean something besides one kind of trigger only."""
    [rhythm] = [one for one in BY_WORD.values() if name in one.beside]
    if rhythm.type != kind and rhythm.field.flag is not None:
        raise WrongUse(f"--{name} goes with {rhythm.field.option} {rhythm.field.flag.metavar}.")


# -- monitors ---------------------------------------------------------------------------------------------------------


def refuse_beside_ping(definition: Definition, argv: list[str] | None) -> None:
    """A monitor runs nothing."""
    if argv is not None:
        raise WrongUse("--ping and a command after -- do not go together: a monitor runs nothing here.")
    others = (field for kind, fields in OF_KINDS.items() if kind != MONITOR for field in fields)
    for field in (*others, BY_WORD["at"].field, BY_WORD["after"].field):
        if field.flag is not None and field.name in definition:
            raise WrongUse(f"{field.option} does not go with --ping: a monitor has a schedule and a grace.")


def when_data(
    wanted: Definition, now: datetime, zone: str, old: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The trigger as plain data, a monitor's or another; None if no option about it was given."""
    was_ping = old is not None and old["type"] == "ping"
    if "ping" not in wanted and not was_ping:
        if "grace" in wanted:
            raise WrongUse("--grace goes with --ping: how late a ping may be.")
        return trigger_data(wanted, now, zone, old)
    if old is not None and not was_ping:
        raise WrongUse("A job that runs something cannot become a monitor: add another one with --ping.")
    schedule = trigger_data(wanted, now, zone, old["schedule"] if old is not None else None)
    if old is not None and schedule is None and "grace" not in wanted:
        return None
    grace = duration("--grace", wanted["grace"]) if "grace" in wanted else (old or {}).get("grace", "1h")
    return {"type": "ping", "schedule": schedule or (old or {})["schedule"], "grace": grace}


# -- how and what -----------------------------------------------------------------------------------------------------


def job_options(wanted: Definition, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The given options; None resets one to its default. `old` are the stored ones."""
    return typed_fields(OPTIONS, wanted, ParseContext()) | _deliver(wanted, (old or {}).get("deliver") or {})


def _deliver(wanted: Definition, old: Mapping[str, Any]) -> dict[str, Any]:
    to, on = wanted.get("deliver"), wanted.get("deliver_on")
    if to == NONE or (to is None and on is None):
        return {}
    said = {name: value for name, value in (("to", to), ("on", on)) if value is not None}
    if "to" not in {**old, **said}:
        raise WrongUse("--deliver-on goes with --deliver CONNECTOR.")
    return {"deliver": {**old, **said}}


def command_payload(
    wanted: Definition,
    argv: Sequence[str] | None,
    here: Path,
    old: Mapping[str, Any] | None = None,
    read_input: Callable[[], str] = lambda: "",
) -> dict[str, Any] | None:
    """The payload of the command, or None if no option about it was given. `--stdin -` is what `read_input` gives."""
    changes = typed_fields(OF_KINDS[COMMAND], wanted, ParseContext(here=here, read_input=read_input))
    if argv is not None:
        if not argv:
            raise WrongUse("There is nothing after --: give the command to run.")
        changes["argv"] = list(argv)
    if "cwd" in changes or old is None:
        changes["cwd"] = changes.get("cwd") or str(here)
    return _changed(old, changes)


def request_payload(wanted: Definition, old: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The payload of the request, or None if no option about it was given. `old` is the stored one."""
    changes = typed_fields(OF_KINDS[HTTP], wanted, ParseContext())
    if "url" in changes:
        changes["guarded"] = None  # the author of an address sets the trust in it
    return _changed(old, changes)


def own_payload(
    kind: str, wanted: Definition, here: Path, old: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The payload of a job of a kind that its fields describe, or None if none was given; a new one is completed."""
    changes: dict[str, Any] = {}
    for field in OF_KINDS[kind]:
        if field.name in wanted:
            value = typed(field, wanted[field.name], ParseContext(here=here))
            changes |= {field.stored or field.name: None} if value is None else field.read(field.name, value)
    payload = _changed(old, changes)
    return finish_of(kind)(payload, here) if old is None and payload is not None else payload


def _changed(old: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    both = {**(old or {}), **changes}
    return {key: value for key, value in both.items() if value is not None} if changes else None
