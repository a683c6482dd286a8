"""`wakeful demo`: a real server with a week behind it, which survives what its buttons do to it."""

from __future__ import annotations

import operator
import os
import re
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import PATIENCE, Terminal, lives
from tests.waiting import eventually
from wakeful.clock import SystemClock
from wakeful.demo.place import DemoFolder

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/in/[a-z0-9]{12,}\n")


class Demo:
    """A demo in processes of its own, and somebody who opened its link."""

    def __init__(self, folder: Path) -> None:
        self.terminal = Terminal(folder)
        self.process = self.terminal.start("demo", "--no-open", "--port", "0", TMPDIR=str(folder))
        self.first = self.process.until("")
        self.base = LINK.fullmatch(self.first)[1]
        self.page = httpx.Client(base_url=self.base, timeout=PATIENCE, trust_env=False, headers={"Accept": "text/html"})
        self.answer = self.page.get(self.first.strip())

    def get(self, path: str) -> dict:
        answer = self.page.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def state_if_reached(self) -> dict | None:
        try:
            return self.get("/demo/state")
        except httpx.TransportError:
            return None

    def post(self, path: str, body: dict | None = None, origin: str | None = None) -> httpx.Response:
        return self.page.post(path, json=body, headers={"Origin": origin or self.base})

    def close(self) -> None:
        self.page.close()
        self.process.signal(signal.SIGTERM)
        self.process.ended()
        self.terminal.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    opened = Demo(tmp_path_factory.mktemp("demo"))
    yield opened
    opened.close()


def test_the_first_line_is_a_link_that_signs_in_once(demo):
    assert demo.answer.status_code == 303
    assert "wakeful" in demo.page.cookies
    again = httpx.get(demo.first.strip(), trust_env=False, timeout=PATIENCE)
    assert again.status_code == 403


def test_a_week_made_by_the_real_engine_is_on_record(demo):
    page = demo.page.get("/").text
    for part in ("Demo: scripted agents", "url(#hatch)", "reporter", "triage", "books.look", "kill -9 me"):
        assert part in page
    week = demo.get("/api/ledger?since=8d")
    assert week["due"] > 1_000
    assert (week["unaccounted"], week["missing"]) == (0, 0)
    assert week["passed_over"]["over_budget"] > 0
    deploys = demo.get("/api/runs?job=deploy-site&limit=20")["items"]
    assert "ada" in {one["approvals"][-1]["by"] for one in deploys if one["approvals"]}
    sent = {one["agent"] for one in demo.get("/api/deliveries?limit=100")["items"] if one["status"] == "sent"}
    assert {"reporter", "watcher"} <= sent
    kinds = {one["kind"] for one in demo.get("/api/alerts?open=false")["items"]}
    assert "clock" not in kinds


def test_the_story_of_a_minute_shows_silence_a_digest_a_question_and_a_budget(demo):
    began = demo.get("/demo/state")["now"]
    place = DemoFolder(next(demo.terminal.folder.glob("wakeful-demo-*")))
    place.change(visited_at=SystemClock().now() - 60_000)  # a minute has passed
    shown = eventually(lambda: demo.get("/demo/state"), lambda state: state["story"]["over"])
    assert shown["story"]["text"] == "Now try to break it."
    asking = eventually(lambda: demo.get("/api/runs?job=deploy-site&limit=1")["items"][0], lambda run: run["phase"])
    assert (asking["status"], asking["phase"]) == ("waiting", "approval")
    eventually(lambda: demo.get("/api/ledger?since=5m")["passed_over"], lambda reasons: reasons.get("over_budget"))
    said = eventually(
        lambda: [one for one in demo.get("/demo/state")["phone"]["messages"] if one["at"] >= began],
        lambda said: "reporter" in {one["agent"] for one in said},
    )
    assert {one["agent"] for one in said} <= {"reporter", "watcher"}
    wakes = eventually(
        lambda: [one for one in demo.get("/api/runs?job=watcher.wake&limit=1")["items"] if one["due_at"] >= began],
        lambda wakes: wakes and wakes[0]["status"] == "done",
    )
    assert wakes[0]["output"]["outcome"] in ("ok-ack", "sent")


def test_the_lines_that_replace_the_demo_are_a_valid_file(demo, tmp_path):
    lines = re.search(r"<pre class=\"lines\">(.*?)</pre>", demo.page.get("/").text, re.DOTALL)[1]
    assert len(lines.splitlines()) == 5
    (tmp_path / "wakeful.yaml").write_text(lines)
    checked = demo.terminal.ask("check", str(tmp_path / "wakeful.yaml"))
    assert (checked.code, "error" in checked.err) == (0, False), checked.err


