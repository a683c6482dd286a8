"""Runs that send a message to a session, against a real server: each answer ends them as it should."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.agents.real_sessions import talking
from tests.service.real_time import real
from wakeful import Manual
from wakeful.domains.agents.tables import Sessions
from wakeful.domains.agents.task import read_task
from wakeful.errors import InvalidJob, ScheduleTriggerError, WrongCallbackToken

HOUR, HALF = timedelta(hours=1), timedelta(minutes=30)


async def send(scheduler, watch, name="standup", **payload):
    """Run one session job once; its run when it has ended or waits."""
    await scheduler.add_job(
        name, Manual(), kind="session", payload={"prompt": "Summarise", **payload}, if_exists="update"
    )
    run_id = await scheduler.run_job(name)
    await watch.until(
        lambda events: any(event.type in ("finished", "waiting") and event.data["run"] == run_id for event in events)
    )
    return await scheduler.get_run(run_id)


async def queued(scheduler, name="standup"):
    return [run for run in await scheduler.get_run_log(name) if run.status == "queued"]


@pytest.mark.promise("C4")
@real
async def test_the_first_run_makes_a_session_and_later_ones_continue_it(tmp_path, sessions):
    async with talking(tmp_path, sessions.url, callback_url="http://127.0.0.1:7878/") as (scheduler, watch):
        first = await send(scheduler, watch, model="claude-sonnet")
        second = await send(scheduler, watch, model="claude-sonnet")
    assert first.outcome == second.outcome == "success"
    assert first.output == {"sessionId": "s-1", "answer": {"reply": "answer 1"}}
    assert sessions.made == [{"model": "claude-sonnet"}]
    assert [session for session, _, _ in sessions.messages] == ["s-1", "s-1"]
    _, body, headers = sessions.messages[0]
    assert body["prompt"] == "[scheduler:standup] Summarise"
    assert (body["source"], body["schedule"], body["runId"]) == ("scheduler", "standup", first.id)
    assert body["callbackUrl"].startswith(f"http://127.0.0.1:7878/api/runs/{first.id}/complete?token=")
    assert headers["Idempotency-Key"].startswith(first.id)
    assert sessions.messages[1][2]["Idempotency-Key"].startswith(second.id)


@pytest.mark.promise("C2", "C4")
@real
async def test_a_session_is_continued_after_a_restart(tmp_path, sessions):
    for _ in range(2):
        async with talking(tmp_path, sessions.url) as (scheduler, watch):
            await send(scheduler, watch)
    assert len(sessions.made) == 1
    assert len(sessions.sessions["s-1"]) == 2


@pytest.mark.promise("C4")
@real
async def test_an_ephemeral_session_is_new_each_time_and_nothing_is_kept(tmp_path, sessions):
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        await send(scheduler, watch, persist=False)
        await send(scheduler, watch, persist=False)
        assert [session for session, _, _ in sessions.messages] == ["s-1", "s-2"]
        kept = await scheduler.read(lambda tx: tx.of(Sessions).of_all([tx.jobs.by_name("standup")[0].id]))
        assert kept == {}


@pytest.mark.promise("C4")
@real
async def test_another_model_is_another_session_and_the_old_one_is_discarded(tmp_path, sessions):
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        await send(scheduler, watch, model="small")
        await send(scheduler, watch, model="large")
        await send(scheduler, watch, model="large")
    assert sessions.made == [{"model": "small"}, {"model": "large"}]
    assert [session for session, _, _ in sessions.messages] == ["s-1", "s-2", "s-2"]
    assert sessions.discarded == ["s-1"]


@pytest.mark.promise("C4")
@real
async def test_kept_sessions_are_bounded_and_the_one_used_longest_ago_goes(tmp_path, sessions):
    async with talking(tmp_path, sessions.url, max_kept=2) as (scheduler, watch):
        for name in ("a", "b", "a", "c"):
            await send(scheduler, watch, name)
        assert sessions.discarded == ["s-2"]
        await send(scheduler, watch, "a")
        await send(scheduler, watch, "b")
        assert [session for session, _, _ in sessions.messages] == ["s-1", "s-2", "s-1", "s-3", "s-1", "s-4"]
        await scheduler.remove_job("a")
        await send(scheduler, watch, "d")
        assert sorted(sessions.discarded) == ["s-1", "s-2", "s-3"]


@pytest.mark.promise("C10")
@real
async def test_where_sessions_report_a_plain_200_waits_for_its_report(tmp_path, sessions):
    async with talking(tmp_path, sessions.url, done="report") as (scheduler, watch):
        sessions.behave("done", (200, {"status": "completed"}, {}))
        run = await send(scheduler, watch)
        assert (run.status, run.outcome) == ("waiting", None)
        await scheduler.server_side.report_run(
            run.id, {"rows": 3}, token=await scheduler.server_side.callback_token(run.id)
        )
        run = await scheduler.get_run(run.id)
        assert (run.outcome, run.output) == ("success", {"rows": 3})
        assert (await send(scheduler, watch)).outcome == "success", "what says that it is done is done"


@pytest.mark.promise("C1", "C6")
@real
async def test_a_named_session_that_we_made_is_made_again_for_all_who_share_it(tmp_path, sessions):
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        await send(scheduler, watch, "keeper", model="small")
        await scheduler.add_job(
            "third",
            Manual(),
            kind="session",
            payload={"prompt": "x", "session": "s-1"},
            lanes={"session:s-1": 1, "l": 2},
        )
        sessions.sessions.clear()
        run = await send(scheduler, watch, "sharer", session="s-1")
        assert (run.outcome, run.output["sessionId"]) == ("success", "s-2")
        assert sessions.made == [{"model": "small"}] * 2
        assert [session for session, _, _ in sessions.messages] == ["s-1", "s-1", "s-2"]
        assert (await scheduler.get_job("sharer")).payload["session"] == "s-2"
        third = await scheduler.get_job("third")
        assert (third.payload["session"], third.options["lanes"]) == ("s-2", {"session:s-2": 1, "l": 2})
        assert (await send(scheduler, watch, "keeper", model="small")).output["sessionId"] == "s-2"
        assert len(sessions.made) == 2
        sessions.behave("missing")
        again = await send(scheduler, watch, "sharer", session="s-2")
        assert (again.outcome, len(sessions.made)) == ("error", 3), "one new session and one more try, not more"


@pytest.mark.promise("C1")
@real
async def test_a_named_session_that_we_did_not_make_is_an_error_that_says_so(tmp_path, sessions):
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch, session="somebodys")
        assert run.outcome == "error"
        assert "session somebodys: the session server answered 404" in run.error
        assert "it was not made here, so no other one is put in its place: name another session, or none" in run.error
        assert (sessions.made, await queued(scheduler)) == ([], [])


@pytest.mark.promise("C6")
@real
async def test_a_session_that_is_gone_is_made_again_and_the_message_sent_again(tmp_path, sessions):
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        await send(scheduler, watch)
        sessions.sessions.clear()
        run = await send(scheduler, watch)
        assert run.outcome == "success"
        assert run.output["sessionId"] == "s-2"
        assert [session for session, _, _ in sessions.messages] == ["s-1", "s-1", "s-2"]
        keys = [headers["Idempotency-Key"] for _, _, headers in sessions.messages]
        assert len(set(keys)) == 3
        sessions.behave("missing")
        again = await send(scheduler, watch)
        assert again.outcome == "error"
        assert "404" in again.error
        assert len(sessions.messages) == 5
        assert await queued(scheduler) == []


@pytest.mark.promise("C6")
@real
async def test_a_busy_session_is_recorded_and_the_same_tried_again_in_an_hour(tmp_path, sessions):
    sessions.behave("busy")
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.outcome == "deferred"
        assert "still working" in run.output
        [again] = await queued(scheduler)
        assert again.retry_of == run.id
        assert HOUR - timedelta(minutes=1) < again.due_at - run.started_at <= HOUR + timedelta(minutes=1)
        job = await scheduler.get_job("standup")
        assert job.consecutive_errors == 0


@pytest.mark.promise("C6", "C8")
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("broken", "500: resume failed"),
        ("hangs", "did not answer in time"),
        ("closes", "the request to the session server failed"),
        ("garbage", "the request to the session server failed"),
        ("nonsense", "is not valid JSON"),
    ],
)
@real
async def test_a_server_that_fails_is_recorded_and_the_same_tried_again_in_half_an_hour(
    tmp_path, sessions, reply, said
):
    sessions.behave(reply)
    async with talking(tmp_path, sessions.url, answer_s=0.5) as (scheduler, watch):
        run = await send(scheduler, watch)
        sessions.release.set()
        assert run.outcome == "error"
        assert said in run.error
        [again] = await queued(scheduler)
        assert again.retry_of == run.id
        assert HALF - timedelta(minutes=1) < again.due_at - run.started_at <= HALF + timedelta(minutes=1)
        assert (await scheduler.get_job("standup")).last_error == run.error
        assert scheduler.is_running()


@pytest.mark.promise("C6", "C8")
@real
async def test_an_unreachable_server_is_a_failure_like_any_other(tmp_path, sessions):
    async with talking(tmp_path, "http://user:secret@127.0.0.1:9") as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.outcome == "error"
        assert "http://127.0.0.1:9/sessions" in run.error
        assert "secret" not in run.error + run.trace
        assert len(await queued(scheduler)) == 1


@pytest.mark.promise("C6", "C8")
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("refuses", "403: not yours"),
        ("moved", "set server.sessions.url to it"),
        ("huge", "longer than 1048576 bytes"),
        ("failed", "context window exceeded"),
    ],
)
@real
async def test_what_would_not_get_better_is_an_error_and_not_tried_again(tmp_path, sessions, reply, said):
    sessions.behave(reply)
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.outcome == "error"
        assert said in run.error
        assert await queued(scheduler) == []


@pytest.mark.promise("C8")
@pytest.mark.parametrize("made", [(200, {}), (200, {"id": ".."}), (404, {"error": "no"}), (500, None)])
@real
async def test_a_server_that_makes_no_session_is_reported_as_that(tmp_path, sessions, made):
    sessions.on_create = made
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.outcome == "error"
        assert "a session was made" in run.error or "no session could be made" in run.error
        assert len(await queued(scheduler)) == (1 if made[0] == 500 else 0)


@pytest.mark.promise("C8")
@real
async def test_without_a_session_server_a_run_says_which_key_to_set(tmp_path, sessions):
    async with talking(tmp_path, None) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.outcome == "error"
        assert "server.sessions.url" in run.error
        assert await queued(scheduler) == []


@pytest.mark.promise("C10")
@pytest.mark.parametrize("reply", ["accepts-with-status", "goes-on"])
@real
async def test_what_was_accepted_is_success_when_its_status_says_it_is_done(tmp_path, sessions, reply):
    sessions.behave(reply)
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.status == "waiting"
        await asyncio.to_thread(sessions.wait_for, lambda server: server.polled >= 2)
        assert (await scheduler.get_run(run.id)).outcome is None
        sessions.say(1, status="completed", output={"commits": 3})
        await watch.finished()
        run = await scheduler.get_run(run.id)
        assert (run.outcome, run.output) == ("success", {"commits": 3})


@pytest.mark.promise("C10")
@real
async def test_what_was_accepted_and_then_failed_is_an_error(tmp_path, sessions):
    sessions.behave("accepts-with-status")
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        sessions.say(1, status="failed", error="tool failed")
        await watch.finished()
        run = await scheduler.get_run(run.id)
        assert (run.outcome, run.error) == ("error", "tool failed")


@pytest.mark.promise("C10")
@real
async def test_asking_goes_on_after_a_restart(tmp_path, sessions):
    sessions.behave("accepts-with-status")
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
    sessions.say(1, status="done", output="late")
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        await watch.finished()
        assert (await scheduler.get_run(run.id)).output == "late"
    assert len(sessions.messages) == 1


@pytest.mark.promise("C10")
@real
async def test_a_status_address_elsewhere_is_never_asked_and_the_run_can_still_be_reported(tmp_path, sessions):
    sessions.behave("elsewhere")
    async with talking(tmp_path, sessions.url) as (scheduler, watch):
        run = await send(scheduler, watch)
        assert run.status == "waiting"
        assert "must be on the server of server.sessions.url" in run.output
        assert await scheduler.read(lambda tx: tx.of(Sessions).watched()) == []
        token = await scheduler.server_side.callback_token(run.id)
        assert await scheduler.server_side.report_run(run.id, {"ok": True}, token=token)
        assert (await scheduler.get_run(run.id)).outcome == "success"


@pytest.mark.promise("C10")
@real
async def test_only_the_runs_own_token_reports_its_end_and_only_once(tmp_path, sessions):
    sessions.behave("accepts")
    async with talking(tmp_path, sessions.url, callback_url="http://127.0.0.1:1") as (scheduler, watch):
        one, two = await send(scheduler, watch, "one"), await send(scheduler, watch, "two")
        tokens = [body["callbackUrl"].rpartition("=")[2] for _, body, _ in sessions.messages]
        for wrong in (tokens[1], "", "x", tokens[0][:-1], tokens[0].upper(), "\udce9"):
            with pytest.raises(WrongCallbackToken):
                await scheduler.server_side.report_run(one.id, token=wrong)
        with pytest.raises(WrongCallbackToken):
            await scheduler.server_side.report_run("run_nonsense", token=tokens[0])
        assert await scheduler.server_side.report_run(one.id, "done", token=tokens[0])
        with pytest.raises(ScheduleTriggerError, match="already ended as success"):
            await scheduler.server_side.report_run(one.id, error="no, it was not", token=tokens[0])
        assert (await scheduler.get_run(one.id)).output == "done"
        assert (await scheduler.get_run(two.id)).status == "waiting"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"prompt": ""},
        {"prompt": 3},
        {"prompt": "x", "model": ""},
        {"prompt": "x", "model": "a\0"},
        {"prompt": "x", "model": "\ud800"},
        {"prompt": "x", "persist": "yes"},
        {"prompt": "x", "session": ".."},
        {"prompt": "x", "deadline_ms": 0},
        {"prompt": "x", "deadline_ms": True},
        {"prompt": "x", "modle": "a"},
        {"prompt": "x" * 200_001},
    ],
)
def test_a_payload_that_cannot_be_sent_is_refused(payload):
    with pytest.raises(InvalidJob, match="session job"):
        read_task(payload)
