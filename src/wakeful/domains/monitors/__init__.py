"""Monitors: jobs that run elsewhere and report in at a secret address. Their silence is an alert.

What must stay true:
- a ping is a run like any other: it is stored, ended and counted through the kernel, in one transaction;
- silence is noticed by the job's own alarm, set to the time a ping is expected plus the grace: nothing is polled, and
  what is not due costs nothing;
- the key allows pings and nothing else; it is shown to callers who may change jobs, and never logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidJob
from wakeful.kernel.domain import Domain
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Silence
    from wakeful.kernel.model.run import Run
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow
    from wakeful.triggers import Trigger

__all__ = ["MONITOR", "Report", "domain", "ping", "ping_key", "rotate_key"]

MONITOR = "monitor"
NO_PING = "no_ping"
UNHEARD = "could_not_hear"
MAX_BODY = 10_000  # bytes kept of what one ping brings


def _check(payload: Any) -> None:
    if payload not in (None, {}):
        raise InvalidJob("A monitor has no payload: it runs nothing, and takes what a ping brings.")


def _stored(tx: Transaction, _: Context, jobs: Sequence[JobDef]) -> None:
    from wakeful.domains.monitors.keys import give_keys

    give_keys(tx, [job.id for job in jobs])


def _ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, _: Result) -> None:
    from wakeful.domains.monitors.pinging import go_on_waiting

    go_on_waiting(tx, context, job, run)


def _overdue(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Silence:
    from wakeful.domains.monitors.silence import note_silence
    from wakeful.kernel.rules.policy import trigger_of
    from wakeful.triggers import Ping

    trigger = trigger_of(job.trigger)
    assert isinstance(trigger, Ping)  # noqa: S101 - jobs of this kind have no other
    return note_silence(tx, context, job, state, trigger)


def _watched(trigger: Trigger, state: JobState, now: int) -> dict[str, Any]:
    from wakeful.domains.monitors.state import monitor_of

    return monitor_of(trigger, state, now)


async def _nothing(run: Run, _: Path) -> Any:
    """A monitor is never started: this only says that every node can look after it."""
    raise InvalidJob(f"{run.job} is a monitor: there is nothing to run.")


domain = Domain(
    "monitors",
    kinds=(
        Kind(
            MONITOR,
            handler=_nothing,
            check_payload=_check,
            trigger="ping",
            stored=_stored,
            ended=_ended,
            overdue=_overdue,
            not_started="is a monitor: it runs elsewhere and is pinged, so there is nothing to start here.",
            fields="wakeful.triggers.fields:OF_PINGS",
        ),
    ),
    job_tables=("monitors",),
    alerts={"down": "no ping came in time, a failure was reported, or a run that began did not end"},
    skip_reasons={
        NO_PING: "no ping came in time",
        UNHEARD: "no ping could be received when it was expected",
    },
    start_reasons={"ping": "it reported in"},
    watched={MONITOR: _watched},
    install="wakeful.domains.monitors.configuration:install",
    routes="wakeful.domains.monitors.routes:router",
    job_secrets={MONITOR: "wakeful.domains.monitors.keys:address_of"},
    open_paths=("/ping/",),
    cut_paths={"/ping/": MAX_BODY},
)


def __getattr__(name: str) -> Any:
    if name in ("ping_key", "rotate_key"):
        from wakeful.domains.monitors import keys

        return getattr(keys, name)
    if name in ("Report", "ping"):
        from wakeful.domains.monitors import pinging

        return getattr(pinging, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
