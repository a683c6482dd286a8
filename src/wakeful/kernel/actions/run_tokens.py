"""The token of a run: its program may ask over the network, as the owner of its job, for as long as it runs.

A token is derived from a key of the store's own, so nothing is stored per run. It is valid while its run is active and
dead from the commit that ends the run, whichever way it ends: a crash, a time limit, or another node that takes over.
Its role is `agent`, and it changes no jobs.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

PREFIX = "wk_run_"
ROLE = "agent"
KEY = "run_token_key"
LONGEST = 200


class RunToken(NamedTuple):
    """A token of a run in progress: whose job it is, which run, and the kind of the job."""

    name: str
    run_id: int
    kind: str
    role: str = ROLE


def known_token(tx: Transaction, run_id: int) -> str | None:
    """The token of a run; None in a store that has no key yet."""
    key = tx.facts.get(KEY)
    return None if key is None else _token(key, run_id)


def run_token(tx: Transaction, run_id: int) -> str:
    """The token of a run. Needs a transaction that writes."""
    if tx.facts.of([KEY]).get(KEY) is None:
        tx.facts.put({KEY: secrets.token_hex(32)})
    token = known_token(tx, run_id)
    assert token is not None  # noqa: S101 - the key was just written
    return token


def find(tx: Transaction, secret: str) -> RunToken | None:
    """The run in progress whose token this is, or None."""
    if not secret.startswith(PREFIX) or len(secret) > LONGEST:
        return None
    parsed = ids.decode(f"run_{secret.removeprefix(PREFIX).partition('_')[0]}")
    if parsed is None:
        return None
    right = known_token(tx, parsed[1])
    if right is None or not hmac.compare_digest(right.encode(), secret.encode("utf-8", "replace")):
        return None
    return _in_progress(tx, parsed[1])


def _in_progress(tx: Transaction, run_id: int) -> RunToken | None:
    run = tx.runs.get(run_id)
    if run is None or run.status != "active":
        return None
    job = tx.jobs.definitions([run.job_id]).get(run.job_id)
    return None if job is None or job.owner is None else RunToken(job.owner, run_id, job.kind)


def _token(key: str, run_id: int) -> str:
    name = ids.run_text(run_id).removeprefix("run_")
    return f"{PREFIX}{name}_{hmac.new(key.encode(), name.encode(), hashlib.sha256).hexdigest()}"
