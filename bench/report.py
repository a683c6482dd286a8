"""Results for people and for programs: tables with ratios, and the same as JSON."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from bench.contenders import (
    CACHE,
    DBOS_STEPS,
    PEERS,
    PEERS_POSTGRES,
    ROOT,
    WAKEFUL,
    WAKEFUL_POSTGRES,
    WAKEFUL_WORKFLOWS,
    Contender,
)
from bench.figures import Run, ratio, shown
from bench.machine import describe
from bench.measures import Column, Table
from bench.peers import cron_versions, versions

PAGE = ROOT / "docs" / "benchmarks.md"
#: Between which two lines of the page the figures of each section stand.
MARKS = {
    "sqlite": ("<!-- figures: written by python -m bench --publish -->", "<!-- end of figures -->"),
    "postgres": (
        "<!-- figures on PostgreSQL: written by python -m bench --publish -->",
        "<!-- end of figures on PostgreSQL -->",
    ),
    "workflows": (
        "<!-- figures of workflows: written by python -m bench --publish -->",
        "<!-- end of figures of workflows -->",
    ),
}
#: Who is measured in each section: ours, and the others.
MEASURED = {
    "sqlite": (WAKEFUL, PEERS),
    "postgres": (WAKEFUL_POSTGRES, PEERS_POSTGRES),
    "workflows": (WAKEFUL_WORKFLOWS, (DBOS_STEPS,)),
}


def comparison(table: Table, column: Column) -> float | None:
    """Our median over the best peer's, so that more than 1 is better whichever way the figure points."""
    found = table.medians()
    if column.better is None or table.ours not in found:
        return None
    names = [name for name in found if name != table.ours and not name.startswith(WAKEFUL.name)]
    if table.peers_in is not None:
        names = [name for name in names if name in table.peers_in]
    theirs = [found[name][column.field] for name in names if column.field in found[name]]
    ours = found[table.ours].get(column.field)
    return None if ours is None else ratio(ours, theirs, lower_is_better=column.better == "less")


def markdown(table: Table) -> str:
    """One table, the ratio to the best peer as its last row."""
    lines = [f"### {table.title}", ""]
    lines.append("| | " + " | ".join(column.heading for column in table.columns) + " | runs |")
    lines.append("|---|" + "---:|" * (len(table.columns) + 1))
    for name, run in table.medians().items():
        cells = [shown(run.get(column.field)) for column in table.columns]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {len(table.runs[name])} |")
    ratios = [comparison(table, column) for column in table.columns]
    if any(value is not None for value in ratios):
        cells = [f"**{value:.1f} times**" if value is not None else "" for value in ratios]
        lines.append("| **against the best peer** | " + " | ".join(cells) + " | |")
    return "\n".join([*lines, "", " ".join(table.notes), ""])


def disturbance(tables: list[Table]) -> Run:
    """How much the machine was disturbed: a fixed loop's time, and the processor time taken by others."""
    runs = [run for table in tables for found in table.runs.values() for run in found]
    spins = [run["spin_ms"] for run in runs]
    steals = [run["steal_percent"] for run in runs]
    return {
        "spin_min_ms": min(spins),
        "spin_median_ms": statistics.median(spins),
        "spin_max_ms": max(spins),
        "steal_median_percent": statistics.median(steals),
        "steal_max_percent": max(steals),
        "runs": len(runs),
    }


def collect(tables: list[Table], *, peers: bool) -> dict[str, Any]:
    """One section as plain data: each run, the medians, the ratios, and where it was measured."""
    section = tables[0].section
    ours, others = MEASURED[section]
    everybody: tuple[Contender, ...] = (ours, *others) if peers else (ours,)
    about: dict[str, str] = {contender.name: versions(contender) for contender in everybody}
    if peers and section == "sqlite":
        about["cron"] = cron_versions()
    machine = describe()
    return {
        "machine": {**machine, "store": tables[0].about or f"SQLite {machine['sqlite']}"},
        "versions": about,
        "settings": {contender.name: contender.setting for contender in everybody},
        "noise": disturbance(tables),
        "measures": {
            table.key: {
                "title": table.title,
                "medians": table.medians(),
                "ratios": {column.field: comparison(table, column) for column in table.columns if column.better},
                "runs": table.runs,
                "notes": table.notes,
            }
            for table in tables
        },
        "markdown": {table.key: markdown(table) for table in tables},
    }


def kept(section: str, *, quick: bool = False) -> Path:
    """Where a section's results are kept."""
    name = "results" if section == "sqlite" else f"results-{section}"
    return CACHE / f"{name}{'-quick' if quick else ''}.json"


def save(results: dict[str, Any], path: Path) -> Path:
    """Keep the results, beside what earlier runs measured of other questions."""
    if path.exists():
        earlier = json.loads(path.read_text(encoding="utf-8"))
        for part in ("measures", "markdown"):
            results[part] = {**earlier.get(part, {}), **results[part]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


ORDER = (
    "burst",
    "nodes",
    "lateness",
    "pickup",
    "recurring",
    "idle",
    "parked",
    "pressure",
    "http",
    "cron",
    "raw",
    "soak",
    "events",
    "steps",
    "start",
)


def page(results: dict[str, Any]) -> str:
    """The figures as they stand in the documentation."""
    machine, disturbed = results["machine"], results["noise"]
    where = (
        f"Machine: {machine['processor']}, {machine['memory']}, {machine['system']}, Python {machine['python']}, "
        f"{machine['store'] if 'store' in machine else 'SQLite ' + machine['sqlite']}."
    )
    noise = (
        f"Noise over {disturbed['runs']:.0f} runs: a fixed Python loop took {disturbed['spin_min_ms']:.0f} to "
        f"{disturbed['spin_max_ms']:.0f} ms (median {disturbed['spin_median_ms']:.0f}); "
        f"{disturbed['steal_median_percent']:.1f} % of the processor was taken by other virtual machines "
        f"(at most {disturbed['steal_max_percent']:.1f} %)."
    )
    lines = [where, "", noise, ""]
    keys = sorted(results["markdown"], key=_place)
    lines += [results["markdown"][key] for key in keys]
    lines += ["### Who was measured, and how", "", "| | version | set up as |", "|---|---|---|"]
    for name, version in results["versions"].items():
        lines.append(f"| {name} | {version} | {results['settings'].get(name, '')} |")
    return "\n".join(lines) + "\n"


def _place(key: str) -> tuple[int, int, str]:
    name, _, size = key.partition("-")
    return (ORDER.index(name), int(size) if size.isdigit() else 0, key)


def publish(results: dict[str, Any], section: str) -> None:
    """Put a section's figures into the documentation, between its two marks."""
    begin, end = MARKS[section]
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}\n\n{page(results)}\n{end}{tail}", encoding="utf-8")
