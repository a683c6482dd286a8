"""The whole of `wakeful.yaml`: the sections of Wakeful itself and those of its domains."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field, create_model

from wakeful.config.models import BaseConfig, Section
from wakeful.domains import MODULES, domains
from wakeful.kernel.domain import Domain, load


def config_model() -> type[BaseConfig]:
    """The model of the file, with a section for each domain that has one."""
    return _model_for(tuple(MODULES))


@cache
def _model_for(_modules: tuple[str, ...]) -> type[BaseConfig]:
    """Made once for the domains there are: one may be registered after the first was made."""
    model: type[BaseConfig] = create_model("Config", __base__=BaseConfig, __doc__="The whole file.")
    for domain in domains():
        if domain.section is not None and domain.settings is not None:
            model = _with_section(model, domain.section.split("."), load(domain.settings))
    return model


def _with_section(model: type[Any], path: list[str], section: type[Section]) -> Any:
    """The model with one more section, which may lie inside another."""
    name, deeper = path[0], path[1:]
    inner = _with_section(model.model_fields[name].annotation or Section, deeper, section) if deeper else section
    # Checked also where the file leaves it out: that is when a section learns which file it is of.
    fields: dict[str, Any] = {name: (inner, Field(inner(), validate_default=True))}
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def section_of(config: BaseConfig, domain: Domain) -> Any:
    """What the file says for a domain, or its defaults; None for a domain without a section."""
    found: Any = config
    for name in (domain.section or "").split("."):
        found = getattr(found, name, None) if name else None
    return found
