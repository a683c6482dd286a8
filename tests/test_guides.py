"""The guides for Python cannot lie: their programs run as printed and print what is printed."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
import types
from pathlib import Path

import httpx
import pytest
import uvicorn

import wakeful
from tools.reference import PAGE, render

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def programs(page):
    return [pair for pair in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")) if "FastAPI" not in pair[0]]


def execute(program):
    """Run a program as a module of its own; what it printed."""
    module = types.ModuleType("guide")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "<guide>", "exec"), module.__dict__)  # noqa: S102 - our own guides
    return printed.getvalue()


@pytest.mark.promise("H16", "K17", "X12")
@pytest.mark.parametrize(
    ("program", "promised"),
    [
        pytest.param(*pair, id=f"{page}-{number}")
        for page in ("python.md", "scale.md", "steps.md", "testing.md", "workflows.md")
        for number, pair in enumerate(programs(page), 1)
    ],
)
def test_every_program_of_a_guide_prints_what_it_says(program, promised, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pattern = re.escape(promised).replace(re.escape("..."), ".*")
    printed = execute(program)
    assert re.fullmatch(pattern, printed), printed


def test_the_fastapi_recipe_starts_and_stops_the_scheduler_with_the_app(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [recipe] = [
        code for code, _ in BLOCK.findall((DOCS / "python.md").read_text(encoding="utf-8")) if "FastAPI" in code
    ]
    module = types.ModuleType("app")
    monkeypatch.setitem(sys.modules, "app", module)  # where FastAPI looks up annotations
    exec(compile(recipe, "app.py", "exec"), module.__dict__)  # noqa: S102 - our own guide
    server = uvicorn.Server(uvicorn.Config(module.app, port=0, log_level="warning", lifespan="on"))
    started = threading.Event()
    startup = server.startup

    async def start_up(sockets=None):
        await startup(sockets)
        started.set()

    server.startup = start_up
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert started.wait(120)
        assert module.scheduler.is_running()
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            run_id = client.post("/refresh").json()["run"]
            while (shown := client.get(f"/runs/{run_id}").json())["status"] != "done":
                pass
            assert (shown["outcome"], shown["output"]) == ("success", {"reason": "manual"})
            assert client.get("/runs/nonsense").status_code == 404
    finally:
        server.should_exit = True
        thread.join(120)
    assert not thread.is_alive()
    assert module.scheduler.get_status() == "stopped"


@pytest.mark.parametrize("page", ["python.md", "testing.md"])
def test_the_links_of_a_guide_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", (DOCS / page).read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


def test_the_reference_is_what_the_docstrings_say():
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/reference.md is out of date: run make reference"


def test_the_reference_has_every_public_name():
    sections = set(re.findall(r"^### (\w+)$", render(), re.MULTILINE)) | set(
        re.findall(r"^\| `(\w+)` \|", render(), re.MULTILINE)
    )
    assert [name for name in wakeful.__all__ if name not in sections | {"sync"}] == []
