"""Keys: the secrets at which monitors are pinged. 128 random bits, stored as they are, because people must see them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.domains.monitors.tables import Monitors
from wakeful.errors import InvalidJob
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers import Ping

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef


def give_keys(tx: Transaction, job_ids: Sequence[int]) -> None:
    """Give each of these jobs a new key."""
    tx.of(Monitors).give([(job_id, secrets.token_hex(16)) for job_id in job_ids], tx.now)


def key_in(tx: Transaction, ref: str) -> str | None:
    """The key of a monitor; None for a job that is none."""
    job, _ = find_job(tx, ref)
    return tx.of(Monitors).key_of(job.id) if isinstance(trigger_of(job.trigger), Ping) else None


def rotate(tx: Transaction, job: JobDef) -> str:
    """A new key, and the end of the old one; InvalidJob for a job that has none."""
    if not isinstance(trigger_of(job.trigger), Ping):
        raise InvalidJob(f"{job.name} is not a monitor: it has no key.")
    give_keys(tx, [job.id])
    tx.events.emit("job", {"type": "key_rotated", "job_id": job.id, "job": job.name})
    return tx.of(Monitors).key_of(job.id) or ""


def ping_url(base: str, key: str) -> str:
    """Where to ping."""
    return f"{base.rstrip('/')}/ping/{key}"


async def ping_key(scheduler: Scheduler, ref: str) -> str | None:
    """The key of a monitor, by its id or name; None for a job that is none."""
    return await scheduler.read(lambda tx: key_in(tx, ref))


async def address_of(scheduler: Scheduler, ref: str, server: ServerAddress) -> dict[str, dict[str, str | None]]:
    """Where a monitor is pinged, as a part of an answer about it."""
    key = await ping_key(scheduler, ref)
    return {"monitor": {"ping_url": None if key is None else ping_url(server.public_url or server.url, key)}}


async def rotate_key(scheduler: Scheduler, ref: str) -> str:
    """Give a monitor a new key; the old one opens nothing from then on."""
    return await scheduler.transact(lambda tx, _: rotate(tx, find_job(tx, ref)[0]))
