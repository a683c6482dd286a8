"""`python -m tests.simulation --seeds 2000` lives through many worlds; `--seed N` through one, telling its story.

`--store postgres` are worlds of several nodes; `--nodes 3` of exactly so many. `--world agents` has agents in it,
`bureau` some that leave and come back, `relays` some that write to each other, `planners` some that schedule
themselves, `workflows` a workflow, `steps` one with steps, `tangles` one that is hard to bear, `shares` crowded lanes,
`asking` jobs that ask people;
in `alarms` incidents are sent to a phone that fails at times, and every message is followed; in `nights` the phone has
quiet hours, and people write, requeue and cancel messages.
"""

from __future__ import annotations

import argparse
import logging
import sys
from importlib import import_module
from typing import Any

from tests.simulation.people import People

WORLDS = {
    "jobs": "world:World", "agents": "agents:Employer", "bureau": "bureau:Bureau", "relays": "relays:Relays",
    "alarms": "alarms:Alarmed", "workflows": "flows:Flowing", "tangles": "tangles:Tangled", "shares": "shares:Sharing",
    "nights": "nights:Nightly", "steps": "stepped:Stepped", "planners": "planners:Planners",
    "asking": "asking:Asking",
}  # fmt: skip
FLEETS = {"jobs": "fleet:Fleet", "agents": "agency:Agency", "alarms": "alarmed_fleet:AlarmedFleet"}


def _live(args: argparse.Namespace, seed: int) -> People:
    if args.store == "postgres":
        from tests.simulation.fleet import live_together

        return live_together(seed, args.steps, args.nodes, _kind(FLEETS, args))
    from tests.simulation.world import live

    return live(seed, args.steps, _kind(WORLDS, args))


def _kind(kinds: dict[str, str], args: argparse.Namespace) -> Any:
    module, _, name = kinds[args.world].partition(":")
    return getattr(import_module(f"tests.simulation.{module}"), name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--nodes", type=int, help="how many share the database; drawn by each seed unless said")
    parser.add_argument("--world", choices=sorted(WORLDS), default="jobs", help="what is in it beside jobs")
    args = parser.parse_args()
    if args.store == "postgres" and args.world not in FLEETS:
        parser.error(f"there are no {args.world} in worlds of several nodes: choose one of {', '.join(FLEETS)}")
    logging.disable(logging.CRITICAL)
    if args.seed is not None:
        world = _live(args, args.seed)
        print("\n".join(world.steps))
        print(f"seed {args.seed}: {world.starts} starts, {world.deaths} deaths, trace {world.trace.hexdigest()[:16]}")
        return 0
    starts = deaths = 0
    broken: list[int] = []
    for seed in range(args.start, args.start + args.seeds):
        try:
            world = _live(args, seed)
        except Exception as error:  # noqa: BLE001 - counted and reported
            broken.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            continue
        starts, deaths = starts + world.starts, deaths + world.deaths
    print(f"{args.seeds} worlds, {starts} starts, {deaths} deaths, {len(broken)} broken {broken[:20]}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
