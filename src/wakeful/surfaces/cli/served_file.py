"""The configuration file of a server: read, applied before the first turn, and watched while it serves."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.config.jobs_file import matching
from wakeful.config.loading import Loaded, load
from wakeful.config.schema import section_of
from wakeful.domains import domains
from wakeful.domains.files.watching import FileWatch
from wakeful.kernel.domain import load as load_reference
from wakeful.references import adopt, own_environment

if TYPE_CHECKING:
    from wakeful.config.entries import FleetFile
    from wakeful.config.models import BaseConfig
    from wakeful.scheduler import Scheduler

log = logging.getLogger("wakeful.config")


def load_here(file: Path) -> Loaded:
    """The file; what its env_file sets is from here on part of this process's environment, where runs look it up."""
    loaded = load(file, own_environment())
    adopt(loaded.env_file)
    return loaded


async def store_budget(scheduler: Scheduler, known: BaseConfig) -> None:
    """What all agents together may use in a day, for every process on the store."""
    await scheduler.agents.limit(**known.limits.of_agents())


def _fixed(known: BaseConfig) -> dict[str, Any]:
    """What a server takes from its file at its start alone."""
    limits = known.limits.model_dump(exclude=set(known.limits.of_agents()))
    return {"store": known.store, "server": known.server, "retention": known.retention, "limits": limits}


class Sections:
    """What is in a file besides its jobs, as the domains of this process have it."""

    def __init__(self, scheduler: Scheduler, file: Path, installed: Loaded) -> None:
        self._scheduler = scheduler
        self._path = file
        self._before = self._holds = self._read = installed
        self._fixed = _fixed(installed.config)
        self._waiting: list[str] = []  # what the file says otherwise, and is not in force yet

    def read(self) -> FleetFile:
        """Read the file; nothing of it holds yet."""
        self._read = load(self._path, own_environment())
        return self._read.jobs

    def included(self, known: FleetFile | None) -> list[Path]:
        """Which other files count."""
        if known is None:
            return []
        folder = self._path.resolve().parent
        return [*known.env_files, *(path for pattern in known.include for path in matching(folder, pattern))]

    def is_taken(self) -> bool:
        """Whether what was read last is what holds."""
        return (self._read.config, self._read.env_file) == (self._holds.config, self._holds.env_file)

    async def take(self) -> None:
        """Let what was read last hold."""
        self._before = self._holds
        await self._reload(self._read)
        waiting = [name for name, value in _fixed(self._read.config).items() if value != self._fixed[name]]
        if waiting and waiting != self._waiting:
            log.warning("%s: what changed in %s takes effect at the next start", self._path, " and ".join(waiting))
        self._waiting = waiting

    async def put_back(self) -> None:
        """Let what held before hold again."""
        await self._reload(self._before)

    async def _reload(self, loaded: Loaded) -> None:
        self._holds = loaded
        adopt(loaded.env_file)
        for domain in domains():
            if domain.reload is not None:
                await load_reference(domain.reload)(self._scheduler, section_of(loaded.config, domain))
        await store_budget(self._scheduler, loaded.config)


def watch_file(scheduler: Scheduler, file: Path, installed: Loaded) -> FileWatch:
    """The file's jobs are applied before the first turn and whenever they change, with what else changed in it."""
    sections = Sections(scheduler, file, installed)
    watch = FileWatch(scheduler, file, sections.read, sections.included, sections)
    scheduler.host.before_start(watch.prepare)
    scheduler.host.add_service(watch)
    return watch
