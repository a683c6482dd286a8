"""Lists: what an order shows, how many there are, and that everything that waits for a person can be answered."""

from __future__ import annotations

import re

import pytest

from tests.waiting import eventually

pytestmark = pytest.mark.promise("X28")
QUESTIONS = [f"ask-{number:02}" for number in range(60)]


@pytest.fixture(scope="module", autouse=True)
def _questions(server):
    """Sixty questions, a job that failed and was paused then, and one that is only paused."""
    with server.client(server.token) as client:
        for name in QUESTIONS:
            body = {"name": name, "every": "24h", "command": ["true"], "approval": True}
            assert client.post("/api/jobs", json=body).status_code == 201
        assert client.post("/api/jobs:run", json={"ids": QUESTIONS}).status_code == 200
        for name, command in (("zz-fails", "false"), ("zz-rests", "true")):
            body = {"name": name, "every": "24h", "command": [command], "retry": 0}
            assert client.post("/api/jobs", json=body).status_code == 201
        for times in range(1, 4):
            assert client.post("/api/jobs/zz-fails/run", json={}).is_success
            eventually(lambda: client.get("/api/jobs/zz-fails").json()["consecutive_errors"], times.__eq__)
        eventually(lambda: client.get("/api/alerts?limit=200").json()["items"], lambda seen: len(seen) == 61)
        for name in ("zz-fails", "zz-rests"):
            assert client.post(f"/api/jobs/{name}/pause", json={}).status_code == 200


@pytest.fixture
def person(visitor):
    return visitor("operator")


def names(text):
    return re.findall(r'data-name="([^"]+)"', text)


@pytest.mark.parametrize("order", ["", "next", "last", "name"])
def test_every_order_shows_all_that_match(person, order):
    assert set(names(person.get(f"/jobs?state=paused&order={order}").text)) == {"zz-fails", "zz-rests"}
    assert sorted(names(person.get(f"/jobs?q=zz-&order={order}").text)) == ["zz-fails", "zz-rests"]


@pytest.mark.parametrize("order", ["", "next", "last"])
def test_where_an_order_fills_a_page_the_rest_is_one_link_away(person, order):
    for query in ("", "q=ask-&"):
        text = person.get(f"/jobs?{query}order={order}").text
        assert len(set(names(text))) == 50
        assert re.search(r'<a class="link" href="/jobs\?[^"]*order=name[^"]*">[^<]*more</a>', text)


def test_a_filtered_list_begins_with_what_needs_a_person(person):
    person.client.post("/api/jobs/ask-59/pause", json={})
    try:
        listed = names(person.get("/jobs?q=9").text)
        assert listed[0] in QUESTIONS
        first = names(person.get("/jobs?q=s").text)
        assert first[-2:] == ["zz-fails", "zz-rests"] or len(first) == 50
        assert '<option value="name" selected>' in person.get("/jobs?q=ask-").text, (
            "a long one is in the order of names"
        )
    finally:
        person.client.post("/api/jobs/ask-59/resume", json={})


def test_as_many_need_a_person_as_the_first_sentence_says(person):
    text = person.get("/").text
    said = int(re.search(r"(\d+) things need you", text)[1])
    shown = len(re.findall(r'<li data-id="(?:run|alr)_', re.search(r'id="needs".*?</section>', text, re.DOTALL)[0]))
    more = int(re.search(r"and (\d+) more", text)[1])
    assert (said, shown, more) == (60, 4, 56)
    assert "zz-fails" not in re.search(r'id="needs".*?</section>', text, re.DOTALL)[0], "a person paused it"


def test_every_question_can_be_answered_where_all_are_listed(person, visitor):
    found, path = set(), "/alerts"
    while path:
        text = person.get(path).text
        found |= set(re.findall(r'data-do="POST /api/runs/(run_\w+)/approve"', text))
        older = re.search(r'<a class="link" href="([^"]+)">older</a>', text)
        path = older[1].replace("&amp;", "&") if older else None
    asking = person.client.get("/api/approvals?limit=100", headers={"Accept": "application/json"}).json()["items"]
    assert len(asking) == 60
    assert found == {one["run"] if "run" in one else one["id"] for one in asking}
    assert "approve" not in visitor("viewer").get("/alerts").text.replace("to approve it", "")


def test_who_acknowledged_what_is_said_in_the_words_of_the_alert(person):
    alert = next(
        one
        for one in person.client.get("/api/alerts?limit=200", headers={"Accept": "application/json"}).json()["items"]
        if one["job"] == "zz-fails"
    )
    assert person.client.post(f"/api/alerts/{alert['id']}/ack", json={}).status_code == 200
    assert "acknowledged <bdi>zz-fails has failed" in person.get("/more").text
