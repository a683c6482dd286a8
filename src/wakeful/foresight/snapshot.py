"""A snapshot of a store: the jobs and their state, what domains need, and what past runs took and used."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains import domains
from wakeful.foresight.history import COUNTED, Histories, History, history_of, together
from wakeful.kernel.domain import Budget, load
from wakeful.store.tables import OWN_FACTS, known_tables

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunDetails, RunRow
    from wakeful.store.runs import Used
    from wakeful.store.schema_shape import Table
    from wakeful.store.session import Row
    from wakeful.store.slots import Placed

STATE = (
    *("meta", "jobs", "chains", "job_state", "job_stops", "priorities"),
    *("lanes", "lane_sizes", "lane_reservations"),
)
PAGE = 5_000


class Snapshot(NamedTuple):
    """What a simulation starts with."""

    at: int
    rows: Mapping[str, Sequence[Row]]
    runs: Sequence[RunRow] = ()  # those that are open
    details: Sequence[RunDetails] = ()
    histories: Histories = Histories()
    owners: Mapping[int, str] = {}  # whose budget jobs use
    labels: frozenset[str] = frozenset()  # of the nodes that are alive
    queues: Mapping[str, int] = {}  # items that wait, by whose they are
    queue_of: Mapping[int, str] = {}  # by the id of a job whose runs take items
    limits: Mapping[int, int] = {}  # by the id of a job, after how many milliseconds its runs end themselves


class Spenders(NamedTuple):
    """Whose budget jobs use, as all domains know it, and what budgets there are."""

    owners: Mapping[int, str] = {}  # by the id of a job
    leads_to: Mapping[str, str] = {}  # by the name of a job, the one that its runs start
    budgets: Sequence[Budget] = ()
    queues: Mapping[str, int] = {}  # items that wait, by whose they are
    queue_of: Mapping[int, str] = {}  # by the id of a job whose runs take items
    limits: Mapping[int, int] = {}  # by the id of a job, after how many milliseconds its runs end themselves
    times: Mapping[int, str] = {}  # by the id of a job with hours of its own, its trigger with them


def take_snapshot(tx: Transaction) -> Snapshot:
    """Everything that a simulation of the store needs, read in one transaction."""
    wanted = {*STATE, *(name for domain in domains() for name in domain.simulated_tables)}
    rows = {table.name: list(_rows(tx, table)) for table in known_tables() if table.name in wanted}
    rows["meta"] = [row for row in rows["meta"] if row[0] not in OWN_FACTS]
    opened = tx.runs.all_open()
    details = list(tx.runs.details_of([run.id for run in opened]).values()) if opened else []
    labels = {label for node in tx.members.alive() for label in json.loads(node.details).get("labels", ())}
    spenders = read_spenders(tx)
    owners = spenders.owners
    return Snapshot(
        tx.now,
        rows,
        opened,
        [one._replace(log_file=None) for one in details],
        read_histories(tx, tx.slots.jobs(), owners),
        owners,
        frozenset(labels),
        spenders.queues,
        spenders.queue_of,
        spenders.limits,
    )


def empty_snapshot(now: int) -> Snapshot:
    """Of a store that is not there yet."""
    return Snapshot(now, {})


def _rows(tx: Transaction, table: Table) -> Sequence[Row]:
    found: list[Row] = []
    page = tx.tables.page(table, None, PAGE)
    while page:
        found += page
        page = tx.tables.page(table, page[-1], PAGE) if len(page) == PAGE else []
    return found


def read_spenders(tx: Transaction) -> Spenders:
    """What domains say about budgets."""
    owners, leads_to, budgets = dict[int, str](), dict[str, str](), list[Budget]()
    queues, queue_of, limits, times = dict[str, int](), dict[int, str](), dict[int, int](), dict[int, str]()
    for spending in (load(domain.spending)(tx) for domain in domains() if domain.spending is not None):
        for job in tx.jobs.of_kinds(spending.kinds):
            if (owner := spending.owner_of(job.name, job.payload)) is not None:
                owners[job.id] = owner
            if (target := spending.leads_to(job.name, job.payload)) is not None:
                leads_to[job.name] = target
            if (queue := spending.queue_of(job.payload)) is not None:
                queue_of[job.id] = queue
            if (limit := spending.limit_of(job.payload)) is not None:
                limits[job.id] = limit
            if (timed := spending.times_of(job.trigger, job.payload)) != job.trigger:
                times[job.id] = timed
        budgets += spending.budgets
        queues |= spending.queues
    return Spenders(owners, leads_to, budgets, queues, queue_of, limits, times)


def read_histories(
    tx: Transaction, jobs: Sequence[Placed], owners: Mapping[int, str], *, costs_of: Collection[int] | None = None
) -> Histories:
    """What the last runs of these jobs took and used; with `costs_of`, of these and of kinds that may cost money."""
    used: Mapping[int, Sequence[Used]] = {}
    started = [placed.id for placed in jobs if placed.state.last_run_id is not None]
    if costs_of is not None:
        free = {kind.name for domain in domains() if domain.spending is None for kind in domain.kinds}
        spending = {kind.name for domain in domains() if domain.spending is not None for kind in domain.kinds}
        kinds = tx.jobs.kinds()
        others = [job_id for job_id in started if kinds.get(job_id) not in free | spending and job_id not in costs_of]
        used = tx.runs.used_by(others, COUNTED, reporting=True)
        started = [job_id for job_id in started if job_id in costs_of or kinds.get(job_id) in spending]
    found = {job_id: history_of(runs) for job_id, runs in {**used, **tx.runs.used_by(started, COUNTED)}.items()}
    groups = defaultdict[str, list[History]](list)
    for job_id, owner in owners.items():
        groups[owner].append(found.get(job_id, History()))
    return Histories(found, {owner: together(several) for owner, several in groups.items()})
