"""The judgement of a cluster: what the database has on record, held against what the nodes' ledgers saw.

A handler frozen with its node may still act when it thaws: that is counted apart, as `zombies`. What must never
happen is that its record counts, that a living node's work is run beside itself, or that anything is lost.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.cluster_record import Record, RecordedNode, RecordedRun
from tests.chaos.fleet import FOREVER, Blow
from tests.chaos.node import CUT, END, START, Fact

LEASE_S = 20.0
TAKE_OVER_S = LEASE_S + 5.0
SLACK_S = 0.5  # for the transaction that takes over, on a busy machine
EARLY_S = 0.05  # two readings of one machine's clock by different processes


@dataclass
class Cluster:
    """What there is to judge."""

    record: Record
    facts: Sequence[Fact]
    blows: Sequence[Blow]
    outages: Sequence[tuple[float, float]]  # of the database
    max_running: int
    labels: dict[str, frozenset[str]]  # of each node
    surprises: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.starts = {fact.run: fact for fact in self.facts if fact.what == START}
        self.ends = {fact.run: fact for fact in self.facts if fact.what == END}
        self.cuts = {fact.run: fact for fact in self.facts if fact.what == CUT}
        self.killed = {blow.pid: blow.at for blow in self.blows if blow.what == "kill"}

    def over(self, fact: Fact) -> float:
        """When a started handler was really over: its last line, or its process's death."""
        last = self.ends.get(fact.run) or self.cuts.get(fact.run)
        return last.at if last is not None else self.killed.get(fact.pid, FOREVER)

    def counted(self, fact: Fact) -> float:
        """Until when a started handler counts: to its end, or until it was taken over from."""
        run = self.record.runs.get(fact.run)
        fenced = run is not None and self.record.taken_over(run) is not None
        return min(self.over(fact), run.finished_at or FOREVER) if run is not None and fenced else self.over(fact)

    def away(self, begin: float, end: float) -> float:
        """For how long of that time the database was away."""
        return sum(max(0.0, min(end, up) - max(begin, down)) for down, up in self.outages)


@dataclass
class ClusterVerdict:
    """Counts that must be 0, each with what was found, and some that only describe the run."""

    lost: list[str] = field(default_factory=list)
    settled_twice: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)  # one attempt started twice, by the ledgers
    overlapping: list[str] = field(default_factory=list)  # two runs of one job at once, no zombie among them
    over_capacity: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)  # on a node without the labels it asks for
    unexplained: list[str] = field(default_factory=list)  # record and ledgers disagree
    late_take_over: list[str] = field(default_factory=list)
    started_fenced: list[str] = field(default_factory=list)  # called although others had taken it over
    surprises: list[str] = field(default_factory=list)  # processes that ended by themselves, or would not
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def faults(self) -> dict[str, list[str]]:
        names = (
            "lost settled_twice doubled overlapping over_capacity misplaced unexplained late_take_over "
            "started_fenced surprises"
        )
        return {name: getattr(self, name) for name in names.split()}

    @property
    def clean(self) -> bool:
        return not any(self.faults.values())

    def lines(self) -> list[str]:
        reported = [f"{name.replace('_', ' '):<16} {len(found)}" for name, found in self.faults.items()]
        reported += [f"  {name}: {item}" for name, found in self.faults.items() for item in found[:10]]
        return reported + [f"{name:<32} {value}" for name, value in self.facts.items()]


def judge(cluster: Cluster) -> ClusterVerdict:
    verdict = ClusterVerdict(surprises=list(cluster.surprises))
    for part in _PARTS:
        part(verdict, cluster)
    return verdict


