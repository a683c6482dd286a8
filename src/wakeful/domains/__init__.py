"""The domains that are part of Wakeful, one line each, and how another is added.

A module listed here has an attribute `domain`. It is imported when the first scheduler is made, so it must be light.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from wakeful import ids
from wakeful.fields import Field
from wakeful.kernel.domain import Domain, load
from wakeful.kernel.engine.alerts import MEANINGS
from wakeful.kernel.model import explanations
from wakeful.kernel.model import run as model
from wakeful.kernel.rules import undoing
from wakeful.kernel.views import events, reasons
from wakeful.store import schema_version, tables

MODULES = [
    "wakeful.domains.command",
    "wakeful.domains.http",
    "wakeful.domains.agents",
    "wakeful.domains.agents.agent",
    "wakeful.domains.agents.inbound",
    "wakeful.domains.files",
    "wakeful.domains.monitors",
    "wakeful.domains.delivery",
    "wakeful.domains.alerts",
    "wakeful.domains.workflows",
]


def register(module: str) -> None:
    """Add a domain of your own: the name of a module with an attribute `domain`, before the first scheduler is made."""
    if module not in MODULES:
        MODULES.append(module)
        domains.cache_clear()


@lru_cache(maxsize=1)
def domains() -> tuple[Domain, ...]:
    """All domains, in the order they are listed."""
    return tuple(declare(importlib.import_module(module).domain) for module in MODULES)


def load_part(name: str) -> Any:
    """What makes a part of a scheduler that a domain offers under this name; it is called with the scheduler."""
    return load(next(domain.parts[name] for domain in domains() if name in domain.parts))


def fields_by_kind() -> dict[str, tuple[Field, ...]]:
    """The fields that jobs of each kind have besides those of every job."""
    kinds = [kind for domain in domains() for kind in domain.kinds if kind.fields is not None]
    return {kind.name: load(str(kind.fields)) for kind in kinds}


def finish_of(kind: str) -> Callable[[dict[str, Any], Path], Any]:
    """What completes the payload of a job of this kind, given what its fields gave and where its paths begin."""
    named = (one.finish for domain in domains() for one in domain.kinds if one.name == kind)
    return load(finish) if (finish := next(named, None)) is not None else lambda payload, _: payload


def hidden_kinds() -> tuple[str, ...]:
    """The kinds that listings leave out."""
    return tuple(kind.name for domain in domains() for kind in domain.kinds if kind.internal)


def declare(domain: Domain) -> Domain:
    """Register a domain's descriptions, ids, tables and scripts with the parts of the kernel that use them."""
    MEANINGS.update(domain.alerts)
    reasons.REASONS.update(domain.skip_reasons)
    reasons.STARTED_BY.update(domain.start_reasons)
    explanations.STORIES.update(domain.stories)
    explanations.STANDINGS.update(domain.standings)
    explanations.STARTED_WHEN.update(domain.started_when)
    explanations.PASSING.update(domain.passing)
    explanations.HOURS.update(domain.hours)
    ends = {kind.name: kind.ends_itself for kind in domain.kinds if kind.ends_itself is not None}
    explanations.SETTLED_BY.update(ends)
    explanations.PHASES.update(domain.run_phases)
    explanations.STEPS.update(domain.run_steps)
    explanations.WATCHED.update(domain.watched)
    events.STREAMS.update(dict.fromkeys(domain.streams))
    events.ID_FIELDS.update(domain.id_prefixes)
    undoing.TAKEN_BACK_BY.update(domain.undo)
    ids.PREFIXES.update(domain.id_prefixes.values())
    tables.PRECIOUS.update(dict.fromkeys(domain.precious_tables))
    if domain.run_deliveries is not None:
        model.SOURCES[domain.name] = domain.run_deliveries
    if domain.given_up is not None:
        model.GIVEN_UP[domain.name] = domain.given_up
    if domain.unsent is not None:
        model.UNSENT[domain.name] = domain.unsent
    if domain.migrations is not None:
        schema_version.FOLDERS[domain.name] = domain.migrations
    return domain
