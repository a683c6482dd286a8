"""What agents, workflows, programs and people write is text on every page that shows it, however long and odd it is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.waiting import eventually
from tests.web.browsing import Browsing, settled
from tests.web.conftest import Visitor
from tests.web.test_pages import Reader

pytestmark = pytest.mark.promise("X28")
TEXT = (
    '<script>alert(1)</script>"><img src=http://evil.example onerror=alert(2)>\u202eevil\u061c\x1b[31mred\u200b\u3164😀'
)
PAGES = (
    *("/", "/jobs", "/runs", "/agents", "/agents/liar", "/workflows", "/workflows/tricks", "/deliveries", "/alerts"),
    *("/monitors", "/nodes", "/more", "/jobs/loud", "/jobs/asks", "/jobs/liar.wake", "/find?q=%3Cscript%3E"),
)
CONFIG = """\
connectors:
  phone: {type: file, path: phone.txt}
agents:
  liar: {description: DESCRIPTION, runner: {start: [sh, -c, SAY]}, deliver: phone}
workflows: [tricks.py]
jobs:
  loud: {every: 6h, command: [sh, -c, LOUD], retry: 0, max_errors: 1}
  long: {every: 6h, command: [sh, -c, "head -c 1000000 /dev/zero | tr '\\\\0' x; exit 1"], retry: 0}
  asks: {every: 6h, command: ["true"], approval: true}
"""
WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((one) => one.outerHTML)"""
FLOW = f"""\
from wakeful import Interval, Workflow

workflow = Workflow("tricks")


@workflow.producer(Interval("1h"), publishes=["mail"])
async def poll(ctx, state):
    item = await ctx.register_input("imap", "mail", 1, title={TEXT!r})
    await ctx.publish("mail", message_id=1, payload={{"subject": {TEXT!r}}}, input=item)
    raise RuntimeError({TEXT!r})
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("hostile"))
    say = f"printf '%s' {shlex.quote(TEXT)}"
    config = CONFIG.replace("DESCRIPTION", json.dumps(TEXT, ensure_ascii=False)).replace(
        "SAY", json.dumps(say, ensure_ascii=False)
    )
    config = config.replace("LOUD", json.dumps(f"{say}; printf '\\000'; exit 3", ensure_ascii=False))
    Path(terminal.folder, "wakeful.yaml").write_text(config, encoding="utf-8")
    Path(terminal.folder, "tricks.py").write_text(FLOW, encoding="utf-8")
    server = Server(terminal, "--config", "wakeful.yaml")
    with server.client(server.token) as client:
        for job in ("loud", "long", "asks"):
            assert client.post(f"/api/jobs/{job}/run", json={}).status_code == 202
        client.post("/api/agents/liar/wake", json={})
        client.post("/api/agents/liar/events", json={"text": TEXT})
        eventually(lambda: client.get("/api/deliveries").json()["items"], bool)
        for job in ("loud", "long"):
            eventually(lambda job=job: client.get(f"/api/runs?job={job}").json()["items"][0]["outcome"], bool)
        eventually(lambda: client.get("/api/workflows/tricks").json()["issue"], bool)
        client.post("/api/jobs/asks/pause", json={"note": TEXT})
    yield server
    terminal.close()


@pytest.fixture
def visit(hostile):
    opened: list[Visitor] = []

    def get(role: str) -> Visitor:
        opened.append(Visitor(hostile, role))
        return opened[-1]

    yield get
    for one in opened:
        one.client.close()


def addresses(server: Server) -> list[str]:
    with server.client(server.token) as client:
        runs = [one["id"] for one in client.get("/api/runs?limit=50").json()["items"]]
        sent = [one["id"] for one in client.get("/api/deliveries").json()["items"]]
    return [*PAGES, *(f"/runs/{one}" for one in runs), *(f"/deliveries/{one}" for one in sent)]


def test_on_no_page_does_it_become_markup_or_turn_the_text_around(hostile, visit):
    shown, person = 0, visit("admin")
    for path in addresses(hostile):
        answer = person.get(path)
        assert answer.status_code == 200, path
        shown += "alert(1)" in answer.text
        page = Reader(answer.text)
        assert not {"img", "iframe", "object"} & {tag for tag, _ in page.tags}, path
        sources = [about.get("src") for tag, about in page.tags if tag == "script"]
        assert all(source and source.startswith("/static/") for source in sources), path
        assert not [name for _, about in page.tags for name in about if name.startswith("on")], path
        assert re.findall("[\u202e\u061c\u200b\u3164\x1b\x00]", answer.text) == [], path
        assert len(answer.text) < 400_000, path
    assert shown > 8


def test_a_browser_runs_none_of_it_asks_nobody_and_its_pages_keep_their_width(hostile):
    def look(browsing):
        page = browsing.tab(viewport={"width": 390, "height": 800})
        page.on("dialog", lambda one: browsing.wrong.append(one.message))
        for path in addresses(hostile):
            page.goto(hostile.url + path)
            settled(page)
            wide = page.evaluate(WIDE)
            assert wide == [], path

    browsing = Browsing(hostile)
    try:
        browsing.run(look)
    finally:
        browsing.close()