def _stored(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """Every job has succeeded, and nothing is left open or held."""
    done: dict[str, int] = defaultdict(int)
    for run in cluster.record.runs.values():
        done[run.job] += run.outcome == "success"
        if run.status != "done":
            verdict.lost.append(f"{run.job}: {run.id} is still {run.status}")
    verdict.lost += [
        f"{name} never succeeded; {job.notes}" for name, job in cluster.record.jobs.items() if not done[name]
    ]
    verdict.lost += [f"{places} places of {lane} never came back" for lane, places in cluster.record.lanes_left.items()]


def _slots(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """A slot ends once, each further attempt follows a crash, and a run is reported as finished once."""
    slots: dict[tuple[str, float | None], list[RecordedRun]] = defaultdict(list)
    for run in cluster.record.runs.values():
        slots[run.job, run.slot].append(run)
    for (job, slot), runs in slots.items():
        ends = [run.id for run in runs if run.outcome not in ("crashed", "cancelled")]
        if len(ends) > 1:
            verdict.settled_twice.append(f"{job} at {slot}: {ends}")
        for run in runs:
            before = cluster.record.runs.get(run.retry_of) if run.retry_of is not None else None
            if run.attempt > 1 and (before is None or before.outcome != "crashed"):
                verdict.doubled.append(f"{job} at {slot}: {run.id} follows {run.retry_of}, which was no crash")
    reported: dict[tuple[str, str], int] = defaultdict(int)
    for event in cluster.record.events:
        reported[event] += 1
    # A claim whose answer is lost is released, and claimed again: that a handler starts once is told by the ledgers.
    twice = [(run, n) for (what, run), n in reported.items() if what == "finished" and n > 1]
    verdict.settled_twice += [f"{run} was reported as finished {n} times" for run, n in twice]


def _attempts(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """By the ledgers alone: an attempt at a slot is started by one node, once."""
    tried: dict[tuple[str, str, int], list[Fact]] = defaultdict(list)
    for fact in cluster.facts:
        if fact.what == START:
            tried[fact.job, fact.slot, fact.attempt].append(fact)
    for (job, slot, attempt), facts in tried.items():
        if len(facts) > 1:
            who = [(fact.node, fact.pid, fact.run) for fact in facts]
            verdict.doubled.append(f"{job} at {slot}, attempt {attempt}, was started by {who}")


def _overlaps(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """By the ledgers: no handler of a job beside another, but for those of a node that was taken for dead."""
    by_job: dict[str, list[Fact]] = defaultdict(list)
    for fact in cluster.starts.values():
        by_job[fact.job].append(fact)
    zombies = 0
    for facts in by_job.values():
        for one, two in pairwise(sorted(facts)):
            if cluster.over(one) <= two.at:
                continue
            if cluster.counted(one) <= two.at + EARLY_S:
                zombies += 1
            else:
                verdict.overlapping.append(
                    f"{one.job}: {one.run} on {one.node} until {cluster.over(one):.3f}, "
                    f"{two.run} on {two.node} from {two.at:.3f}"
                )
    verdict.facts["zombies beside their successor"] = zombies


def _capacity(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """Lanes by the order of events, which needs no clock; then by the ledgers."""
    sizes = {"running": cluster.max_running}
    for job in cluster.record.jobs.values():
        sizes |= job.lanes
    used: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    for what, name in cluster.record.events:
        for lane in _lanes(cluster, cluster.record.runs[name].job):
            used[lane] += 1 if what == "started" else -1
            most[lane] = max(most[lane], used[lane])
            if what == "started" and used[lane] > sizes[lane]:
                verdict.over_capacity.append(f"{used[lane]} in {lane} by the record, with {name}")
    for lane, size in sizes.items():
        inside = [fact for fact in cluster.starts.values() if lane in _lanes(cluster, fact.job)]
        steps = sorted([(fact.at, 1) for fact in inside] + [(cluster.counted(fact), -1) for fact in inside])
        now = busiest = 0
        for _, step in steps:
            now += step
            busiest = max(busiest, now)
        if busiest > size:
            verdict.over_capacity.append(f"{busiest} in {lane} by the ledgers")
    verdict.facts["busiest (of)"] = ", ".join(f"{lane} {most[lane]} ({size})" for lane, size in sorted(sizes.items()))


def _lanes(cluster: Cluster, job: str) -> list[str]:
    """What a run of that job holds while it is active; a recorded run no longer shows it."""
    return ["running", *cluster.record.jobs[job].lanes]


def _places(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """By the ledgers and by the record: labelled work ran where the labels are."""
    for fact in cluster.starts.values():
        if not cluster.record.jobs[fact.job].labels <= cluster.labels[fact.node]:
            verdict.misplaced.append(f"{fact.run} of {fact.job} ran on {fact.node}")
    for run in cluster.record.runs.values():
        if run.node is not None and not cluster.record.jobs[run.job].labels <= cluster.record.nodes[run.node].labels:
            verdict.misplaced.append(f"{run.id} of {run.job} is on record for {cluster.record.nodes[run.node].name}")


def _agreement(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """Each success was reached by that node; each end without one is explained by fencing or a kill."""
    runs = cluster.record.runs
    for run in runs.values():
        node = cluster.record.nodes[run.node].name if run.node is not None else None
        end = cluster.ends.get(run.id)
        if run.outcome == "success" and (end is None or end.node != node):
            verdict.unexplained.append(f"{run.id} of {run.job} is a success of {node}; the ledgers say {end}")
        elif run.outcome not in ("success", "crashed", None):  # a run that has not ended is reported as lost
            verdict.unexplained.append(f"{run.id} of {run.job} ended as {run.outcome}")
    for fact in cluster.starts.values():
        if fact.run not in runs:
            verdict.unexplained.append(f"{fact.run} of {fact.job} ran on {fact.node} and is not on record")
    _ends_without_success(verdict, cluster)


def _ends_without_success(verdict: ClusterVerdict, cluster: Cluster) -> None:
    discarded = cut_short = 0
    for end in cluster.ends.values():
        run = cluster.record.runs.get(end.run)
        if run is None or run.outcome == "success":
            continue
        killed_at = cluster.killed.get(end.pid)
        if cluster.record.taken_over(run) is not None and end.at > (run.finished_at or 0):
            discarded += 1
        elif killed_at is not None and run.outcome == "crashed":
            cut_short += 1  # it had ended, and its process was killed before that was stored
        elif cluster.record.taken_over(run) is not None:
            discarded += 1  # it had ended, and its node was frozen or cut off before that was stored
        else:
            verdict.unexplained.append(f"{end.run} of {end.job} ended on {end.node} and is on record as {run.outcome}")
    verdict.facts["results discarded by fencing"] = discarded
    verdict.facts["ended, and killed before storing"] = cut_short


def _take_overs(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """Runs of a node that was dead for longer than a lease and five seconds were taken over by then."""
    nodes = cluster.record.nodes
    taken = [node for node in nodes.values() if node.taken_by is not None]
    by_others = [node for node in taken if _taker(cluster, node) != node.name]
    longest = 0.0
    for node in by_others:
        silent = (node.ended or FOREVER) - node.seen
        silent -= cluster.away(node.seen, node.ended or FOREVER)
        longest = max(longest, silent)
        if silent > TAKE_OVER_S + SLACK_S:
            verdict.late_take_over.append(f"{node.name} ({node.pid}) {silent:.1f} s after its last beat")
        if silent < LEASE_S - EARLY_S and not cluster.outages:
            verdict.late_take_over.append(f"{node.name} ({node.pid}) already {silent:.1f} s after its last beat")
    crashed = sum(cluster.record.taken_over(run) is not None for run in cluster.record.runs.values())
    verdict.facts["nodes taken over from"] = f"{len(taken)}, {len(by_others)} of them by others"
    verdict.facts["runs taken over"] = crashed
    verdict.facts["longest from last beat"] = f"{longest:.1f} s"


def _blows(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """The same from the moment of the blow, which is what a person waits for."""
    since_blow = 0.0
    for blow in cluster.blows:
        if (node := _struck(cluster, blow)) is None:
            continue
        if node.taken_by is None or node.ended is None:
            if blow.until - blow.at - cluster.away(blow.at, blow.until) > TAKE_OVER_S + SLACK_S:
                verdict.late_take_over.append(f"{node.name} ({node.pid}) was never taken over from")
        elif blow.what != "kill" or _taker(cluster, node) != node.name:
            since = node.ended - blow.at - cluster.away(blow.at, node.ended)
            since_blow = max(since_blow, since)
            if since > TAKE_OVER_S + SLACK_S:
                verdict.late_take_over.append(f"{node.name} ({node.pid}) {since:.1f} s after the {blow.what}")
    verdict.facts["longest from the blow"] = f"{since_blow:.1f} s"


def _fenced(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """No node calls the handler of a run that others have taken over."""
    for fact in cluster.starts.values():
        run = cluster.record.runs.get(fact.run)
        if run is not None and cluster.record.taken_over(run) and fact.at > (run.finished_at or 0) + EARLY_S:
            late = fact.at - (run.finished_at or 0)
            verdict.started_fenced.append(f"{fact.run} of {fact.job} on {fact.node}, {late:.3f} s after the take-over")


def _taker(cluster: Cluster, node: RecordedNode) -> str:
    return cluster.record.nodes[node.taken_by].name if node.taken_by is not None else ""


def _struck(cluster: Cluster, blow: Blow) -> RecordedNode | None:
    """The incarnation that was serving when the blow fell."""
    alive = [node for node in cluster.record.nodes.values() if node.pid == blow.pid and node.began <= blow.at]
    found = max(alive, key=lambda node: node.began, default=None)
    return found if found is not None and (found.ended is None or found.ended > blow.at) else None


def _lateness(verdict: ClusterVerdict, cluster: Cluster) -> None:
    """First attempts that wait for nothing but a node and a place among all."""
    late = []
    for run in cluster.record.runs.values():
        job = cluster.record.jobs[run.job]
        if run.attempt == 1 and not job.labels and not job.lanes and run.id in cluster.starts:
            late.append(cluster.starts[run.id].at - run.due_at)
    late.sort()
    if late:
        shares = (late[len(late) // 2], late[int(len(late) * 0.99)], late[-1])
        verdict.facts["late by p50 / p99 / most"] = " / ".join(f"{1000 * value:.0f} ms" for value in shares)


def _counts(verdict: ClusterVerdict, cluster: Cluster) -> None:
    runs = cluster.record.runs.values()
    verdict.facts |= {
        "jobs / runs / crashed": f"{len(cluster.record.jobs)} / {len(runs)} / "
        f"{sum(run.outcome == 'crashed' for run in runs)}",
        "kills / freezes / outages": f"{len(cluster.killed)} / "
        f"{sum(blow.what == 'freeze' for blow in cluster.blows)} / "
        f"{json.dumps([round(up - down, 1) for down, up in cluster.outages])} s",
        "deepest attempt": max((run.attempt for run in runs), default=0),
    }


_PARTS: Sequence[Callable[[ClusterVerdict, Cluster], None]] = (
    _stored, _slots, _attempts, _overlaps, _capacity, _places, _agreement, _take_overs, _blows, _fenced, _lateness,
    _counts,
)  # fmt: skip
