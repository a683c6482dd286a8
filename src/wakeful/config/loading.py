"""From a file to a checked configuration, or to everything that is wrong with it, with file and line."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from wakeful.config.complaints import complaint
from wakeful.config.entries import FleetFile
from wakeful.config.jobs_file import filled, no_connector, read_fleet_file
from wakeful.config.models import BaseConfig
from wakeful.config.reading import EXTENSION, ConfigError, Fault, Raw, Where, read_config
from wakeful.config.salvage import holds_any, without
from wakeful.config.schema import config_model, section_of
from wakeful.kernel.domain import Domain
from wakeful.spelling import did_you_mean


class Loaded(NamedTuple):
    """A file without a mistake: its settings and its jobs."""

    config: BaseConfig
    jobs: FleetFile
    env_file: dict[str, str]  # what it sets


def load_config(path: Path, environ: Mapping[str, str] = os.environ) -> BaseConfig:
    """The configuration in a file; ConfigError has every fault in it, in its jobs and in the files it includes."""
    return load(path, environ).config


def load(path: Path, environ: Mapping[str, str] = os.environ, *, needs: Sequence[str] | None = None) -> Loaded:
    """The same with its jobs. With `needs`, unset variables of other sections are no error."""
    with _no_collection():
        return _load(path, environ, needs)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing of a large file is garbage before it is read: looking for some takes a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load(path: Path, environ: Mapping[str, str], needs: Sequence[str] | None) -> Loaded:
    raw = filled(read_config(path, environ))
    no_env_file = [fault for fault in raw.faults if fault.key == "env_file"]  # then what it sets is not missing, too
    missing = [fault for fault in no_env_file or raw.faults if needs is None or _section(fault) in needs]
    unfilled = {fault.key for fault in raw.faults}
    config, faults = _validated(raw, unfilled)
    jobs, wrong = read_fleet_file(
        raw,
        config,
        lambda domain, file: _section_of(domain, file, (config, faults) if file is raw else None),
        look_up=needs is None and not no_env_file,
        connectors=_connectors(raw),
    )
    wrong += _alerts_to(raw, config)
    found = dict.fromkeys([*raw.repeated, *missing, *faults, *wrong])  # once each: agents share what is in the defaults
    faults = sorted(found, key=lambda fault: (fault.file != str(path), *_place(fault)))
    if faults:
        raise ConfigError(faults, str(path))
    return Loaded(config, jobs, {name: value for name, value in raw.known.items() if name not in environ})


def _connectors(raw: Raw) -> frozenset[str] | None:
    """The names of the file's connectors, also of those that have a mistake; None where that is no section."""
    given = raw.data.get("connectors") or {}
    return frozenset(given) if isinstance(given, dict) else None


def _alerts_to(raw: Raw, config: BaseConfig) -> list[Fault]:
    """Alerts that go to a connector that is not there."""
    to, known = config.alerts.to, _connectors(raw)  # type: ignore[attr-defined]  # of a domain
    if to is None or known is None or to in known or to in ("last", "none"):
        return []
    return [raw.fault(("alerts", "to"), f"alerts.to: {no_connector(to, known)}")]


def _section_of(domain: Domain, raw: Raw, checked: tuple[BaseConfig, list[Fault]] | None) -> tuple[Any, list[Fault]]:
    """A domain's section of a file as its model has checked it, and what is wrong with it.

    `checked`: the same for the whole file, where that is known.
    """
    name = str(domain.section)
    given = {name: raw.data[name]} if name in raw.data else {}
    config, faults = checked if checked is not None else _validated(raw._replace(data=given), set())
    return section_of(config, domain), faults


def _place(fault: Fault) -> tuple[str, int, int]:
    return fault.file, fault.line or 0, fault.column or 0


def _section(fault: Fault) -> str:
    return fault.key.partition(".")[0]


def _validated(raw: Raw, unfilled: set[str]) -> tuple[BaseConfig, list[Fault]]:
    """The settings without those that are wrong, and what is wrong besides what could not be filled in."""
    data, removed, faults = raw.data, list[Where](), dict[str, Fault]()
    while True:
        try:
            return config_model().model_validate(data, context=_context(raw)), [*reversed(faults.values())]
        except ValidationError as error:
            found: list[dict[str, Any]] = [
                dict(one) for one in error.errors(include_url=False) if not _is_other_branch(dict(one))
            ]
        every = [_in_file(raw, one["loc"]) for one in found]
        wrong = [(one, at) for one, at in zip(found, every, strict=True) if not _is_deeper(one, at, every)]
        for one, at in wrong:
            if not holds_any(at, removed):
                fault = _fault(raw, one)
                if fault.key not in unfilled:
                    faults.setdefault(fault.key, fault)
        places = [at for _, at in wrong]
        removed += places
        data = without(data, places)


