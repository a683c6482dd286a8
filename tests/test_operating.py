"""docs/operating.md and docs/releasing.md cannot lie: what they show is run, and what they list is what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml

from tests.api.test_metrics import PROMISED
from tests.cli.terminal import PATIENCE, Terminal
from tests.cli.test_json_log import FIELDS
from tests.test_service import known_options
from tools import packages
from wakeful.domains.delivery import views
from wakeful.kernel.views import census
from wakeful.scheduler import measuring
from wakeful.store import gauges, upgrade_backups

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
RELEASING = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.promise("X11")
def test_the_scrape_of_the_page_shows_figures(tmp_path):
    terminal = Terminal(tmp_path)
    try:
        server = terminal.start("serve", "--port", "0")
        address = re.search(r"http://(\S+:\d+)", server.until("listening on"))[1]
        env = {**terminal.env, "PATH": f"{BIN}:{os.environ['PATH']}"}
        script = "set -euo pipefail\n" + blocks("sh")[0].replace("localhost:7878", address)
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    finally:
        terminal.close()
    assert 'wakeful_jobs{status="idle"} 0.0' in done.stdout


def test_the_table_lists_every_metric_with_its_labels():
    section = PAGE[PAGE.index("### What there is") : PAGE.index("### Grafana")]
    rows = re.findall(r"^\| (`wakeful_[^|]+) \| ([^|]*)\|", section, re.MULTILINE)
    listed = {
        name.removesuffix("_total"): set(re.findall(r"`(\w+)`", labels))
        for names, labels in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert listed == PROMISED


def test_the_numbers_of_the_page_are_those_of_the_code():
    said = [f"more than {census.STEP:,} jobs", f"{measuring.LANES} lanes at most", f"counted up to {gauges.MOST:,}"]
    assert all(text in PAGE for text in said)
    assert gauges.MOST == views.MOST
    assert "three latest copies" in PAGE
    assert upgrade_backups.KEPT == 3


def test_the_files_of_the_page_are_valid(tmp_path):
    terminal = Terminal(tmp_path)
    files = [yaml.safe_load(block) for block in blocks("yaml")]
    ours = [file for file in files if "server" in file]
    assert len(ours) == 2
    for file in ours:
        (tmp_path / "wakeful.yaml").write_text(yaml.safe_dump(file))
        assert terminal.ask("check").code == 0
    [scraping] = [file for file in files if "scrape_configs" in file]
    assert scraping["scrape_configs"][0]["static_configs"]


def test_the_program_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    exec(compile(blocks("python")[0], "<operating>", "exec"), module.__dict__)  # noqa: S102 - our own page
    assert module.scheduler.server_side._wiring.engine.drive.__name__ == "drive"
    assert module.scheduler.server_side._wiring.engine.drive.__module__ == "wakeful.tracing"


def test_the_line_of_the_log_has_the_fields_of_one():
    assert list(json.loads(blocks("json")[0])) == FIELDS


def test_every_command_of_the_page_is_there():
    lines = re.findall(r"^wakeful (.+)$", PAGE, re.MULTILINE) + re.findall(r"`wakeful ([a-z][^`]+)`", PAGE)
    assert len(lines) > 5
    assert all(known_options(line.split()) for line in lines)


@pytest.mark.parametrize("page", [PAGE, RELEASING], ids=["operating", "releasing"])
def test_the_links_of_the_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page):
        assert target.startswith("https:") or (ROOT / "docs" / target).exists(), target


def test_the_checklist_names_commands_that_are_there():
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    known = set(re.findall(r"make ([a-z-]+)", told.stdout))
    assert set(re.findall(r"`make ([a-z-]+)", RELEASING)) <= known
    for module in re.findall(r"python -m (tools\.\w+)", RELEASING):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()


def test_two_builds_of_the_packages_are_the_same_and_say_what_an_index_shows(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    once, again = packages.build(tmp_path / "one"), packages.build(tmp_path / "two")
    assert once == again
    assert sorted(Path(name).suffix for name in once) == [".gz", ".whl"]
    assert [problem for name in once for problem in packages.problems(tmp_path / "one" / name)] == []
