"""`python -m tests.chaos`: kill -9 in a loop and at each step of a message, a cluster under fire, also behind a pooler,
nodes cut off, a poisoned job, agents, full disks, system calls, workflows that die at every point and are killed,
thousands of simulated worlds.

Prints counts; ends with 1 if anything was lost, doubled or otherwise not as promised. `--seed N` repeats a run's
choices; the moments at which real processes are hit are never quite the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos import (
    agents,
    crash_matrix,
    full_disk,
    messages,
    partition,
    poison,
    pooled,
    system_calls,
    workflow_kill,
)
from tests.chaos.cluster import ClusterDrill
from tests.chaos.cluster import Scenario as ClusterScenario
from tests.chaos.cluster_verdict import ClusterVerdict
from tests.chaos.killing import ROOT, Drill, Scenario
from tests.chaos.verdict import Verdict

SIMULATION_S = 900.0
FLEET = 10  # a world of several nodes takes as long as so many of one


def main() -> int:
    asked = _arguments()
    parts: dict[str, Callable[[], list[str]]] = {
        "kill": lambda: _kill(asked.seed, asked.kills, asked.keep),
        "messages": lambda: _in_folder(messages.drill),
        "cluster": lambda: _cluster(asked.seed, asked.keep),
        "partition": partition.drill,
        "pooler": lambda: _in_folder(lambda folder: pooled.drill(folder, asked.seed)),
        "poison": lambda: _in_folder(poison.drill),
        "agents": lambda: _in_folder(lambda folder: agents.drill(folder, asked.seed)),
        "disk": _disk,
        "calls": lambda: _in_folder(system_calls.check),
        "matrix": crash_matrix.drill,
        "workflows": lambda: _in_folder(lambda folder: workflow_kill.drill(folder, asked.seed)),
        "simulation": lambda: _simulation(asked.seeds),
        "employers": lambda: _simulation(asked.seeds // FLEET, "--world", "agents"),
        "bureau": lambda: _simulation(asked.seeds // FLEET, "--world", "bureau"),
        "relays": lambda: _simulation(asked.seeds // FLEET, "--world", "relays"),
        "fleets": lambda: _simulation(asked.seeds // FLEET, "--store", "postgres"),
        "alarms": lambda: _simulation(asked.seeds // FLEET // 4, "--store", "postgres", "--world", "alarms"),
        "flows": lambda: _simulation(asked.seeds // FLEET, "--world", "workflows"),
        "tangles": lambda: _simulation(asked.seeds // FLEET, "--world", "tangles"),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that an interrupted drill cleans up
    broken = False
    for name in asked.only.split(",") if asked.only else parts:
        began = time.monotonic()
        print(f"{name} ...", flush=True)
        wrong = parts[name]()
        broken = broken or bool(wrong)
        for line in wrong:
            print(f"  WRONG: {line}")
        print(f"{name}: {'as promised' if not wrong else 'BROKEN'} after {time.monotonic() - began:.0f} s", flush=True)
    print("chaos: BROKEN" if broken else "chaos: nothing lost, nothing doubled")
    return 1 if broken else 0


def _kill(seed: int, kills: int, keep: bool) -> list[str]:  # noqa: FBT001 - a flag of the command line
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    scenario = Scenario(seed, kills)
    print(f"  seed {seed}, {kills} kills over about {scenario.span_s:.0f} s")
    return _told(Drill(folder, scenario).run(), folder, keep)


def _cluster(seed: int, keep: bool) -> list[str]:  # noqa: FBT001 - a flag of the command line
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    scenario = ClusterScenario(seed)
    print(f"  seed {seed}: {scenario.nodes} nodes, {scenario.jobs} jobs over {scenario.span_s:.0f} s", flush=True)
    return _told(ClusterDrill(folder, scenario).run(), folder, keep)


def _told(verdict: Verdict | ClusterVerdict, folder: Path, keep: bool) -> list[str]:  # noqa: FBT001 - as above
    print("\n".join(f"  {line}" for line in verdict.lines()))
    if verdict.clean and not keep:
        subprocess.run(["rm", "-r", str(folder)], check=True)
        return []
    print(f"  ledgers, logs and what else is left: {folder}")
    return [f"{len(found)} {name.replace('_', ' ')}" for name, found in verdict.faults.items() if found]


def _in_folder(drill: Callable[[Path], list[str]]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        return drill(Path(folder))


def _disk() -> list[str]:
    wrong = _in_folder(full_disk.drill_by_limit)
    by_mount = _in_folder(full_disk.drill_by_mount)
    if any(line.startswith("no small disk here") for line in by_mount):
        print(f"  {by_mount[0]}")  # the drill by limit stands in for it
        by_mount = []
    return wrong + by_mount


def _simulation(seeds: int, *options: str) -> list[str]:
    """The seeded worlds of tests/simulation, spread over the processors."""
    if importlib.util.find_spec("tests.simulation.__main__") is None:
        print("  no simulation here")
        return []
    workers = os.cpu_count() or 1
    share = -(-seeds // workers)
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.simulation", "--seeds", str(share), "--start", str(share * number), *options],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in range(workers)
    ]  # fmt: skip
    wrong, end = [], time.monotonic() + SIMULATION_S
    for process in running:
        try:
            said, _ = process.communicate(timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            wrong.append(f"the simulation did not end in {SIMULATION_S:.0f} s")
        print("".join(f"  {line}\n" for line in said.splitlines()[-3:]), end="")
        if process.returncode:
            wrong.append(f"simulated worlds broke: {said.splitlines()[-1] if said else process.returncode}")
    return wrong


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument(
        "--seed",
        type=int,
        default=int(time.time()) % 100_000,
        help="of the kill loop and the cluster (by default another each time)",
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2000, help="simulated worlds")
    parts = (
        "kill,messages,cluster,partition,pooler,poison,agents,disk,calls,matrix,workflows,simulation,employers,fleets,"
        "alarms,flows,tangles"
    )
    parser.add_argument("--only", metavar="PARTS", help=f"some of: {parts}")
    parser.add_argument("--keep", action="store_true", help="leave the ledgers behind, and the kill loop's store")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
