"""`python -m bench`: measure, print tables with ratios, keep the results."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

from bench import report
from bench.contenders import CACHE, PEERS, ROOT
from bench.measures import Plan, Table, burst, cron, crowd, lateness, raw, recurring
from bench.peers import compile_ours, set_up

MEASURES: dict[str, Callable[[Plan], list[Table]]] = {
    "raw": raw.measure,
    "burst": burst.measure,
    "lateness": lateness.measure,
    "crowd": crowd.measure,
    "cron": cron.measure,
    "recurring": recurring.measure,
}


def main() -> int:
    asked = _arguments()
    if asked.publish and asked.only is None and asked.again:
        report.publish(json.loads((CACHE / "results.json").read_text(encoding="utf-8")))
        return 0
    compile_ours()
    peers = () if asked.quick or asked.no_peers else PEERS
    if peers:
        set_up()
    plan = Plan(asked.quick, 1 if asked.quick else asked.rounds, peers, lambda text: print(text, flush=True))
    if os.getloadavg()[0] > 0.5 and not asked.quick:
        print(f"Note: something else is running here (load {os.getloadavg()[0]:.1f}); expect noise.", flush=True)
    began, tables, failed = time.time(), [], False
    for name in asked.only.split(",") if asked.only else MEASURES:
        print(f"{name} ...", flush=True)
        for table in MEASURES[name](plan):
            tables.append(table)
            failed = failed or not table.runs
            print("\n" + report.markdown(table), flush=True)
    results = report.collect(tables, peers)
    kept = report.save(results, CACHE / ("quick.json" if asked.quick else "results.json"))
    disturbed = results["noise"]
    print(
        f"{time.time() - began:.0f} s; fixed loop {disturbed['spin_min_ms']:.0f} to {disturbed['spin_max_ms']:.0f} ms, "
        f"steal at most {disturbed['steal_max_percent']:.1f} %. All runs: {kept.relative_to(ROOT)}"
    )
    if asked.publish:
        report.publish(results)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours alone, small, within a minute")
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {','.join(MEASURES)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often everybody is measured (3)")
    parser.add_argument("--no-peers", action="store_true", help="ours alone, in full size")
    parser.add_argument("--publish", action="store_true", help="write the figures into docs/benchmarks.md")
    parser.add_argument("--again", action="store_true", help="with --publish: measure nothing, write what is kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
