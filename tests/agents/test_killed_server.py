"""The server is killed in the middle of whatever a session server may answer: nothing is lost, nothing done twice."""

from __future__ import annotations

import pytest

from tests.agents.session_server import SessionServer
from tests.api.conftest import Server
from tests.cli.terminal import Terminal

#: What the second message is answered with, and how the runs then end; None has not ended.
OUTCOMES = {
    "done": ["crashed", "success"],
    "accepts": ["crashed", None],
    "missing": ["crashed", "error"],
    "busy": ["crashed", "deferred", None],
    "broken": ["crashed", "error", None],
    "closes": ["crashed", "error", None],
    "garbage": ["crashed", "error", None],
    "nonsense": ["crashed", "error", None],
    "huge": ["crashed", "error"],
}


class Place:
    """One store and one session server through several lives of a `wakeful serve`."""

    def __init__(self, folder, sessions):
        self.terminal = Terminal(folder)
        (folder / "wakeful.yaml").write_text(f"server: {{sessions: {{url: '{sessions.url}'}}}}\n")
        self.sessions = sessions
        self.server = None

    def start(self):
        self.server = Server(self.terminal)
        return self.server.client(self.server.token)

    def kill(self):
        self.server.process.kill()

    def runs(self, client, name="standup"):
        """The schedule's runs, oldest first, once none of them is active or about to be."""
        for _ in range(3000):
            found = client.get(f"/api/jobs/{name}/runs").json()["items"][::-1]
            coming = [run for run in found if run["status"] == "queued" and run["reason"] == "recovery"]
            if found and not coming and all(run["status"] != "active" for run in found):
                return found
        raise AssertionError(f"still not at rest: {found}")


@pytest.fixture
def place(tmp_path):
    with SessionServer() as sessions:
        made = Place(tmp_path, sessions)
        yield made
        made.terminal.close()


def sent(place, client, name="standup"):
    """Make the schedule and run it; when the session server has one message more."""
    once, before = {"type": "once", "at": "2099-01-01T00:00:00Z"}, len(place.sessions.messages)
    client.put(f"/api/schedule/{name}", json={"prompt": "Summarise", "schedule": once})
    assert client.post(f"/api/schedule/{name}/run").status_code == 202
    place.sessions.wait_for(lambda server: len(server.messages) > before)


@pytest.mark.promise("C2", "C8", "C10")
def test_messages_that_were_under_way_are_sent_again_and_answered(place):
    sessions = place.sessions
    sessions.replies_to = {reply: ["hangs", reply] for reply in OUTCOMES}  # killed before the first answer
    with place.start() as client:
        for reply in OUTCOMES:
            sent(place, client, name=reply)
        sessions.wait_for(lambda server: len(server.messages) == len(OUTCOMES))
        place.kill()
    first = {body["schedule"]: (body, headers) for _, body, headers in sessions.messages}
    del sessions.messages[:]
    with place.start() as client:
        for reply, outcomes in OUTCOMES.items():
            runs = place.runs(client, reply)
            assert (reply, [run["outcome"] for run in runs]) == (reply, outcomes)
            assert runs[0]["id"] == first[reply][0]["runId"]
        again = {body["schedule"]: (body, headers) for _, body, headers in reversed(sessions.messages)}
        for reply, (body, headers) in first.items():
            assert {**again[reply][0], "callbackUrl": ""} == {**body, "callbackUrl": ""}
            # The server takes another port in each life; a run's address and token stay.
            assert again[reply][0]["callbackUrl"].partition("/api/")[2] == body["callbackUrl"].partition("/api/")[2]
            assert again[reply][1]["Idempotency-Key"] == headers["Idempotency-Key"]
        assert (
            len(sessions.messages) == len(OUTCOMES) + 1
        )  # and once more to a session made anew, where one was missing


@pytest.mark.promise("C2", "C10")
def test_a_run_that_waits_is_found_waiting_and_its_call_back_still_counts(place):
    place.sessions.behave("accepts")
    with place.start() as client:
        sent(place, client)
        [run] = place.runs(client)
        assert run["status"] == "waiting"
        place.kill()
    with place.start() as client:
        [run] = place.runs(client)
        assert run["status"] == "waiting"
        token = place.sessions.messages[0][1]["callbackUrl"].partition("?")[2]
        answer = client.post(
            f"/api/runs/{run['id']}/complete?{token}", json={"output": 3}, headers={"Authorization": ""}
        )
        assert answer.status_code == 200
        place.kill()
    with place.start() as client:
        [run] = place.runs(client)
        assert (run["outcome"], run["output"]) == ("success", 3)
        assert len(place.sessions.messages) == 1


@pytest.mark.promise("C2", "C10")
def test_a_run_that_is_asked_about_is_asked_about_in_the_next_life(place):
    place.sessions.behave("accepts-with-status")
    with place.start() as client:
        sent(place, client)
        [run] = place.runs(client)
        assert run["status"] == "waiting"
        place.kill()
    place.sessions.say(1, status="completed", output="late")
    with place.start() as client:
        place.server.process.until("standup")
        [run] = place.runs(client)
        assert (run["outcome"], run["output"]) == ("success", "late")
        assert len(place.sessions.messages) == 1


@pytest.mark.promise("C2", "C4")
def test_what_schedules_know_survives_a_kill(place):
    with place.start() as client:
        sent(place, client)
        place.runs(client)
        before = client.get("/api/schedule").json()
        place.kill()
    with place.start() as client:
        assert client.get("/api/schedule").json() == before
        assert before[0]["sessionId"] == "s-1"
        sent(place, client)
        assert [session for session, _, _ in place.sessions.messages] == ["s-1", "s-1"]
