"""Deliveries through the real server, its HTTP interface and the command line; and where secrets are not."""

from __future__ import annotations

import json
import re
import sqlite3

import httpx
import pytest

from tests.api.sse import reading, take
from tests.cli.terminal import PATIENCE, Terminal
from tests.http.targets import target
from tests.waiting import ended, eventually

SECRET = "whsec_cGxhbnRlZC1zZWNyZXQtb2YtMjQtYnl0ZXM="  # noqa: S105 - planted
#: Everything that is planted is found by this word, but for the secret, which is stored as base64.
PLANTED = ("planted", "cGxhbnRlZC1zZWNyZXQt")
#: Commands that speak of connectors and of what became of messages.
LOOKING = (
    "delivery list", "delivery list --json", "connector list", "connector list --json", "connector test bad",
    "connector test mail", "connector test bot", "alert list --json", "runs --json", "show delivery.bad --json",
    "explain delivery.bad", "list --internal --json", "status", "doctor", "check", "plan", "plan --json",
)  # fmt: skip


class House(Terminal):
    """A server with connectors."""

    def __init__(self, folder, site):
        super().__init__(folder)
        self.env |= {"PLANTED": "planted-token"}
        host = site.url.partition("://")[2]
        (folder / "wakeful.yaml").write_text(
            f"""
store: sqlite:///t.db
connectors:
  disk: {{type: file, path: out.jsonl}}
  hook:
    {{type: webhook, url: "{site.url}/ok?token=${{PLANTED}}", secret: "{SECRET}", headers: {{X-Key: planted-header}}}}
  bad:
    type: webhook
    url: "http://user:planted-password@{host}/repeat/planted-path?key=planted-key"
    headers: {{X-Key: planted-header}}
  gone: {{type: webhook, url: "{site.url}/status/410"}}
  mail: {{url: "json://user:planted-mail@{host}/repeat/planted-topic?+Authorization=Bearer%20planted-bearer"}}
  bot: {{type: telegram, token: "123456:planted-bot-token", allow_from: [42], base_url: "{site.url}/repeat"}}
alerts: {{to: disk, dead_man_url: "{site.url}/repeat/planted-dead-man"}}
jobs:
  greet: {{manual: true, command: ["echo", "hello"], deliver: disk}}
  fails: {{manual: true, command: ["sh", "-c", "echo boom >&2; exit 3"], deliver: {{to: hook, on: failure}}}}
  refused: {{manual: true, command: ["echo", "x"], deliver: gone}}
"""
        )
        self.process = self.start("serve", "--port", "0", "--config", "wakeful.yaml")
        url = re.search(r"http://\S+:\d+", self.process.until("listening on"))[0]
        token = self.ask("token", "create", "ops", "--role", "operator").out.strip()
        self.client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE, trust_env=False
        )

    def run_job(self, name):
        run_id = self.client.post(f"/api/jobs/{name}/run").json()["id"]
        return ended(self.client, run_id)

    def until(self, run_id, status):
        """The run's first delivery once it is of that status."""

        def brief():
            (found,) = self.client.get(f"/api/runs/{run_id}").json()["deliveries"]
            return found

        found = eventually(brief, lambda brief: brief["status"] == status)
        return self.client.get(f"/api/deliveries/{found['id']}").json()


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


@pytest.mark.promise("A8")
def test_a_result_reaches_a_file_and_a_failure_a_webhook(house, site):
    run = house.run_job("greet")
    found = house.until(run["id"], "sent")
    assert (found["connector"], found["kind"], found["text"], found["attempts"]) == ("disk", "output", "hello", 1)
    assert [item["ok"] for item in found["log"]] == [True]
    lines = (house.folder / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["job"] for line in lines if json.loads(line)["id"] == found["id"]] == ["greet"]
    run = house.run_job("fails")
    found = house.until(run["id"], "sent")
    (seen,) = [item for item in site.seen if item["path"].startswith("/ok")]
    body = json.loads(seen["body"])
    assert (body["type"], body["data"]["id"], body["data"]["outcome"]) == ("wakeful.output", found["id"], "error")
    assert "exited with code 3" in body["data"]["text"]
    assert "It runs: sh -c" in body["data"]["text"]
    assert f"wakeful logs {run['id']}" in body["data"]["text"]


@pytest.mark.promise("A8")
def test_a_refused_message_fails_at_once_and_is_requeued_by_hand(house):
    run = house.run_job("refused")
    found = house.until(run["id"], "failed")
    assert (found["attempts"], found["last_error"]) == (1, "answered 410: this is 410")
    listed = house.client.get("/api/deliveries", params={"status": "failed", "connector": "gone"}).json()
    assert [item["id"] for item in listed["items"]] == [found["id"]]
    assert listed["next"] is None
    again = house.client.post(f"/api/deliveries/{found['id']}/requeue")
    assert (again.status_code, again.json()["attempts"]) == (200, 0)
    house.until(run["id"], "failed")
    assert house.client.post("/api/deliveries:requeue", json={"status": "failed"}).json() == {"requeued": 1}
    assert house.until(run["id"], "failed")["attempts"] == 1
    shown = house.ask("delivery", "list", "--failed", "--json").json
    assert [item["id"] for item in shown] == [found["id"]]
    assert "answered 410" in house.ask("show", found["id"]).out
    assert f"{found['id']} to gone: failed" in house.ask("show", run["id"]).out
    assert "answered 410" in house.ask("logs", found["id"]).out
    assert "Why: answered 410: this is 410." in house.ask("explain", found["id"]).out
    assert house.ask("cancel", found["id"]).code == 0
    assert house.until(run["id"], "expired")["last_error"] == "a person cancelled it"
    done = house.client.get("/api/actions").json()["items"][0]
    assert (done["what"], done["name"], done["via"], done["undoable"]) == ("cancel_message", found["id"], "cli", False)
    assert "cannot be undone: queue the message again instead" in house.ask("undo", done["id"]).err
    assert "1 message queued again" in house.ask("retry", found["id"]).out
    alerts = house.client.get("/api/alerts").json()["items"]
    assert "delivery_failed" in [alert["kind"] for alert in alerts]


