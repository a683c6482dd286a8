"""What listings leave out unless all is asked for: what agents do by themselves and that came to nothing.

A heartbeat is a job that wakes the agent, and the woken agent is another: to a person one beat is one run. Both stay in
every record, and in every answer that programs read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from wakeful import Job, Run
from wakeful.console.humanize import count
from wakeful.domains.agents.naming import AGENT, HEARTBEAT, WAKE
from wakeful.kernel.rules.outcome import FAILURES

MOST_READ = 2_000
PAGE = 200


def is_folded_job(job: Job) -> bool:
    """Whether it is the job that calls a woken agent, which nobody wrote, and there is nothing to say about it."""
    is_quiet = job.status == "idle" and job.last_outcome not in FAILURES
    return job.kind == AGENT and job.name.endswith(f".{WAKE}") and is_quiet


def folded_wakes(names: Sequence[str]) -> set[str]:
    """Of the names of jobs that agents have, those of the jobs nobody wrote, beside others of the same agent."""
    agents = [name.rpartition(".")[0] for name in names]
    return {name for name in names if name.endswith(f".{WAKE}") and agents.count(name.removesuffix(f".{WAKE}")) > 1}


def is_folded_run(run: Run) -> bool:
    """Whether an agent had nothing to do, or whether the run only woke it: the run that answered is another."""
    if run.kind != AGENT or run.status != "done":
        return False
    is_beat = run.job.endswith(f".{HEARTBEAT}")
    return run.outcome in ("noop", "skipped") or (is_beat and run.outcome == "success")


async def unfolded(read: Callable[[int, str | None], Awaitable[Sequence[Run]]], number: int) -> tuple[list[Run], int]:
    """The newest runs that are shown, so many at most, and how many between them are not."""
    shown, folded, seen, before = list[Run](), 0, 0, None
    while len(shown) < number and seen < MOST_READ:
        page = await read(PAGE, before)
        for run in page:
            if len(shown) == number:
                break
            if is_folded_run(run):
                folded += 1
            else:
                shown.append(run)
        seen += len(page)
        if len(page) < PAGE:
            break
        before = page[-1].id
    return shown, folded


def folded_note(folded: int, what: str, why: str) -> str:
    """How many are not shown, and how to see them."""
    return f"{count(folded, what)} {why} not shown: use --all."
