"""What kinds and domains add to the engine's transactions: the shape of every hook, and what hooks take and give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wakeful import ids

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.alerting import Notice
    from wakeful.kernel.rules.outcome import Result
    from wakeful.kernel.rules.passing import Passed
    from wakeful.outbound import OutboundPolicy
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow, SkipRow
    from wakeful.triggers import Trigger


class Refused(NamedTuple):
    """A start that a kind does not admit now.

    Without `until` a slot is passed over and a requested start is cancelled. With it, either waits until then. An empty
    reason with `until`: it could not be decided, because another node decides about the same; that is not counted.
    """

    reason: str  # one of the reasons the kind's domain explains
    detail: str | None = None
    until: int | None = None  # epoch milliseconds


class Draft(NamedTuple):
    """A requested job: validated, its next time not yet computed."""

    name: str
    trigger: Trigger
    kind: str
    payload: str
    options: str
    owner: str | None
    source: str


class Writer(NamedTuple):
    """Who writes a job over the network, and what the server lets it say."""

    name: str
    limited: bool  # sees and changes only what it owns
    outbound: OutboundPolicy  # where addresses may lead
    may_send: bool  # whether it may write jobs that send to addresses


class Showing:
    """Whose words a reader is about to be shown: those of jobs and runs, by number, and perhaps others from outside."""

    def __init__(self) -> None:
        self.jobs = set[int]()
        self.runs = set[int]()
        self.outside = False

    def add(self, *texts: str) -> None:
        """Words of the jobs and runs with these ids."""
        for text in texts:
            if (job := ids.number_of("job", text)) is not None:
                self.jobs.add(job)
            elif (run := ids.number_of("run", text)) is not None:
                self.runs.add(run)


class Silence(NamedTuple):
    """What it means that an expected report did not come: the job, what to count, and the slots that passed."""

    state: JobState
    skip: SkipRow
    passed: tuple[Passed, ...] = ()


CheckWriter = Callable[["Transaction", Writer, str, "JobDef | None"], None]
Admit = Callable[["Transaction", "Context", "JobDef", "JobState"], Refused | None]
Claimed = Callable[["Transaction", "Context", "JobDef", "RunRow"], Mapping[str, Any] | None]
Ended = Callable[["Transaction", "Context", "JobDef", "RunRow", "Result"], None]
Reported = Callable[["Transaction", "JobDef", "RunRow", "Result"], "Result"]
Overdue = Callable[["Transaction", "Context", "JobDef", "JobState"], Silence]
Rearmed = Callable[["Transaction", "Context", "JobDef", "JobState"], "JobState"]
Resumed = Callable[["Transaction", "Context", "JobDef"], None]
Stored = Callable[["Transaction", "Context", "Sequence[JobDef]"], None]
TakesLanes = Callable[["Transaction", "JobDef", "RunRow | None"], Collection[str]]
Waiting = Callable[["Transaction", "Collection[str]", "Collection[str]"], "Sequence[str]"]
Spread = Callable[[Sequence[Draft], int], "Mapping[str, Trigger]"]
Alerted = Callable[["Transaction", "Context", "Notice"], None]
ByHand = Callable[["Transaction", "Context", "JobDef"], Refused | None]
Released = Callable[["Transaction"], None]
Swept = Callable[["Transaction", "Context"], None]
Joined = Callable[["Transaction", "RunRow", "RunRow"], None]
Shown = Callable[["Transaction", int, Showing], "Callable[[Transaction], None] | None"]
SetBack = Callable[["Transaction", int, int], None]
Succeeded = Callable[["Transaction", "Sequence[int]"], "Mapping[int, Result]"]


class Delivers(Protocol):
    """Sends what a run's job or handler wants sent; `last`: there is no further attempt after this one."""

    def __call__(
        self, tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result, *, last: bool
    ) -> None: ...


class Hooks(NamedTuple):
    """The kinds that have something to do in the engine's transactions, by name."""

    admit: Mapping[str, Admit] = {}
    takes_lanes: Mapping[str, TakesLanes] = {}
    claimed: Mapping[str, Claimed] = {}
    ended: Mapping[str, Ended] = {}
    overdue: Mapping[str, Overdue] = {}
    internal: frozenset[str] = frozenset()
    patient: frozenset[str] = frozenset()
    alerts_itself: frozenset[str] = frozenset()
    delivers: tuple[Delivers, ...] = ()  # of domains, for runs of any kind
    alerted: tuple[Alerted, ...] = ()  # of domains, for incidents that are worth a message
    released: tuple[Released, ...] = ()  # of domains, when a hold on everything ends
    swept: tuple[Swept, ...] = ()  # of domains, about once a minute
    joined: tuple[Joined, ...] = ()  # of domains, when a run that waits is also for the end of another one

    @property
    def unstarted(self) -> list[str]:
        """The kinds whose jobs are never late: internal ones, and those that only wait for reports."""
        return sorted({*self.internal, *self.overdue})