def test_what_is_not_there_and_what_was_sent_are_refused(house):
    run = house.run_job("greet")
    found = house.until(run["id"], "sent")
    assert "is sent: only what waits or failed can be cancelled." in house.ask("cancel", found["id"]).err
    refused = house.client.post(f"/api/deliveries/{found['id']}/requeue")
    assert (refused.status_code, refused.json()["error"]) == (
        409,
        f"{found['id']} is sent: it cannot be queued again.",
    )
    for command in (("retry",), ("delivery", "requeue"), ("cancel",)):
        assert house.ask(*command, found["id"]).code == 4
    for path in ("/api/deliveries/dlv_0000000000000", "/api/deliveries/nonsense"):
        assert house.client.get(path).status_code == 404
    assert house.client.post("/api/connectors/nope/test").status_code == 404
    assert house.client.get("/api/deliveries", params={"status": "lost"}).status_code == 422
    job = {"name": "x", "manual": True, "command": ["echo"], "deliver": {"to": "A B"}}
    assert house.client.post("/api/jobs", json=job).status_code in (400, 403)


def test_a_connector_is_tested_for_real(house):
    tested = house.client.post("/api/connectors/disk/test").json()
    assert (tested["status"], tested["kind"]) == ("sent", "test")
    for name in ("bad", "mail"):
        tested = house.client.post(f"/api/connectors/{name}/test").json()
        assert (tested["status"], tested["attempts"]) == ("failed", 1)
    names = [item["name"] for item in house.client.get("/api/connectors").json()["items"]]
    assert names == ["disk", "hook", "bad", "gone", "mail", "bot"]
    assert house.ask("connector", "test", "disk").out.startswith("disk took the test message dlv_")
    failed = house.ask("connector", "test", "bad")
    assert (failed.code, "did not take the test message: answered 500" in failed.err) == (1, True)
    assert house.ask("connector", "test", "nope").code == 3


def test_a_test_of_an_unknown_connector_makes_no_store(tmp_path):
    terminal = Terminal(tmp_path)
    refused = [terminal.ask("connector", "test", "nope")]
    (tmp_path / "wakeful.yaml").write_text(
        "store: sqlite:///new.db\nconnectors: {disk: {type: file, path: out.jsonl}}\n"
    )
    refused.append(terminal.ask("connector", "test", "nope"))
    assert [(answer.code, answer.out) for answer in refused] == [(3, ""), (3, "")]
    assert "there are disk" in refused[1].err
    assert list(tmp_path.rglob("*.db")) == []


def test_deliver_is_an_option_of_add_and_edit(house):
    house.ask("add", "later", "--every", "1h", "--deliver", "disk", "--", "echo", "x")
    house.ask("edit", "later", "--deliver-on", "change")
    assert house.ask("show", "later", "--json").json["options"]["deliver"] == {"to": "disk", "on": "change"}
    house.ask("edit", "later", "--deliver", "none")
    assert "deliver" not in house.ask("show", "later", "--json").json["options"]
    assert house.ask("add", "worse", "--every", "1h", "--deliver-on", "any", "--", "echo").code == 2


@pytest.mark.promise("A8")
def test_planted_secrets_are_in_no_log_error_answer_export_or_event(house):
    """Last in this file, as it ends the server. Targets repeat what they were sent."""
    for job in ("greet", "fails", "refused"):
        house.run_job(job)
    seen = {}
    for path in (
        *("/api/deliveries", "/api/connectors", "/api/alerts?open=false", "/api/jobs?internal=true", "/api/runs"),
        *("/api/jobs/delivery.bad", "/api/stats", "/openapi.json", "/healthz"),
    ):
        seen[path] = house.client.get(path).text
    for name in ("bad", "mail", "bot"):
        seen[f"test of {name}"] = house.client.post(f"/api/connectors/{name}/test").text
    with reading(house.client, last="0") as events:
        seen["events"] = repr(take(events, 30))
    for line in LOOKING:
        answer = house.ask(*line.split())
        seen[line] = answer.out + answer.err
    house.process.kill()
    ended_as = house.process.ended()
    seen["log"] = ended_as.out + ended_as.err
    assert "listening on" in seen["log"]
    assert house.ask("copy", "t.db", "copy.db").code == 0
    for name in ("t.db", "copy.db"):
        store = sqlite3.connect(house.folder / name)
        seen[name] = "\n".join(store.iterdump())
        store.close()
    seen["out.jsonl"] = (house.folder / "out.jsonl").read_text()
    assert [(where, word) for where, text in seen.items() for word in PLANTED if word in text] == []
    # Each was in use: it failed, and what is kept of that is there to be read.
    assert all(text in seen["log"] for text in ("the dead man's URL at 127.0.0.1", "/repeat/bot***/"))
    assert all(text in seen["t.db"] for text in ("answered 500", "error=500"))
