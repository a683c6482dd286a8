"""The sample domain, registered by one line: all its parts through the real server and command line, on both stores."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal
from tests.store.postgres_server import postgres_url
from tests.waiting import ended

ROOT = Path(__file__).parents[2]


class PostOffice(Terminal):
    """`wakeful` with the sample domain, on a store of its own."""

    module = "tests.sample.wakeful_with_letters"

    def __init__(self, folder, db):
        super().__init__(folder)
        self.clients = []
        self.env |= {"PYTHONPATH": str(ROOT), "WAKEFUL_DB": db, "XDG_STATE_HOME": str(folder)}
        (folder / "wakeful.yaml").write_text("letters: {stamps: 3}\nlimits: {max_running: 1}\n")

    def open(self):
        """A server, and an admin's client."""
        process = self.start("serve", "--port", "0", "--config", "wakeful.yaml")
        url = re.search(r"http://\S+:\d+", process.until("listening on"))[0]
        self.client = self.client_of("admin", url)
        return process

    def client_of(self, role, url):
        token = self("token", "create", f"{role}-{len(self._opened)}", "--role", role).out.strip()
        headers = {"Authorization": f"Bearer {token}"}
        self.clients.append(httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False))
        return self.clients[-1]

    def job(self, name, **fields):
        body = {"name": name, "kind": "letter", "trigger": {"type": "manual"}, **fields}
        return self.client.post("/api/jobs", json=body)

    def run(self, name):
        """The run once it has ended."""
        run_id = self.client.post(f"/api/jobs/{name}/run").json()["id"]
        return ended(self.client, run_id)


@pytest.fixture(params=["sqlite", "postgres"])
def office(request, tmp_path):
    db = postgres_url() if request.param == "postgres" else f"sqlite:///{tmp_path}/letters.db"
    office = PostOffice(tmp_path, db)
    yield office
    office.close()
    for client in office.clients:
        client.close()


def test_every_part_of_a_domain_works_once_it_is_registered(office):
    office.open()
    client = office.client
    # A payload is checked when it is written, no matter who writes it.
    assert office.job("bad", payload={"no": "address"}).json()["error"] == 'A letter needs an address: {"to": "Ada"}.'
    assert office.job("ada", payload={"to": "Ada"}).status_code == 201
    changed = client.patch("/api/jobs/ada", json={"payload": {}})
    assert (changed.status_code, changed.json()["code"]) == (400, "invalid_job")
    assert client.post("/api/jobs/ada/run", json={"payload": {"to": 5}}).status_code == 400
    # Without stamps nothing is admitted: its reason is shown in the domain's own words, and there is one alert.
    refused = office.run("ada")
    assert (refused["outcome"], refused["error"]) == ("cancelled", "no stamps are left")
    explained = client.get("/api/jobs/ada/explain").json()
    assert any("there were no stamps" in sentence for sentence in explained["sentences"])
    assert [alert["kind"] for alert in client.get("/api/alerts").json()["items"]] == ["no_stamps"]
    # The command line has its commands, and writes to its tables.
    assert office("letters", "stamps", "--buy", "2").out == "2 stamps\n"
    # A stamp is taken with the claim, and what the hook adds reaches the handler.
    assert office.run("ada")["output"] == {"to": "Ada", "left": 1}
    assert client.get("/api/alerts").json()["items"] == []
    # A run that fails gives its stamp back in the transaction that ends it.
    assert office.job("nobody", payload={"to": "nobody"}).status_code == 201
    assert office.run("nobody")["outcome"] == "error"
    assert client.get("/api/letters").json() == {"letters": 2, "stamps": 1}
    assert office("letters", "list").out.splitlines() == ["arrived", "returned"]
    assert "letters" in client.get("/api/openapi.json").text
    # Events have their names and ids.
    with client.stream("GET", "/api/events", params={"stream": "letter", "last_event_id": "0"}) as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("data:"))
        assert [re.search(r"ltr_\w{13}", next(lines)) is not None for _ in range(2)] == [True, True]


def test_kinds_of_a_domain_say_who_may_write_them_and_what_is_shown(office):
    office.open()
    assert office.job("ada", payload={"to": "Ada"}).status_code == 201
    with office.client_of("operator", str(office.client.base_url)) as operator:
        body = {"name": "eve", "kind": "letter", "trigger": {"type": "manual"}, "payload": {"to": "Eve"}}
        answer = operator.post("/api/jobs", json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "Only an admin may write jobs of kind letter.")
        assert operator.get("/api/jobs/ada").json()["payload"] == {"to": "***"}
    assert office.client.get("/api/jobs/ada").json()["payload"] == {"to": "Ada"}


def test_an_internal_kind_is_hidden_and_not_counted_by_max_running(office):
    office.open()
    assert office.job("shop", kind="post").status_code == 201
    names = [job["name"] for job in office.client.get("/api/jobs").json()["items"]]
    assert names == []
    shown = office.client.get("/api/jobs", params={"internal": "true"}).json()["items"]
    assert [job["name"] for job in shown] == ["shop"]
    assert office("list", "--json").json == []
    assert [job["name"] for job in office("list", "--json", "--internal").json] == ["shop"]
    assert office.run("shop")["output"] == 3, "its section of wakeful.yaml was handed to it"


def test_a_domains_tables_are_copied_and_its_section_checked(office, tmp_path):
    office.open()
    office("letters", "stamps", "--buy", "1")
    assert office.job("ada", payload={"to": "Ada"}).status_code == 201
    assert office.run("ada")["outcome"] == "success"
    office.close()
    there = tmp_path / "copy.db"
    assert office("copy", office.env["WAKEFUL_DB"], f"sqlite:///{there}").code == 0
    assert office("letters", "list", "--db", f"sqlite:///{there}").out == "arrived\n"
    again = office("copy", office.env["WAKEFUL_DB"], f"sqlite:///{there}")
    assert again.code != 0
    assert "letter" in again.err
    (tmp_path / "wakeful.yaml").write_text("letters: {stamp: 3}\n")
    checked = office("check", "wakeful.yaml")
    assert checked.code == 1
    assert "Did you mean 'stamps'?" in checked.out + checked.err


def test_jobs_of_a_kind_are_written_with_its_fields_on_the_command_line_and_in_a_file(office):
    added = office("add", "card", "--every", "1d", "--letter", "Ada", "--express", "--json").json
    assert (added["kind"], added["payload"]) == ("letter", {"to": "Ada", "express": True})
    edited = office("edit", "card", "--letter", "Ben", "--json").json
    assert edited["payload"] == {"to": "Ben", "express": True}
    assert office("edit", "card", "--express", "none", "--json").code == 2
    assert office("edit", "card", "--no-express", "--json").json["payload"] == {"to": "Ben", "express": False}
    refused = office("add", "both", "--every", "1d", "--letter", "Ada", "--", "true")
    assert (refused.code, "--letter and a command after -- are two things to do" in refused.err) == (2, True)
    office("add", "program", "--every", "1d", "--", "true")
    refused = office("edit", "program", "--letter", "Ada")
    assert refused.code != 0
    assert "program is of kind 'command': --letter is for jobs of kind 'letter'." in refused.err
    lone = office("add", "lone", "--every", "1d", "--express")
    assert (lone.code, 'A letter needs an address: {"to": "Ada"}.' in lone.err) == (2, True)
    (office.folder / "wakeful.yaml").write_text("jobs: {filed: {every: 1d, letter: Ada, express: true}}\n")
    assert office("apply").code == 0
    assert office("show", "filed", "--json").json["payload"] == added["payload"]
