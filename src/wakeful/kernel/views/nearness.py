"""Names that somebody may have meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from wakeful.store.listing import JobFilter

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

LOOKED_AT = 1_000


def near_names(tx: Transaction, name: str, number: int = 3) -> list[str]:
    """The names of jobs that are spelled nearly like this one, the nearest first."""
    names = [job.name for job, _ in tx.jobs.matching(JobFilter(limit=LOOKED_AT))]
    return get_close_matches(name, names, n=number, cutoff=0.6)
