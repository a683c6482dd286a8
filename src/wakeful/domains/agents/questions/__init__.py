"""Questions that people put to an agent: runs of `NAME.asked`, each with a prompt of its own.

The job has no time of its own. It is made with the first question, and follows the agent from then on; its session is
its own, as that of any schedule.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.agents.ad_hoc_schedules import added_schedule
from wakeful.errors import InvalidJob, JobExists
from wakeful.kernel.actions.drafts import draft
from wakeful.kernel.actions.jobs import add_jobs
from wakeful.triggers import Manual

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

ASKED = "asked"
SOURCE = "cli"


class Question(NamedTuple):
    """The job that asks, and what its run is given."""

    job: str
    payload: dict[str, Any]


def prepared(tx: Transaction, context: Context, agent: str, prompt: str, *, deliver: str | None, zone: str) -> Question:
    """Make a question ready to be run; AgentNotFound, or InvalidJob for an empty prompt."""
    if not prompt.strip():
        raise InvalidJob("A prompt cannot be empty: say what the agent is to answer.")
    name = f"{agent}.{ASKED}"
    new = added_schedule(tx, agent, name, Manual(), prompt=None, options={})
    known = tx.jobs.by_name(name)
    if known is not None and known[0].source != SOURCE:
        raise JobExists(
            f"{name} is a schedule of its own, under which questions would run: give that schedule another name."
        )
    add_jobs(tx, context, [draft(new, SOURCE, context.declared)], "update", zone)
    payload = {**json.loads(json.dumps(new.payload)), "prompt": prompt}
    return Question(name, payload if deliver is None else {**payload, "deliver": deliver})