def test_a_killed_server_is_back_with_nothing_lost_and_nothing_twice(demo):
    killed = demo.post("/demo/kill").json()
    assert killed["job"] == "inbox"
    eventually(lambda: lives(killed["process"]), operator.not_)
    after = eventually(demo.state_if_reached, operator.truth)  # a connection that the old one had accepted is cut
    assert (after["process"] != killed["process"], after["kills"]) == (True, 1)
    found = eventually(
        lambda: demo.get(f"/demo/killed/{killed['run']}"), lambda found: (found["again"] or {}).get("outcome")
    )
    assert (found["outcome"], found["again"]["reason"]) == ("crashed", "recovery")
    assert found["again"]["outcome"] == "success"
    assert (found["lost"], found["twice"]) == (0, 0)
    demo.process.until(f"Process {killed['process']} was killed.")


def test_after_an_hour_of_sleep_each_job_is_caught_up_once(demo):
    before = demo.get("/demo/state")["now"]
    slept = demo.post("/demo/sleep").json()
    assert demo.get("/demo/state")["now"] > slept["since"] >= before
    after = eventually(lambda: demo.get(f"/demo/slept?since={slept['since']}"), lambda found: found["open"] == 0)
    assert after["slots"] >= 10
    assert after["slots"] == after["ran"] + after["merged"] + after["passed_over"] + after["asking"]
    assert {"inbox", "price-feed"} <= after["caught_up"].keys()
    assert set(after["caught_up"].values()) == {1}
    assert (after["lost"], after["twice"], after["missing"]) == (0, 0, 0)


def test_a_message_waits_for_a_broken_phone_and_is_there_once_it_is_mended(demo):
    sent = demo.post("/demo/phone", {"broken": True}).json()["delivery"]
    waiting = eventually(
        lambda: demo.get(f"/demo/messages/{sent}"), lambda found: found["status"] == "pending" and found["log"]
    )
    assert (waiting["status"], waiting["log"][0]["error"]) == ("pending", "the phone refused the connection")
    shown = demo.get("/demo/state")["phone"]
    assert shown["broken"]
    assert waiting["text"] in shown["waiting"]
    demo.post("/demo/phone", {"broken": False})
    mended = eventually(lambda: demo.get(f"/demo/messages/{sent}"), lambda found: found["status"] == "sent")
    assert mended["attempts"] == len(mended["log"]) >= 2
    texts = Counter(one["text"] for one in demo.get("/demo/state")["phone"]["messages"])
    assert texts[waiting["text"]] == 1


def test_only_an_admin_on_a_page_of_the_demo_can_use_its_buttons(demo):
    (token,) = demo.terminal.folder.glob("wakeful-demo-*/wakeful.db.token")
    bearer = {"Authorization": f"Bearer {token.read_text().strip()}", "Origin": demo.base}
    viewer = httpx.Client(base_url=demo.base, timeout=PATIENCE, trust_env=False, headers={"Accept": "text/html"})
    store = next(demo.terminal.folder.glob("wakeful-demo-*/wakeful.db"))
    with viewer:
        made = demo.terminal.ask("token", "create", "eye", "--role", "viewer", "--db", str(store))
        assert viewer.post("/in", data={"token": made.out.strip().split()[-1]}).status_code == 303
        for path in ("/demo/kill", "/demo/sleep", "/demo/phone"):
            refused = [
                demo.post(path, {"broken": False}, origin="http://elsewhere.example"),
                demo.page.post(path, json={"broken": False}),
                viewer.post(path, json={"broken": False}, headers={"Origin": demo.base}),
                httpx.post(demo.base + path, json={"broken": False}, headers=bearer, trust_env=False),
            ]
            assert [answer.status_code for answer in refused] == [403] * 4
        assert 'data-demo="kill"' not in viewer.get("/").text


def test_ctrl_c_ends_both_processes_and_deletes_the_store(tmp_path):
    demo = Demo(tmp_path)
    server = demo.get("/demo/state")["process"]
    demo.page.close()
    demo.process.signal(signal.SIGINT)
    ended = demo.process.ended()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == "The demo is over; its store is gone."
    assert not lives(server)
    assert list(tmp_path.glob("wakeful-demo-*")) == []


def test_a_server_whose_supervisor_is_killed_ends_by_itself(demo):
    """The last one here: it takes the demo of the others away."""
    server = demo.get("/demo/state")["process"]
    os.kill(demo.process.pid, signal.SIGKILL)
    eventually(lambda: lives(server), operator.not_)
    assert demo.process.ended().code == -signal.SIGKILL
