"""Both ends of the HTTP measure: the scheduler that `wakeful serve --app` serves, and a client that keeps asking it."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

from bench.contenders.contender import ADDRESS, mark
from wakeful import Run, Scheduler

FOLDER = "BENCH_FOLDER"


def scheduler() -> Scheduler:
    """The store of this measurement, and the job everybody is measured with."""
    folder = Path(os.environ[FOLDER])
    named = folder / ADDRESS
    made = Scheduler(named.read_text(encoding="utf-8") if named.exists() else f"sqlite:///{folder}/wakeful.db")

    @made.on_job_due("mark")
    async def run_mark(run: Run) -> None:
        mark(*run.payload)

    @made.on_job_due("tick")
    async def tick(run: Run) -> None:
        assert run.slot is not None
        mark(run.payload, run.slot.timestamp())

    return made


def ask(
    port: int, token: str, path: str, until: float, stop: Path, *, accept: str = "application/json"
) -> list[tuple[float, float]]:
    """One request after the other on one connection: when each began, and how long its answer took."""
    about = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n"
    head = f"GET {path} HTTP/1.1\r\n{about}\r\n".encode()
    took: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, connection.makefile("rb") as answers:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.time() < until and not stop.exists():
            began = time.time()
            connection.sendall(head)
            status, length = answers.readline(), 0
            assert b" 200 " in status, status
            while (line := answers.readline()) != b"\r\n":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            body = answers.read(length)
            took.append((began, time.time() - began))
            assert len(body) == length > 0
    return took


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(ask(asked["port"], asked["token"], asked["path"], asked["until"], Path(asked["stop"]))))
