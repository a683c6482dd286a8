"""Over HTTP: pages of a long list of jobs, on a quiet server and while a burst of jobs runs in it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.contenders import ROOT, WAKEFUL, environment
from bench.figures import Run, spread
from bench.http_side import FOLDER
from bench.measures import Column, Plan, Table, interleave

PAGE = "/api/jobs?limit=50"
CLIENTS = 2
READY_S = 60.0


class Answering(NamedTuple):
    """A server that answers: where, and to whom."""

    port: int
    token: str
    pid: int


@contextmanager
def serving(folder: Path) -> Iterator[Answering]:
    """`wakeful serve` on the folder's store, with a home of its own."""
    environ = {**environment(), FOLDER: str(folder), "HOME": str(folder), "BENCH_MARKS": str(folder / "marks.log")}
    command = [sys.executable, "-m", "wakeful.cli", "serve", "--app", "bench.http_side:scheduler", "--port", "0"]
    said = folder / "serve.log"
    with said.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=out, start_new_session=True)
    try:
        end = time.time() + READY_S
        while (found := re.search(r"http://127\.0\.0\.1:(\d+)", said.read_text(encoding="utf-8"))) is None:
            assert process.poll() is None and time.time() < end, said.read_text(encoding="utf-8")[-800:]  # noqa: PT018
            time.sleep(0.05)
        token = re.search(r"the admin token is in (\S+)", said.read_text(encoding="utf-8"))
        assert token is not None
        yield Answering(int(found[1]), Path(token[1]).read_text(encoding="ascii").strip(), process.pid)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def asking(server: Answering, folder: Path, seconds: float) -> list[subprocess.Popen[str]]:
    """Clients in processes of their own, each with one connection, for so long."""
    asked = {"port": server.port, "token": server.token, "path": PAGE, "stop": str(folder / "stop")}
    text = json.dumps({**asked, "until": time.time() + seconds})
    command = [sys.executable, "-m", "bench.http_side", text]
    return [
        subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
        for _ in range(CLIENTS)
    ]


def answered(clients: list[subprocess.Popen[str]]) -> list[tuple[float, float]]:
    """What all of them saw, in the order of time."""
    found = [tuple(one) for client in clients for one in json.loads(client.communicate(timeout=180)[0])]
    return sorted(found)


def quiet(count: int, seconds: float, folder: Path) -> Run:
    """Pages per second, and how long one takes, with nothing else to do; the first tenth warms up."""
    WAKEFUL.ask("recur", folder=str(folder), count=count)
    with serving(folder) as server:
        seen = answered(asking(server, folder, seconds))
    begin = seen[0][0] + (seen[-1][0] - seen[0][0]) / 10
    counted = [one for one in seen if one[0] >= begin]
    took = [took * 1000 for _, took in counted]
    return {"pages_per_s": len(took) / (counted[-1][0] - begin), **spread(took), "pages": len(took)}


def busy(count: int, burst: int, folder: Path) -> Run:
    """The same between the first start of a burst and the last."""
    WAKEFUL.ask("recur", folder=str(folder), count=count)
    marks = folder / "marks.log"
    marks.write_bytes(b"")
    with serving(folder) as server:
        WAKEFUL.ask("store", folder=str(folder), count=burst, first=time.time() + 4)
        clients = asking(server, folder, 120)
        end = time.time() + 120
        while marks.read_bytes().count(b"\n") < burst:
            assert time.time() < end, "the burst did not end"
            time.sleep(0.02)
        (folder / "stop").touch()
        seen = answered(clients)
    starts = [float(line.split()[2]) for line in marks.read_text(encoding="ascii").splitlines()]
    first, last = min(starts), max(starts)
    took = [took * 1000 for began, took in seen if began + took >= first and began <= last]
    spent = last - first
    return {"pages_per_s": len(took) / spent, **spread(took), "pages": len(took), "drain_per_s": burst / spent}


def measure(plan: Plan) -> list[Table]:
    count, seconds, burst = (5_000, 3.0, 2_000) if plan.quick else (100_000, 15.0, 5_000)
    table = Table(
        "http",
        f"Pages of 50 of {count:,} jobs over HTTP, asked by {CLIENTS} clients",
        [
            Column("pages_per_s", "pages /s"),
            Column("p50_ms", "p50 ms"),
            Column("p99_ms", "p99 ms"),
            Column("max_ms", "max ms"),
            Column("pages", "pages"),
            Column("drain_per_s", "drain /s"),
        ],
        notes=[
            "`GET /api/jobs?limit=50` with a token, one request after the other on each client's own connection.",
            "Clients are processes on the same machine: they have their share of its processors.",
            f"Burst: {burst:,} jobs due at once, run by the same process; pages between the first start and the last.",
            "A burst is over in less than a second: its p99 is the slowest of some sixty pages.",
        ],
        ours="Wakeful, quiet",
        peers_in=(),
    )
    entries = [("Wakeful, quiet", partial(quiet, count, seconds)), ("Wakeful, in a burst", partial(busy, count, burst))]
    interleave(plan, table, entries)
    return [table]
