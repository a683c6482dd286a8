"""The runner `url` against a session server."""

from __future__ import annotations

import asyncio

import pytest

from wakeful.agents.runners.calling import call_agent
from wakeful.agents.runners.turn import Answered, Gone, Overloaded, Surroundings, Turn, Wrong


class FakeRun:
    """What a runner needs of a run."""

    id, job = "run_1", "a.b"


@pytest.fixture
def call(sessions, tmp_path):
    seen = []

    def call(prompt="hello", session=None, schedule="b"):
        run = FakeRun()
        run.job = schedule
        around = Surroundings(tmp_path, {}, lambda: 0, seen.append)
        runner = {"url": sessions.url, "timeout": 5000}
        return asyncio.run(call_agent(runner, Turn(prompt, session, "a", run, schedule), around))

    call.seen = seen
    return call


def test_a_session_is_made_once_and_continued(call, sessions):
    first = call("one")
    assert isinstance(first, Answered)
    assert call.seen == [first.reply.session]
    second = call("two", session=first.reply.session)
    assert (second.reply.session, len(call.seen)) == (first.reply.session, 1)
    assert len(sessions.messages) == 2


@pytest.mark.parametrize(("reply", "kind"), [("missing", Gone), ("busy", Overloaded), ("broken", Overloaded)])
def test_what_the_server_answers_decides(call, sessions, reply, kind):
    known = call().reply.session
    sessions.replies_to = {"odd": [reply]}
    assert isinstance(call(session=known, schedule="odd"), kind)


def test_a_session_that_the_server_never_made_is_gone(call):
    assert isinstance(call(session="s-none"), Gone)


def test_work_that_is_accepted_without_an_address_to_ask_at_is_an_error(call, sessions):
    known = call().reply.session
    sessions.replies_to = {"odd": ["accepts"]}
    ended = call(session=known, schedule="odd")
    assert isinstance(ended, Wrong), ended
