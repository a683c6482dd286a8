"""What a domain is: one room that adds kinds of job, with everything they need, to the scheduler.

A domain is one declaration, listed once in `wakeful.domains`. It is light: what needs a library or much code is named
as `module:name` and loaded when it is used. Its SQL lies in its own `tables.py`, its routes in `routes.py` or
a folder `routes`, its commands in `commands.py`, the model of its configuration in `configuration.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wakeful.kernel.hooks import Alerted, Delivers, Joined, Released, Shown, Swept
from wakeful.kernel.kinds import Kind

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.explanations import Hours, Passing, Phases, Standing, Steps, Story, Watched
    from wakeful.store.interface import Transaction


class ServerAddress(Protocol):
    """Where the server that a domain is installed in can be reached."""

    @property
    def public_url(self) -> str | None:
        """How it is reached from elsewhere, if that was configured."""

    @property
    def url(self) -> str:
        """How it is reached on this machine."""

    @property
    def folder(self) -> Path | None:
        """Where its configuration file lies, if it has one."""


class FileChanges(NamedTuple):
    """What applying a section of a configuration file does, by name."""

    create: tuple[str, ...] = ()
    update: Mapping[str, Mapping[str, tuple[Any, Any]]] = MappingProxyType({})  # name: {field: (old, new)}
    remove: tuple[str, ...] = ()
    unchanged: int = 0
    wrong: tuple[str, ...] = ()  # what cannot be applied and is left as it is
    notes: tuple[str, ...] = ()  # what a person should know before

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.update or self.remove or self.wrong)


class Remedy(NamedTuple):
    """What a simulation says about starts that were refused for a reason."""

    note: str  # the kind of its note
    advice: str  # a sentence: what would mend it


class Budget(NamedTuple):
    """What may be used in a day, and what was used today; amounts of money in units, None: without a limit."""

    owner: str | None  # whose it is; None: of all together
    zone: str  # of its days
    runs: int | None
    cost: float | None
    tokens: int | None
    used_runs: int = 0
    used_cost: float = 0.0
    used_tokens: int = 0


class Spending(NamedTuple):
    """Whose runs count toward which budget."""

    kinds: tuple[str, ...]  # of the jobs that it knows
    owner_of: Callable[[str, str], str | None]  # whose runs those of a job are, by its name and payload
    leads_to: Callable[[str, str], str | None]  # the job that each run of this one starts, if it does
    budgets: Sequence[Budget]
    queue_of: Callable[[str], str | None] = lambda _: None  # whose items a run takes, by payload; without one it ends
    queues: Mapping[str, int] = {}  # how many items wait there
    limit_of: Callable[[str], int | None] = lambda _: None  # after how many milliseconds a run ends itself, by payload
    times_of: Callable[[str, str], str] = lambda trigger, _: trigger  # a trigger as stored, with hours from the payload


class Applicable(Protocol):
    """A section of a configuration file, ready to be applied."""

    def plan(self, tx: Transaction | None) -> FileChanges:
        """What applying it would do; without a transaction, on a store that is not there yet."""

    def apply(self, tx: Transaction, context: Context) -> FileChanges:
        """Do it."""


Reference = str
"""`module:name` of something that is loaded when it is needed."""


class Domain(NamedTuple):
    """Everything a domain adds. Only the name is required."""

    name: str
    kinds: tuple[Kind, ...] = ()

    delivers: Delivers | None = None
    """Called in the transaction that ends a run of any kind, if its job says `deliver` or its handler `run.deliver`.

    `last` says that no further attempt follows.
    """
    alerted: Alerted | None = None
    """Called in the transaction that opens or closes an incident, if that is worth a message."""

    released: Released | None = None
    """Called in the transaction that ends a hold on everything."""

    joined: Joined | None = None
    """Called with a run that waits to start after others, and one more run after whose end it starts."""

    shown: Shown | None = None
    """Called before words of jobs and runs are shown to a run, which its token tells, in a transaction that only reads.

    It returns what is to be put on record before they are shown, or None.
    """

    swept: Swept | None = None
    """Called about once a minute by each engine, for what time alone brings, such as an alert. It must be cheap."""

    reads: Callable[[Transaction, Any], Callable[[], Any]] | None = None
    """Called with every message that is about to be given to `hears`, in a transaction that only reads.

    It returns a function that is called outside of any transaction, for what may take long, such as a search in the
    text; `hears` finds its result as `message.read`.
    """
    hears: Callable[[Transaction, Context, Any], None] | None = None
    """Called with every message that a paired person wrote in a chat (`Incoming` of `delivery/chat/receiving.py`).

    It runs in the transaction that stores that the message was received: exactly once for each.
    """
    buttons: Mapping[str, Reference] = MappingProxyType({})
    """What buttons under messages do, by action: `(tx, context, button, by) -> str`, see `delivery/chat/buttons.py`."""

    undo: Mapping[str, Reference] = MappingProxyType({})
    """What takes actions on record back, by action: `(tx, context, row, by) -> str | None`, the reason where it cannot.

    It changes only what is still as the action left it (`ActionRow` in `store/actions.py`).
    """

    # Stored
    migrations: Path | None = None
    """A folder with numbered scripts, for a domain that is not part of Wakeful; Wakeful's own lie in `store/schema`."""
    job_tables: tuple[str, ...] = ()
    """Tables with a column `job_id` whose rows go when their job is forgotten."""
    precious_tables: tuple[str, ...] = ()
    """Tables that make a store one with something in it: `copy` does not write over them."""
    prune: Callable[[Transaction, int, int], int] | None = None
    """Deletes at most so many (the third argument) rows older than a moment (the second); how many it deleted."""
    thin: Callable[[Transaction, int, int], int] | None = None
    """Deletes at most so many (the third argument) rows beyond so many newest ones (the second); how many it did."""
    runs_pruned: Callable[[Transaction, Sequence[int]], None] | None = None
    """Called in the transaction that deletes old runs, with their ids."""
    id_prefixes: Mapping[str, str] = MappingProxyType({})
    """Fields of events and records that hold ids, and the prefix people see: `{"item": "wrk"}`."""

    # Shown
    streams: tuple[str, ...] = ()
    """Event streams it emits to."""
    alerts: Mapping[str, str] = MappingProxyType({})
    """Kinds of alert it opens, each with what it means."""
    skip_reasons: Mapping[str, str] = MappingProxyType({})
    """Reasons for which a start is refused, in words for `explain`."""
    start_reasons: Mapping[str, str] = MappingProxyType({})
    """Reasons for which a run starts, in words for `explain`."""
    stories: Mapping[str, Story] = MappingProxyType({})
    """By kind: what `explain` adds about its jobs and runs, as sentences."""
    standings: Mapping[str, Standing] = MappingProxyType({})
    """By kind: the sentence for `explain` that says why a job does not start now, whatever its time is; or None."""

    passing: Mapping[str, Passing] = MappingProxyType({})
    """By kind: until when the times of these jobs are passed over as things stand, and why, by job."""
    hours: Mapping[str, Hours] = MappingProxyType({})
    """By kind: the hours for which a job waits when it is due outside of them, where they are not of its trigger."""

    started_when: Mapping[str, str] = MappingProxyType({})
    """By kind: when it starts those of its jobs that have no times, to follow "runs"."""

    watched: Mapping[str, Watched] = MappingProxyType({})
    """By kind: what its jobs, which run elsewhere, show as `monitor`, from trigger, state and the time."""

    run_phases: Mapping[str, Phases] = MappingProxyType({})
    """By kind: the phases of runs, for everybody who looks at them, where the engine gives them none."""
    run_steps: Mapping[str, Steps] = MappingProxyType({})
    """By kind: the steps of runs, by run, for everybody who looks at them."""
    run_deliveries: Callable[[Transaction, Sequence[int]], Mapping[int, list[dict[str, Any]]]] | None = None
    """What was sent about runs, by run, for everybody who looks at them."""
    given_up: Callable[[Transaction, int], int] | None = None
    """How many messages made from an id on were given up, for the verdict."""
    unsent: Callable[[Transaction], tuple[int, int | None]] | None = None
    """How many messages wait to be sent, and since when the first of them does, for the verdict."""

    measures: Reference | None = None
    """`(tx) -> Iterable[Measure]`: further figures for `/metrics`, each at a cost that does not grow with the store."""

    # Foreseen
    simulated_tables: tuple[str, ...] = ()
    """Tables whose rows a simulation starts with, such as what a budget has spent today."""
    remedies: Mapping[str, Remedy] = MappingProxyType({})
    """By reason for which a kind refuses a start: what a simulation calls that, and what a person can do about it."""
    spending: Reference | None = None
    """`(tx) -> Spending`: whose budget each job uses, and what budgets there are."""

    # Surfaces
    parts: Mapping[str, Reference] = MappingProxyType({})
    """Objects on the scheduler by their name, made with it when they are first asked for."""
    section: str | None = None
    """Its section of `wakeful.yaml`, such as `deliveries` or `server.sessions`."""
    settings: Reference | None = None
    """The pydantic model of that section."""
    fill: Reference | None = None
    """`(file, main) -> file`: adds to its section before that is checked; `main` is the file that includes this one."""
    reads_jobs: Reference | None = None
    """`(terms) -> SectionReader`: reads the jobs that its section stands for, see `config/jobs_file.py`."""
    reload: Reference | None = None
    """`async (scheduler, settings) -> None`: takes over what changed in its section while the server runs."""
    apply: Reference | None = None
    """`(scheduler, settings) -> Applicable`: what `wakeful plan` shows and `wakeful apply` does besides the jobs."""
    install: Reference | None = None
    """`(scheduler, settings, server) -> None`: registers handlers and background services when a server starts."""
    by_id: Mapping[str, Mapping[str, Reference]] = MappingProxyType({})
    """By what ids of its things begin with: what commands about jobs and runs do with these ids.

    `show`, `logs`, `retry`: `(place, ref, *, as_json) -> None`; `cancel` also takes `yes`. `explain`:
    `(tx, ref, zone) -> Explanation`.
    """
    obstacles: Mapping[str, Reference] = MappingProxyType({})
    """By kind: `(payload, folder) -> list[str]`, what looks wrong about a job on this machine, as sentences.

    `folder` is where it would run if it does not say where; None where that is not known.
    """
    held: Reference | None = None
    """`(tx) -> None`: holds back what it would send, in a copy of a store in which everything is held."""
    run_here: Mapping[str, Reference] = MappingProxyType({})
    """By kind, of those that `wakeful run` can run without a server: `(scheduler, job, file) -> str | None`.

    It prepares the scheduler with what the configuration file says, if there is one, and returns what to tell the
    person after the run.
    """
    alone: Reference | None = None
    """`async (scheduler, job, file) -> after | None`: before a process runs this job alone, for jobs of any kind.

    `async after(run) -> str | None` is called when the run has ended, and returns what to tell the person.
    """
    file_of: Reference | None = None
    """`(tx, job_id) -> (path, place)`: the configuration file of a job or its store, if it is on this machine.

    `place` is where the job's own file is, if that is not this machine.
    """
    routes: Reference | tuple[Reference, ...] = ()
    """A FastAPI router, or several, each with its whole prefix: one included in another is not seen."""
    job_secrets: Mapping[str, Reference] = MappingProxyType({})
    """By kind: `async (scheduler, job_id, server) -> {part: {name: secret}}`, for callers who may change the job."""
    open_paths: tuple[str, ...] = ()
    """Path prefixes of its public routes, where the rest of the path is the secret: no token, and any body."""
    cut_paths: Mapping[str, int] = MappingProxyType({})
    """Path prefixes where so many bytes of a body count: the rest is dropped, and no length is refused."""
    commands: Reference | Mapping[str, Reference] | None = None
    """A Typer app: a group of commands under the domain's name; or several, each with the name of its group."""


def load(reference: Reference) -> Any:
    """What `module:name` names."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def load_routers(domain: Domain) -> list[Any]:
    """The FastAPI routers of a domain."""
    return [load(one) for one in ((domain.routes,) if isinstance(domain.routes, str) else domain.routes)]
