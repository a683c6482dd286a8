"""Sessions on a store that several nodes share."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.test_sessions import send
from tests.service.real_time import Watch, real
from tests.store.postgres_server import postgres_url
from wakeful import Manual, Scheduler
from wakeful.domains.agents import SessionSettings, install


def node(url, name, sessions, **settings):
    scheduler = Scheduler(url, timezone="UTC", node=name)
    install(scheduler, SessionSettings(url=sessions.url, poll_s=(0.02, 0.1), **settings))
    return scheduler


@pytest.mark.promise("C4", "C10")
@real
async def test_what_one_node_sent_is_asked_about_by_another_once_it_is_gone(sessions):
    url = postgres_url()
    sessions.behave("accepts-with-status")
    async with node(url, "first", sessions) as first:
        watch = Watch(first)
        await first.start()
        run = await send(first, watch)
        assert run.status == "waiting"
        await first.stop()
    sessions.say(1, status="completed", output="told to another")
    async with node(url, "second", sessions) as second:
        watch = Watch(second)
        await second.start()
        await watch.finished()
        run = await second.get_run(run.id)
        assert (run.outcome, run.output) == ("success", "told to another")
        again = await send(second, watch)
        assert again.status == "waiting"
        assert {session for session, _, _ in sessions.messages} == {"s-1"}
        await second.stop(wait_for_jobs=False)


@pytest.mark.promise("C10")
@real
async def test_a_report_at_the_very_moment_a_run_begins_to_wait_is_never_lost(sessions):
    """Many runs, each reported by another node as soon as the session server has its message."""
    sessions.behave("accepts")
    url = postgres_url()
    async with node(url, "one", sessions, callback_url="http://here") as one, node(url, "two", sessions) as two:
        await one.start()
        count = 12
        for number in range(count):
            await one.add_job(f"job-{number}", Manual(), kind="session", payload={"prompt": "x"})
            await one.run_job(f"job-{number}")
        reported = set()
        while len(reported) < count:
            await asyncio.to_thread(sessions.wait_for, lambda server: len(server.messages) > len(reported))
            for _, message, _ in list(sessions.messages):
                if message["runId"] not in reported:
                    reported.add(message["runId"])
                    await two.server_side.report_run(message["runId"], {"ok": True})
        async with asyncio.timeout(120):
            outcomes = [None]
            while None in outcomes:  # either node may have settled it, and each hears only itself
                outcomes = [(await one.get_run(run_id)).outcome for run_id in reported]
        assert set(outcomes) == {"success"}
        await one.stop(wait_for_jobs=False)
