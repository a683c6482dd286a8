"""docs/http.md cannot lie: every line of its walk is typed into a shell beside a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.session_server import SessionServer
from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal
from wakeful import Scheduler
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.description import describe

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
STEPS = [
    (command, shown.strip())
    for block in BLOCKS
    for command, shown in re.findall(r"^\$ ([^\n]+)\n((?:(?!\$ )[^\n]*\n)*)", block, re.MULTILINE)
]
[YAML] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where the `wakeful` of these tests is
#: `/api/docs` has them; tests/delivery/test_server.py walks deliveries, tests/agents/test_served_agents.py agents,
#: test_limits.py limits, test_killed_hooks.py requests, test_chat_schedules.py messages.
NOT_WALKED = (
    "/api/alerts",
    "/api/nodes",
    "/api/stats",
    "/api/deliveries",
    "/api/connectors",
    "/api/agents",
    "/api/limits",
    "/api/messages",
    "/api/requests",
    "/api/work",
    "/api/jobs/{ref}/rotate-key",
)
VARIES = [
    (r"(run|job|act)_[0-9a-z]{13}", "ID"),
    (r"\d{4}-\d\d-\d\dT(\d\d:\d\d:)\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
]


def steady(text):
    """The text without what is different on each day."""
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text)
    return text.strip()


@pytest.mark.promise("C1")
def test_the_walk_goes_as_it_is_written(tmp_path):
    with SessionServer() as sessions:
        terminal = Terminal(tmp_path)
        assert "http://127.0.0.1:3000" in YAML
        (tmp_path / "wakeful.yaml").write_text(YAML.replace("http://127.0.0.1:3000", sessions.url))
        try:
            server = Server(terminal)
            typed = [command.replace("http://127.0.0.1:7878", server.url) for command, _ in STEPS]
            script = "\n".join(f"echo '@@{number}'\n{command}" for number, command in enumerate(typed))
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=tmp_path,
                env={**terminal.env, "PATH": PATH},
                capture_output=True,
                text=True,
                timeout=PATIENCE * 2,
                check=False,
            )
        finally:
            terminal.close()
    assert done.stderr == ""
    said = re.split(r"@@\d+\n", done.stdout)[1:]
    assert len(said) == len(STEPS) > 12
    for (command, shown), answer in zip(STEPS, said, strict=True):
        assert steady(answer) == steady(shown), command


@pytest.mark.promise("C1")
def test_every_endpoint_of_the_document_is_walked():
    asked = [re.search(r"(?:-X (\w+) )?\"?\$api(/[^\s\"?]*)", command) for command, _ in STEPS]
    sent = {(m[1] or ("POST" if " -d " in m.string else "GET"), m[2]) for m in asked if m is not None}
    document = describe(create_app(Scheduler("sqlite:///:memory:"), ServerSettings()))["paths"]
    for path, operations in document.items():
        if path.startswith("/api/") and not path.startswith(NOT_WALKED):
            pattern = re.sub(r"\{\w+\}", r"[\\w$:-]+", path.removeprefix("/api"))
            for method in operations:
                assert any(m == method.upper() and re.fullmatch(pattern, p) for m, p in sent), (method, path)
