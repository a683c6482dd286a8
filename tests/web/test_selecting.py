"""What a selection of all that match acts on: the jobs that the page counts, and no others."""

from __future__ import annotations

import asyncio
import html
import json
import re

import pytest

from tests.waiting import eventually
from wakeful import Cron, NewJob, Scheduler

pytestmark = pytest.mark.promise("X27")


def at_rest(runs):
    """Both agents were woken, and nothing goes on but what waits for a person."""
    woken = {run["job"] for run in runs if run["job"].endswith(".wake")}
    return len(woken) == 2 and all(run["status"] in {"done", "waiting"} for run in runs)


@pytest.fixture
def person(fleet):
    from tests.web.conftest import Visitor

    one = Visitor(fleet, "operator")
    with fleet.client(fleet.token) as client:  # what was started at once has ended: no job changes its state meanwhile
        eventually(lambda: client.get("/api/runs?limit=100").json()["items"], at_rest)
    yield one
    one.client.close()


@pytest.mark.parametrize("query", ["", "?state=idle", "?kind=command", "?agent=reporter", "?q=e", "?state=none-such"])
def test_all_that_match_are_those_that_the_page_counts(fleet, person, query):
    shown = person.get(f"/jobs{query}").text
    number = int(re.search(r"select all ([\d,]+)", shown)[1].replace(",", ""))
    assert (
        number
        == int(re.search(r'data-total="(\d+)"', shown)[1])
        == len(re.findall('<input type="checkbox" name', shown))
    )
    chosen = json.loads(html.unescape(re.search(r'data-chosen="([^"]+)"', shown)[1]))
    for what in ("pause", "resume", "run"):
        seen = person.client.post("/api/jobs:preview", json={**chosen, "do": what}).json()
        assert seen["count"] + seen["unchanged"] + len(seen["refused"]) == number, what


def test_jobs_that_deliver_messages_are_not_stopped_with_all_others(fleet, person):
    with fleet.client(fleet.token) as client:
        internal = {job["name"] for job in client.get("/api/jobs?internal=true").json()["items"]}
        listed = {job["name"] for job in client.get("/api/jobs").json()["items"]}
    assert internal - listed == {"delivery.phone"}
    done = person.client.post("/api/jobs:pause", json={"all": True})
    try:
        assert set(done.json()["names"]) == listed
        assert (
            person.client.post("/api/jobs:preview", json={"filter": {"q": "phone"}, "do": "pause"}).json()["count"] == 0
        )
    finally:
        assert person.client.post(f"/api/actions/{done.headers['Wakeful-Action']}/undo").status_code == 200


async def add_a_thousand(url):
    async with Scheduler(url) as scheduler:
        await scheduler.add_jobs(
            [
                NewJob(f"thousand-{number}", Cron("0 0 1 1 *"), kind="command", payload={"argv": ["true"]})
                for number in range(1000)
            ]
        )


def test_a_thousand_are_said_exactly_and_more_than_that_as_so(fleet, person):
    asyncio.run(add_a_thousand(f"sqlite:///{fleet.folder}/.wakeful/wakeful.db"))
    assert ">select all 1,000</button>" in person.get("/jobs?q=thousand").text
    with fleet.client(fleet.token) as client:
        body = {"name": "thousand-and-one", "every": "6h", "command": ["true"]}
        assert client.post("/api/jobs", json=body).status_code == 201
    shown = eventually(lambda: person.get("/jobs?q=thousand").text, lambda text: "1,000+" in text)
    assert ">select all 1,000+</button>" in shown
    assert 'data-total="1000"' in shown
