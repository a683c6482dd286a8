"""The domains that are part of Wakeful, one line each, and how another is added.

A module listed here has an attribute `domain`. It is imported when the first scheduler is made, so it must be light.
"""

from __future__ import annotations

import importlib
from functools import lru_cache

from wakeful.kernel.domain import Domain, declare

MODULES = [
    "wakeful.command",
    "wakeful.http",
    "wakeful.agents",
    "wakeful.agents.agent",
    "wakeful.agents.inbound",
    "wakeful.fleet",
    "wakeful.monitors",
    "wakeful.delivery",
    "wakeful.alerts",
    "wakeful.workflows",
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


def hidden_kinds() -> tuple[str, ...]:
    """The kinds that listings leave out."""
    return tuple(kind.name for domain in domains() for kind in domain.kinds if kind.internal)
