"""Under pressure: jobs that wait for a full lane, the event loop during a burst, another process that wants to write,
and how soon a job that is due at once is picked up.
"""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench.contenders import APSCHEDULER3, HUEY, ROOT, WAKEFUL, environment
from bench.figures import Run, spread
from bench.measures import Column, Entry, Plan, Table, interleave
from bench.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.contenders import Contender

NOBODY: tuple[str, ...] = ()


def measure(plan: Plan) -> list[Table]:
    return [_parked(plan), _pressure(plan), _pickup(plan)]


# -- a full lane ------------------------------------------------------------------------------------------------------


def parked(count: int, idle_s: float, folder: Path) -> Run:
    """The engine's own cost while `count` due jobs wait for one place in a lane."""
    WAKEFUL.ask("park", folder=str(folder), count=count, first=time.time())
    with Serving(WAKEFUL, folder) as serving:
        time.sleep(min(3.0, idle_s))
        before, began = serving.cpu_s(), time.time()
        time.sleep(idle_s)
        cost = 1000 * (serving.cpu_s() - before) / (time.time() - began)
        serving.stop()
        words = serving.last_words()
        assert words["starts"] == 1, f"the lane let in {words['starts']}"
        return {"cpu_ms_per_s": cost, "checks": words["checks"]}


def _parked(plan: Plan) -> Table:
    count, idle_s = (5000, 2.0) if plan.quick else (10_000, 10.0)
    table = Table(
        "parked",
        f"{count:,} due jobs parked on a full lane",
        [Column("cpu_ms_per_s", "CPU ms per second of waiting"), Column("checks", "looks of the engine in all")],
        peers_in=NOBODY,
    )
    entries: list[Entry] = [
        ("Wakeful, none parked", partial(parked, 0, idle_s)),
        (f"Wakeful, {count:,} parked", partial(parked, count, idle_s)),
    ]
    interleave(plan, table, entries)
    return table


# -- a burst, seen from beside it -------------------------------------------------------------------------------------


def pressure(count: int, folder: Path) -> Run:
    """Loop lag in the serving process and writes from another one, both between the first start and the last."""
    WAKEFUL.ask("store", folder=str(folder), count=count, first=time.time())
    lags = folder / "lags.json"
    with (
        _writing(folder, far=True, samples=100_000, every=0.002) as writer,
        Serving(WAKEFUL, folder, lags=str(lags)) as serving,
    ):
        serving.wait_for(count, 120)
        (folder / "stop").touch()
        writes = json.loads(writer.readline())
        serving.stop()
    starts = [mark.started for mark in serving.marks()]
    first, last = min(starts), max(starts)
    inside = [late * 1000 for at, late in json.loads(lags.read_text(encoding="utf-8")) if first <= at <= last]
    waits = [took * 1000 for began, took in writes if first <= began <= last]
    run = {f"lag_{key}": value for key, value in spread(inside).items()}
    run |= {f"write_{key}": value for key, value in spread(waits).items()}
    return {**run, "drain_per_s": count / (last - first), "lag_samples": len(inside), "write_samples": len(waits)}


@contextmanager
def _writing(folder: Path, **options: Any) -> Iterator[IO[str]]:
    """Another process that adds jobs through the library, its store already open; what it says."""
    command = WAKEFUL.command("write", folder=str(folder), seconds=120, stop=str(folder / "stop"), **options)
    process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.stdout
    finally:
        process.kill()
        process.communicate()


def _pressure(plan: Plan) -> Table:
    count = 4000 if plan.quick else 20_000
    table = Table(
        "pressure",
        f"During a burst of {count:,} jobs (milliseconds)",
        [
            Column("lag_p50_ms", "loop lag p50"),
            Column("lag_p99_ms", "loop lag p99"),
            Column("lag_max_ms", "loop lag max"),
            Column("write_p50_ms", "write p50"),
            Column("write_p99_ms", "write p99"),
            Column("write_max_ms", "write max"),
            Column("drain_per_s", "drain /s"),
            Column("lag_samples", "lag samples"),
            Column("write_samples", "writes"),
        ],
        notes=[
            "Loop lag: how much later than asked a 5 ms timer came round in the serving process.",
            "Write: `add_job` from another process with the store already open, as the command line writes.",
        ],
        peers_in=NOBODY,
    )
    interleave(plan, table, [(WAKEFUL.name, partial(pressure, count))])
    return table


# -- a job that is due at once ----------------------------------------------------------------------------------------


def pickup_inside(contender: Contender, samples: int, folder: Path) -> Run:
    """Added in the serving process, one at a time, to an idle scheduler; from before the call to the job's start."""
    with Serving(contender, folder, pickups=samples, every=0.05) as serving:
        serving.wait_for(samples, 120)
    return spread([(mark.started - mark.due) * 1000 for mark in serving.marks()])


def pickup_across(contender: Contender, samples: int, folder: Path) -> Run:
    """Added by another process on the same file."""
    with Serving(contender, folder) as serving:
        time.sleep(1.0)  # until it is there, and idle
        if contender is WAKEFUL:
            with _writing(folder, far=False, samples=samples, every=0.13) as writer:
                writer.readline()
        else:
            contender.ask("pickup", folder=str(folder), samples=samples, every=0.13)
        serving.wait_for(samples, 60)
    return spread([(mark.started - mark.due) * 1000 for mark in serving.marks()])


def _pickup(plan: Plan) -> Table:
    samples = 40 if plan.quick else 200
    table = Table(
        "pickup",
        "Pickup of one immediate job on an idle scheduler (milliseconds)",
        [
            Column("p50_ms", "p50", "less"),
            Column("p95_ms", "p95", "less"),
            Column("p99_ms", "p99", "less"),
            Column("max_ms", "max", "less"),
        ],
        notes=[
            "From before the call that adds the job to the job's start.",
            "On SQLite a process that committed something rings the bell of the running Wakeful.",
            "Only the first row is compared: APScheduler 3 cannot be woken from outside, Huey polls at 10 to 50 ms.",
        ],
        ours="Wakeful, same process",
        peers_in=("APScheduler 3, same process",),
    )
    entries: list[Entry] = [
        ("Wakeful, same process", partial(pickup_inside, WAKEFUL, samples)),
        ("Wakeful, another process", partial(pickup_across, WAKEFUL, samples // 2)),
    ]
    if APSCHEDULER3 in plan.peers:
        entries.append(("APScheduler 3, same process", partial(pickup_inside, APSCHEDULER3, samples)))
    if HUEY in plan.peers:
        entries.append(("Huey, another process", partial(pickup_across, HUEY, samples // 2)))
    interleave(plan, table, entries)
    return table
