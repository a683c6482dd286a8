"""Without the extra `mcp`, everything else works, and those who ask for MCP are told what to install."""

from __future__ import annotations

import subprocess
import sys

from tests.api.callers import Callers
from tests.kernel.scene import virtual
from tests.mcp.test_conversation import ENV
from wakeful.surfaces.mcp import endpoint

HIDDEN = "import sys; sys.modules['mcp'] = None; from wakeful.cli import main; sys.exit(main({words!r}))"


def run(folder, *words):
    program = HIDDEN.format(words=["--db", str(folder / "w.db"), *words])
    return subprocess.run(
        [sys.executable, "-c", program], env=ENV, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_command_says_in_one_sentence_what_to_install(tmp_path):
    done = run(tmp_path, "mcp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: wakeful mcp needs the package mcp: pip install 'wakeful[mcp]'.\n"
    assert run(tmp_path, "add", "a", "--every", "1d", "--", "echo").returncode == 0


@virtual
async def test_the_server_says_the_same(scene, monkeypatch):
    def missing():
        raise ModuleNotFoundError(name="mcp")

    monkeypatch.setattr(endpoint, "_server", missing)
    async with scene.scheduler() as scheduler, Callers(scheduler) as callers:
        callers.app.include_router(endpoint.router)
        await callers.add("boss", "operator")
        answer = await callers.ask("boss", "POST /mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert (answer.status_code, "pip install 'wakeful[mcp]'" in answer.text) == (501, True)
        assert (await callers.ask(None, "POST /mcp", {})).status_code == 401
