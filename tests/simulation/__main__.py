"""`python -m tests.simulation --seeds 2000` lives through many worlds; `--seed N` through one, telling its story.

`--store postgres` are worlds of several nodes; `--nodes 3` of exactly so many. With `--alarms` incidents are sent to a
phone that fails at times, and every message is followed to its end. `--agents` are worlds with agents.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tests.simulation.people import People


def _live(args: argparse.Namespace, seed: int) -> People:
    if args.store == "postgres":
        from tests.simulation.agency import Agency
        from tests.simulation.alarmed_fleet import AlarmedFleet
        from tests.simulation.fleet import Fleet, live_together

        kind = AlarmedFleet if args.alarms else Agency if args.agents else Fleet
        return live_together(seed, args.steps, args.nodes, kind)
    from tests.simulation.agents import Employer
    from tests.simulation.alarms import Alarmed
    from tests.simulation.world import World, live

    return live(seed, args.steps, Alarmed if args.alarms else Employer if args.agents else World)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--agents", action="store_true")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--nodes", type=int, help="how many share the database; drawn by each seed unless said")
    parser.add_argument("--alarms", action="store_true", help="send incidents, and follow every message")
    args = parser.parse_args()
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
        except Exception as error:  # noqa: BLE001 - counted and told
            broken.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            continue
        starts, deaths = starts + world.starts, deaths + world.deaths
    print(f"{args.seeds} worlds, {starts} starts, {deaths} deaths, {len(broken)} broken {broken[:20]}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