def _context(raw: Raw) -> dict[str, Path]:
    """What sections may ask for: where the file is."""
    path = raw.path.resolve()
    return {"file": path, "folder": path.parent}


def json_schema() -> dict[str, Any]:
    """For editors: what may be in the file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **config_model().model_json_schema(mode="validation"),
        "patternProperties": {f"^{EXTENSION}": {}},
    }


def _is_other_branch(error: dict[str, Any]) -> bool:
    """A section where a word is also valid: the mistake is in the section."""
    return error["type"] == "literal_error" and isinstance(error["input"], dict)


def _is_deeper(error: dict[str, Any], at: Where, places: Sequence[Where]) -> bool:
    """A section where a text could stand, too, and in which something else is wrong."""
    is_section = error["type"] == "string_type" and isinstance(error["input"], dict)
    return is_section and any(len(other) > len(at) and other[: len(at)] == at for other in places)


def _fault(raw: Raw, error: dict[str, Any]) -> Fault:
    where = _in_file(raw, error["loc"])
    if error["type"] == "extra_forbidden":
        return raw.fault(where, _unknown(where))
    return raw.fault(where, f"{'.'.join(map(str, where))} {_complaint(raw, where, error)}")


def _in_file(raw: Raw, loc: tuple[str | int, ...]) -> Where:
    """Where in the file an error is: pydantic also names the branch of a union it tried."""
    where: Where = ()
    for part in loc:
        if (*where, part) in raw.lines:
            where = (*where, part)
    last = loc[-1] if loc else None
    is_missing = last is not None and where[-1:] != (last,) and _is_key(last)
    return (*where, last) if last is not None and is_missing else where


def _is_key(part: str | int) -> bool:
    return isinstance(part, str) and part.isidentifier() and part in _all_keys(config_model())


def _all_keys(model: type[BaseModel]) -> set[str]:
    keys = set(model.model_fields)
    for name in keys.copy():
        keys |= set().union(*(_all_keys(section) for section in _sections(model, name)))
    return keys


def _sections(model: type[BaseModel], name: str) -> list[type[BaseModel]]:
    found, ahead = list[type[BaseModel]](), [model.model_fields[name].annotation]
    while ahead:
        kind = ahead.pop(0)
        if isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, BaseModel):
            found.append(kind)
        ahead += get_args(kind)
    return found


def _unknown(where: Where) -> str:
    above, key = where[:-1], str(where[-1])
    known = sorted(_keys_at(above))
    place = f" in {'.'.join(map(str, above))}" if above else ""
    for end in range(len(above) - 1, 0, -1):
        if key in _keys_at(above[:end]):
            return f"There is no key {key!r}{place}. It is a key of {'.'.join(map(str, above[:end]))}: write it there."
    hint = did_you_mean(key, known, f"Known here: {', '.join(known)}.")
    return f"There is no key {key!r}{place}.{hint}"


_Level = type[BaseModel] | tuple[type[BaseModel], ...]
"""A section; or sections under names of the user's own."""


def _keys_at(above: Where) -> set[str]:
    levels: list[_Level] = [config_model()]
    for part in above:
        levels = [below for level in levels for below in _below(level, str(part))]
    return set().union(*(level.model_fields for level in levels if not isinstance(level, tuple)))


def _below(level: _Level, key: str) -> list[_Level]:
    """Where a key leads to; every key does in a section that maps names of the user's own."""
    if isinstance(level, tuple):
        return list(level)
    if "root" in level.model_fields:
        return list(_sections(level, "root"))
    if key not in level.model_fields:
        return []
    found = _sections(level, key)
    return [tuple(found)] if get_origin(level.model_fields[key].annotation) is dict else list(found)


def _complaint(raw: Raw, where: Where, error: dict[str, Any]) -> str:
    """The error message for a value, in our own wording; with the value only if it cannot be a secret."""
    secret = any(where[:end] in raw.secrets for end in range(len(where) + 1))
    secret = secret or where[:1] == ("connectors",) or where == ("alerts", "dead_man_url")  # addresses, tokens and keys
    return complaint(error, secret=secret)
