"""`python -m bench`: measure, print tables with ratios, keep the results."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

from bench import report
from bench.contenders import PEERS, PEERS_POSTGRES, ROOT
from bench.measures import (
    Plan,
    Table,
    burst,
    cron,
    crowd,
    delivery,
    http,
    lateness,
    ledger,
    live,
    million,
    mixed,
    pages,
    postgres,
    raw,
    recurring,
    scale,
    soak,
    steps,
    workflows,
)
from bench.peers import POSTGRES_ONLY, compile_ours, set_up

MEASURES: dict[str, Callable[[Plan], list[Table]]] = {
    "raw": raw.measure,
    "burst": burst.measure,
    "lateness": lateness.measure,
    "crowd": crowd.measure,
    "cron": cron.measure,
    "recurring": recurring.measure,
    "http": http.measure,
    "delivery": delivery.measure,
    "postgres": postgres.measure,
    "workflows": workflows.measure,
    "steps": steps.measure,
    "ledger": ledger.measure,
    "pages": pages.measure,
    "live": live.measure,
    "million": million.measure,
    "scale": scale.measure,
    "soak": soak.measure,
    "mixed": mixed.measure,
}
ON_REQUEST = {"soak", "mixed", "scale", "live"}  # half an hour of waiting; arithmetic that is the same on every machine
# No peer is measured beside these.
ALONE = {"raw", "http", "delivery", "ledger", "pages", "live", "million", "scale", "soak", "mixed"}
NOT_QUICK = {"workflows", "steps", "ledger"}  # they fill two stores, or start one after the other


def main() -> int:
    asked = _arguments()
    if asked.publish and asked.only is None and asked.again:
        for section in report.MARKS:
            if report.kept(section).exists():
                report.publish(json.loads(report.kept(section).read_text(encoding="utf-8")), section)
        return 0
    compile_ours()
    peers = asked.peers or (not asked.quick and not asked.no_peers)
    peers = peers and not (asked.only and ALONE.issuperset(asked.only.split(",")))
    if peers:
        only = set(asked.only.split(",")) if asked.only else set(MEASURES)
        set_up(POSTGRES_ONLY if only <= {"postgres", "workflows", "steps"} else None)
    plan = Plan(
        asked.quick,
        1 if asked.quick else asked.rounds,
        PEERS if peers else (),
        lambda text: print(text, flush=True),
        PEERS_POSTGRES if peers else (),
        asked.minutes,
    )
    if os.getloadavg()[0] > 0.5 and not asked.quick:
        print(f"Note: something else is running here (load {os.getloadavg()[0]:.1f}); expect noise.", flush=True)
    began, tables = time.time(), list[Table]()
    left_out = ON_REQUEST | NOT_QUICK if asked.quick else ON_REQUEST
    usual = [name for name in MEASURES if name not in left_out]
    for name in asked.only.split(",") if asked.only else usual:
        print(f"{name} ...", flush=True)
        for table in MEASURES[name](plan):
            tables.append(table)
            print("\n" + report.markdown(table), flush=True)
    print(f"{time.time() - began:.0f} s")
    for section in report.MARKS:
        found = [table for table in tables if table.section == section and table.runs]
        if found:
            _keep(found, section, asked, peers=peers)
    return 0 if all(table.runs for table in tables) else 1


def _keep(tables: list[Table], section: str, asked: argparse.Namespace, *, peers: bool) -> None:
    results = report.collect(tables, peers=peers)
    path = report.save(results, report.kept(section, quick=asked.quick))
    disturbed = results["noise"]
    print(
        f"{section}: fixed loop {disturbed['spin_min_ms']:.0f} to {disturbed['spin_max_ms']:.0f} ms, "
        f"steal at most {disturbed['steal_max_percent']:.1f} %. All runs: {path.relative_to(ROOT)}"
    )
    if asked.publish:
        report.publish(results, section)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours alone, small, within a minute")
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {','.join(MEASURES)}")
    parser.add_argument("--minutes", type=float, help="how long each soak takes (10; 2 with --quick)")
    parser.add_argument("--rounds", type=int, default=3, help="how often everybody is measured (3)")
    parser.add_argument("--peers", action="store_true", help="with --quick: the peers as well")
    parser.add_argument("--no-peers", action="store_true", help="ours alone, in full size")
    parser.add_argument("--publish", action="store_true", help="write the figures into docs/benchmarks.md")
    parser.add_argument("--again", action="store_true", help="with --publish: measure nothing, write what is kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
