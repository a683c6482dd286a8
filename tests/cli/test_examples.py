"""Every example does what it says at its end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.waiting import eventually

FOLDER = Path(__file__).resolve().parents[2] / "examples"
BIN = Path(sys.executable).parent


def said(path):
    """The output an example promises, in the comment at its end; None where it promises none."""
    _, found, after = path.read_text(encoding="utf-8").partition("# Output:\n")
    return "".join(line.removeprefix("# ") for line in after.splitlines(keepends=True)) if found else None


EXAMPLES = sorted(path for path in FOLDER.iterdir() if path.suffix in {".py", ".sh"} and said(path) is not None)


def test_every_example_is_run_by_a_test():
    rest = {path.name for path in FOLDER.iterdir() if path.is_file()} - {path.name for path in EXAMPLES}
    assert rest == {"app.py", "workers.py"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_it_says(path, tmp_path):
    program = [sys.executable] if path.suffix == ".py" else ["sh", "-eu"]
    env = {"HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}", "TZ": "UTC"}
    done = subprocess.run(
        [*program, path], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == said(path)


def test_the_example_app_is_served(terminal):
    (terminal.folder / "app.py").write_text((FOLDER / "app.py").read_text(encoding="utf-8"))
    terminal.serve("--app", "app:scheduler")
    answer = terminal("run", "digest", "--wait", "--db", "app.db")
    assert (answer.code, answer.out) == (0, '{\n  "for": "a request"\n}\n')
    jobs = {job["name"]: job for job in terminal.ask("list", "--db", "app.db", "--json").json}
    assert jobs["digest"]["schedule"] == "weekdays at 07:00, Europe/Berlin"
    assert jobs["inbox"]["options"] == {"lanes": {"mailbox": 1}}
    assert {job["source"] for job in jobs.values()} == {"code"}


@pytest.mark.promise("H9")
def test_of_the_workers_of_an_application_one_runs_the_jobs_and_another_takes_over(tmp_path):
    argv = [sys.executable, "-m", "uvicorn", "workers:app", "--app-dir", str(FOLDER), "--workers", "2", "--port", "0"]
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TZ": "UTC"}
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as server:
        try:
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://\S+:\d+", line)))
            seen = {}

            def look():
                """What every worker says, from as many connections as it takes to meet all."""
                with suppress(httpx.TransportError), httpx.Client(base_url=address, trust_env=False) as client:
                    said = client.get("/").json()
                    seen[said["worker"]] = said["status"]
                return sorted(seen.values())

            eventually(look, lambda found: found == ["running", "standby"])
            (engine,) = [worker for worker, status in seen.items() if status == "running"]
            asked = httpx.post(f"{address}/refresh", trust_env=False, timeout=300).json()
            assert (asked["outcome"], asked["output"]["worker"]) == ("success", engine)
            os.kill(engine, signal.SIGKILL)
            seen.clear()
            eventually(look, lambda found: "running" in found)
            assert engine not in [worker for worker, status in seen.items() if status == "running"]
        finally:
            server.send_signal(signal.SIGTERM)
            server.stderr.read()
