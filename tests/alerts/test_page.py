"""docs/alerts.md and examples/alerts cannot lie; and alerts through the real server, where secrets are not."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cli.terminal import PATIENCE, Terminal
from tests.cli.test_documentation import first_words
from tests.http.targets import target
from tests.waiting import ended, eventually
from wakeful.domains.alerts.configuration import AlertsSection
from wakeful.kernel.engine.alerts import MEANINGS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "alerts"
PLANTED = "planted-secret-path"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_kind_and_setting_is_on_the_page():
    table = PAGE.split("## Kinds")[1].split("\n- ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    assert listed == MEANINGS.keys() - {"no_stamps"}
    settings = yaml.safe_load(blocks("yaml")[0])["alerts"]
    assert settings.keys() == AlertsSection.model_fields.keys()
    defaults = AlertsSection()
    shown = AlertsSection.model_validate({**settings, "to": None, "dead_man_url": None})
    assert shown == defaults


def test_the_commands_do_what_is_shown(tmp_path):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(blocks("yaml")[0])
    steps = re.findall(r"\$ (wakeful .+)\n((?:[^$].*\n)*)", blocks("console")[0])
    assert len(steps) == 6
    for line, shown in steps:
        answer = terminal.ask(*shlex.split(line)[1:])
        assert answer.code == (1 if line == "wakeful run upload" else 0), answer.err
        assert set(first_words(shown)) <= set(first_words(answer.out) + first_words(answer.err)), line


def test_the_program_runs_as_printed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks("python")[0]],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout == "files: failing\n", done.stderr


class House(Terminal):
    """The example, served, with a dead man's URL."""

    def __init__(self, folder, site):
        super().__init__(folder)
        for path in EXAMPLE.iterdir():
            shutil.copy(path, folder / path.name)
        text = (folder / "wakeful.yaml").read_text()
        address = f"{site.url}/ok/{PLANTED}"
        text = text.replace(
            "alerts:\n", f"server: {{public_url: 'https://jobs.example.org'}}\nalerts:\n  dead_man_url: {address}\n"
        )
        (folder / "wakeful.yaml").write_text(text)
        self.process = self.start("serve", "--port", "0", "--config", "wakeful.yaml")
        url = re.search(r"http://\S+:\d+", self.process.until("listening on"))[0]
        token = self.ask("token", "create", "ops", "--role", "operator").out.strip()
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE, trust_env=False
        )

    def run_job(self, name):
        return self.client.post(f"/api/jobs/{name}/run").json()["id"]

    def until(self, found):
        """The first answer that is something."""
        return eventually(found, bool)

    def lines(self):
        path = self.folder / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def site():
    with target() as made:
        yield made


@pytest.fixture(scope="module")
def house(site, tmp_path_factory):
    made = House(tmp_path_factory.mktemp("house"), site)
    yield made
    made.client.close()
    made.close()


@pytest.fixture(scope="module")
def line(house):
    """What the program was told after a job failed twice."""
    for _ in range(2):
        ended(house.client, house.run_job("backup"))
    return house.until(lambda: [one for one in house.lines() if one["job"] == "backup"])[0]


@pytest.mark.promise("X5", "X20")
def test_a_program_gets_the_alert_as_json_with_enough_to_act_on(house, line):
    assert (line["kind"], line["title"]) == ("alert", "backup: failing")
    for part in (
        "backup has failed 2 times in a row; the last: exited with code 3: no space left",
        "It runs: sh -c",
        "It ran on ",
        "Failing since ",
        "Last lines of output:\ncopying",
        "Next: it does not start again by itself.",
        "Look closer: wakeful explain backup",
        f"https://jobs.example.org/runs/{line['run'] or line['alert']['run']}",
    ):
        assert part in line["text"]
    alert = line["alert"]
    assert (alert["kind"], alert["job"], alert["event"]) == ("failing", "backup", "opened")
    (listed,) = [one for one in house.client.get("/api/alerts").json()["items"] if one["id"] == alert["id"]]
    assert (listed["message"], listed["opened_at"]) == (alert["message"], alert["opened_at"])
    assert set(json.loads(blocks("json")[0])) == alert.keys()


@pytest.mark.promise("X5")
def test_a_run_that_waits_for_approval_is_an_alert_until_it_is_answered(house):
    run = house.run_job("deploy")
    (line,) = house.until(lambda: [one for one in house.lines() if one["run"] == run])
    assert line["alert"]["kind"] == "approval"
    assert house.client.post(f"/api/runs/{run}/approve", json={}).status_code in (200, 201, 202)
    house.until(lambda: [one for one in house.lines() if one["run"] == run and one["alert"]["event"] == "closed"])


def test_alerts_are_shown_acknowledged_and_snoozed_over_http(house, line):
    path = f"/api/alerts/{line['alert']['id']}"
    alert = house.client.get(path).json()
    assert alert in house.client.get("/api/alerts").json()["items"]
    assert house.client.post(f"{path}/ack").json()["acked_at"] is not None
    snoozed = house.client.post(f"{path}/snooze", json={"for": "2h"}).json()
    assert snoozed["snoozed_until"] > alert["opened_at"]
    assert house.client.post(f"{path}/snooze", json={"for": "soon"}).status_code == 400
    assert house.client.post(f"{path}/snooze", json={}).status_code == 422
    assert house.client.get("/api/alerts/alr_0000000000000").status_code == 404
    found = house.client.post("/api/alerts:snooze", json={"job": "backup", "for": "1h"}).json()
    assert [one["id"] for one in found["items"]] == [alert["id"]]
    assert house.client.post("/api/alerts:snooze", json={"job": "nobody", "for": "1h"}).status_code == 404


@pytest.mark.promise("X5")
def test_the_dead_mans_url_was_called_and_is_written_nowhere(house, site):
    calls = house.until(lambda: [one for one in site.seen if PLANTED in one["path"]])
    assert calls[0]["method"] == "POST"
    stored = b"".join((house.folder / name).read_bytes() for name in ("alerts.db", "alerts.db-wal"))
    assert PLANTED.encode() not in stored
    for path in ("/api/alerts?open=false", "/api/deliveries", "/api/stats", "/api/connectors", "/api/jobs"):
        assert PLANTED not in house.client.get(path).text
    log = "".join(path.read_text(errors="replace") for path in house.folder.glob("*.jsonl"))
    assert PLANTED not in log
