"""Every button of every page: the API takes what it sends, from those alone who may."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually
from tests.web.conftest import Visitor
from tests.web.fleet import CONFIG, FLOW
from tests.workflows.test_surfaces import WORKFLOW, publish, quiet

pytestmark = pytest.mark.promise("X28")
MORE = """\
  gate: {every: 24h, command: ["true"], approval: true}
  slow: {every: 6h, command: [sleep, "600"]}
  stopped: {every: 6h, command: ["false"], max_errors: 1, retry: 0}
"""
PAGER = """\
connectors:
  pager: {type: command, argv: ["false"], attempts: 1}
"""
PAGES = ("/", "/jobs", "/jobs/hello", "/jobs/paused", "/jobs/stopped", "/agents/reporter", "/agents/watcher",
         "/workflows", "/workflows/invoices", "/workflows/shop", "/deliveries", "/alerts", "/nodes",
         "/more")  # fmt: skip


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A server on which there is something to press on every page."""
    terminal = Terminal(tmp_path_factory.mktemp("busy"))
    config = CONFIG.replace("connectors:\n", PAGER).replace("[flow.py]", "[flow.py, 'shop.py:workflow']") + MORE
    Path(terminal.folder, "wakeful.yaml").write_text(config.replace("deliver: phone}", "deliver: pager}"))
    Path(terminal.folder, "flow.py").write_text(FLOW)
    asking = WORKFLOW.replace('prepared.data == ["cut"]', 'prepared.data[0][:3] == "cut"')
    Path(terminal.folder, "shop.py").write_text(
        asking.replace('prepared.data == ["ask"]', 'prepared.data[0][:3] == "ask"')
    )
    server = Server(terminal, "--config", "wakeful.yaml")
    with server.client(server.token) as client:
        for job in ("hello", "stopped"):
            server.terminal.ask("run", job, "--wait")
        client.post("/api/jobs", json={"name": "paused", "every": "6h", "command": ["true"]})
        client.post("/api/jobs/paused/pause", json={})
        for job in ("asks", "gate", "slow"):
            assert client.post(f"/api/jobs/{job}/run", json={}).status_code == 202
        client.post("/api/agents/watcher/pause", json={})
        client.post("/api/workflows/invoices/pause", json={})
        eventually(lambda: client.get("/api/deliveries?status=failed").json()["items"], bool)
        for message in ("ask",):
            ask(client, message, "approval")
        eventually(lambda: client.get("/api/runs?job=gate").json()["items"][0]["status"], lambda one: one == "waiting")
    yield server
    terminal.close()


def ask(client, message: str, kind: str) -> dict:
    """The workflow once it asks about that event."""
    eventually(lambda: client.get("/api/workflows/shop").json(), quiet)
    publish(client, message)
    return eventually(
        lambda: client.get("/api/workflows/shop").json()["issue"], lambda issue: issue and issue["kind"] == kind
    )


def calm(client) -> None:
    """The workflow as it is when nothing asks: the tests that share this server come in any order."""

    def still() -> bool:
        issue = client.get("/api/workflows/shop").json()["issue"]
        if issue is not None and "approve" in issue["actions"]:
            client.post("/api/workflows/shop/approve", json={"run": issue["run"]})
        elif issue is not None and issue["kind"] == "reconciliation":
            client.post("/api/workflows/shop/settle", json={"run": issue["run"], "verdict": "skip"})
        client.post("/api/workflows/shop/resume", json={})
        return issue is None

    eventually(still, bool)


def buttons(person: Visitor, server: Server) -> dict[str, str]:
    """What buttons of all pages send, by method and address: their bodies."""
    runs = [re.search(r'href="(/runs/run_\w+)"', person.get(f"/runs?job={job}").text)[1]
            for job in ("gate", "slow", "stopped")]  # fmt: skip
    sent = re.search(r'href="(/deliveries/\w+)"', person.get("/deliveries?status=failed").text)[1]
    found: dict[str, str] = {}
    for path in (*PAGES, *runs, sent):
        shown = person.get(path)
        assert shown.status_code == 200, path
        for button in re.findall(r"<button[^>]*data-do=[^>]*>", shown.text):
            given = {
                name: html.unescape(a or b)
                for name, a, b in re.findall(r"""data-(\w+)=(?:"([^"]*)"|'([^']*)')""", button)
            }
            found[given["do"]] = json.dumps({given["as"]: "a word"}) if "as" in given else given.get("body", "")
    return found


def press(person: Visitor, what: str, body: str, **headers: str) -> int:
    method, path = what.split(" ")
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body else {}), **headers}
    return person.client.request(method, path, content=body or None, headers=headers).status_code


@pytest.fixture
def visit(busy):
    """`visit("viewer")`: somebody who is signed in with that role; `visit()`: somebody who is not."""
    opened: list[Visitor] = []

    def get(role: str | None = None) -> Visitor:
        opened.append(Visitor(busy, role))
        return opened[-1]

    yield get
    for one in opened:
        one.client.close()


def test_every_button_is_refused_to_those_who_may_not_and_taken_from_those_who_may(busy, visit):
    admin, viewer, stranger = visit("admin"), visit("viewer"), visit()
    found = buttons(admin, busy)
    kinds = {re.sub(r"(?<=/)(?:\w+_1\w+|[\w.]+)(?=/\w|$)", "*", one.replace("/api", "")) for one in found}
    assert buttons(viewer, busy) == {}
    assert len(found) > 20, kinds
    for what, body in found.items():
        assert press(viewer, what, body) == 403, what
        assert press(stranger, what, body) == 401, what
        assert press(admin, what, body, Origin="http://evil.example") == 403, what
        assert press(admin, what, body, **{"Sec-Fetch-Site": "cross-site"}) == 403, what
    order = sorted(found, key=lambda one: (one.startswith("DELETE"), "ack" in one, one))
    for what in order:
        status = press(admin, what, found[what])
        assert status in (200, 202, 204, 409), (what, found[what], status)
    taken = {one.rpartition("/")[2] for one in found}
    assert {"run", "pause", "resume", "approve", "reject", "cancel", "retry", "ack", "requeue", "deliveries:requeue",
            "undo", "wake", "events", "reset-session"} <= taken  # fmt: skip


@pytest.mark.parametrize("answer", [
    ("cut-2", "reconciliation", "It happened", "happened"),
    ("cut-3", "reconciliation", "Skip it", "skip"),
    ("ask-2", "approval", "Approve", None),
    ("cut-1", "reconciliation", "It did not happen", "did_not_happen"),  # it is tried again, and asks again
])  # fmt: skip
def test_a_workflow_that_waits_is_answered_from_its_page(busy, visit, answer):
    message, kind, text, way = answer
    operator = visit("operator")
    with busy.client(busy.token) as client:
        calm(client)
        issue = ask(client, message, kind)
        shown = operator.get("/workflows/shop").text
        assert "waits for you" in shown
        given = re.search(rf'data-do="([^"]+)" data-body=\'([^\']+)\' [^>]*>{text}<', shown)
        assert given is not None
        assert json.loads(given[2]) == {"run": issue["run"], **({"verdict": way} if way else {})}
        assert press(operator, given[1], given[2]) == 200
        eventually(lambda: client.get("/api/workflows/shop").json()["issue"], lambda now: now != issue)
