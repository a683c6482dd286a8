"""Agents with `runner: {url}` in virtual time: what their session server answers decides, as for schedules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from tests.agents.virtual_sessions import VirtualSessions
from tests.kernel.crashing import die
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.runners.replies import reply_in
from wakeful.domains.agents.tables import Sessions
from wakeful.domains.agents.work import NewItem, add_item, list_items
from wakeful.errors import StoreUnreachable

DAILY = {"cron": "0 1 * * *", "prompt": "Go."}


class UrlAgents(VirtualSessions):
    """A session server in virtual time, and agents that live on it."""

    def scheduler(self, **options):
        made = self.scene.scheduler("job", **options)
        made.agents.callback_url = "http://here"
        made.agents._kind.servers.settings = replace(made.agents._kind.servers.settings, transport=self)
        return made

    async def begun(self, scheduler, **settings):
        runner = {"url": "http://sessions", **settings.pop("runner", {})}
        plan = {"runner": runner, "schedules": {"tick": DAILY}, **settings}
        await scheduler.agents.apply({"a": plan})
        await scheduler.start()

    @property
    def callback(self):
        """The path and the token of the last message's callback address."""
        address = httpx.URL(self.messages[-1][1]["callbackUrl"])
        return address.path.split("/")[3], address.params["token"]


async def last(scheduler, job="a.tick"):
    """The last run that began."""
    return next(run for run in await scheduler.get_run_log(job, 10) if run.status != "queued")


async def again(scheduler, scene):
    """Start it once more, by hand."""
    await scheduler.run_job("a.tick")
    await scene.sleep(5)


async def errors(scheduler, job="a.tick"):
    """How many errors in a row are counted."""
    return await scheduler.read(lambda tx: tx.jobs.by_name(job)[1].errors)


async def report(scheduler, server, output=None, error=None):
    run, token = server.callback
    return await scheduler.server_side.report_run(run, output, error=error, token=token)


@pytest.mark.promise("C6", "C10")
@pytest.mark.parametrize(
    ("answer", "outcome", "again"),
    [
        ((200, {"reply": "Done."}), "success", []),
        ((409, {"error": "busy"}), "deferred", [2.0, 3.0]),
        ((500, {}), "error", [1.5, 2.0]),
        ((503, {}), "error", [1.5, 2.0]),
        ((429, {}), "error", [1.5, 2.0]),
        (httpx.ConnectError("refused"), "error", [1.5, 2.0]),
        ((400, {"error": "no"}), "error", []),
        ((302, {}), "error", []),
        ((200, {"status": "failed", "error": "no"}), "error", []),
    ],
)
@virtual
async def test_what_the_server_answers_decides_when_the_same_is_tried_again(scene, answer, outcome, again):
    server = UrlAgents(scene, lambda *_: answer)
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.until(at(hours=1, minutes=1))
        assert (await last(scheduler)).outcome == outcome
        server.act = lambda number, _: answer if number < 3 else (200, "Done.")
        await scene.until(at(hours=3, minutes=1))
        assert [when.hour + when.minute / 60 for when in server.times] == [1.0, *again]
        assert await errors(scheduler) == (outcome == "error" and not again)


@virtual
async def test_a_busy_session_costs_no_budget_and_the_next_message_is_another(scene):
    server = UrlAgents(scene, lambda number, _: (409, {}) if number < 3 else (200, {"reply": "Done.", "cost": 0.25}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, budget={"runs_per_day": 1})
        await scene.until(at(hours=3, minutes=1))
        assert (await last(scheduler)).outcome == "success"
        assert (await scheduler.agents.get("a"))["spent_today"] == {"runs": 1, "cost": 0.25, "tokens": 0}
        assert len(set(server.keys)) == 3


@pytest.mark.promise("C10")
@virtual
async def test_work_that_was_accepted_waits_and_without_a_report_is_unknown(scene):
    server = UrlAgents(scene, lambda *_: (202, {}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.until(at(hours=1, minutes=1))
        waiting = await last(scheduler)
        assert (waiting.status, waiting.output) == ("waiting", "the session server says accepted (session s-1)")
        await scene.until(at(hours=2, minutes=59))
        assert (await last(scheduler)).status == "waiting"
        await scene.until(at(hours=3, minutes=1))
        assert (await last(scheduler)).outcome == "unknown"
        assert (len(server.messages), await errors(scheduler)) == (1, 0)


@virtual
async def test_a_timeout_is_how_long_a_report_may_take(scene):
    server = UrlAgents(scene, lambda *_: (202, {}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, runner={"timeout": "10m"})
        await scene.until(at(hours=1, minutes=9))
        assert (await last(scheduler)).status == "waiting"
        await scene.until(at(hours=1, minutes=11))
        assert (await last(scheduler)).outcome == "unknown"


@pytest.mark.promise("C10", "A6")
@virtual
async def test_a_report_ends_the_run_as_an_answer_does(scene):
    server = UrlAgents(scene, lambda *_: (202, {}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, heartbeat={"enabled": True, "every": "1d", "prompt": "Look."})
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scene.sleep(5)
        said = {"reply": "Nothing new. HEARTBEAT_OK", "cost": 0.5, "tokens_in": 7, "tokens_out": -3}
        assert await report(scheduler, server, said)
        ended = await last(scheduler, "a.wake")
        assert ended.output == {
            "reply": "Nothing new. HEARTBEAT_OK",
            "session": "s-1",
            "cost": 0.5,
            "tokens_in": 7,
            "tokens_out": None,
            "outcome": "ok-ack",
            "reason": "hook",
            "events": 1,
        }
        seen = await scheduler.agents.get("a")
        assert (seen["events_waiting"], seen["spent_today"]) == (0, {"runs": 1, "cost": 0.5, "tokens": 7})
        await scheduler.agents.request_wake("a")
        await scene.sleep(5)
        assert server.made == 1  # the same session
        await report(scheduler, server, error="it broke")
        ended = await last(scheduler, "a.wake")
        assert (ended.outcome, ended.error) == ("error", "it broke")


@virtual
async def test_work_with_a_status_address_is_polled_also_after_a_restart(scene):
    server = UrlAgents(scene, lambda *_: (202, {"statusUrl": "/status/1"}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await again(scheduler, scene)
        assert (await last(scheduler)).status == "waiting"
        await die(scheduler)
    server.states["1"] = {"status": "done", "output": {"reply": "Mended."}}
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.sleep(120)
        ended = await last(scheduler)
        assert (ended.outcome, ended.output["reply"], ended.output["session"]) == ("success", "Mended.", "s-1")
        assert await scheduler.read(lambda tx: tx.of(Sessions).watched()) == []


@virtual
async def test_a_status_address_elsewhere_is_never_asked(scene):
    server = UrlAgents(scene, lambda *_: (202, {"statusUrl": "http://evil/status/1"}))
    server.states["1"] = {"status": "done"}
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.until(at(hours=1, minutes=10))
        waiting = await last(scheduler)
        assert waiting.status == "waiting"
        assert "http://evil/status/1 was refused: it must be on the server of the runner's url" in waiting.output


@pytest.mark.promise("C4", "C6")
@virtual
async def test_a_session_that_is_gone_is_replaced_once_within_the_run(scene):
    server = UrlAgents(scene)
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await again(scheduler, scene)
        server.act = lambda number, _: (404, {"error": "who?"}) if number == 2 else (200, "Done.")
        await again(scheduler, scene)
        ended = await last(scheduler)
        assert (ended.outcome, ended.output["session"], server.made) == ("success", "s-2", 2)
        server.act = lambda *_: (404, {})
        await again(scheduler, scene)
        assert ((await last(scheduler)).outcome, server.made) == ("error", 3)


@pytest.mark.promise("C2")
@virtual
async def test_a_message_cut_off_by_a_crash_is_sent_again_as_the_same_message(scene):
    server = UrlAgents(scene, lambda *_: scene.sleep(60))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.until(at(hours=1) + timedelta(seconds=10))
        await die(scheduler)
    server.act = lambda *_: (200, "Done.")
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.sleep(10)
        assert (await last(scheduler)).outcome == "success"
        assert [message["runId"] for _, message in server.messages] == [server.messages[0][1]["runId"]] * 2
        assert (len(set(server.keys)), server.made) == (1, 1)


@pytest.mark.promise("C10")
@virtual
async def test_a_report_that_comes_before_the_servers_own_answer_is_taken_up(scene):
    server = UrlAgents(scene)

    async def answer(*_):
        assert not await report(scheduler, server, {"reply": "Quick.", "cost": 0.1})
        return 202, {}

    server.act = answer
    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        await scene.until(at(hours=1, minutes=1))
        ended = await last(scheduler)
        assert (ended.outcome, ended.output["reply"], ended.output["cost"]) == ("success", "Quick.", 0.1)
        assert (await scheduler.agents.get("a"))["spent_today"]["cost"] == 0.1


@pytest.mark.promise("D9", "D10")
@pytest.mark.parametrize(("error", "status"), [(None, "done"), ("it broke", "ready")])
@virtual
async def test_an_item_is_claimed_while_its_work_goes_on_elsewhere(scene, error, status):
    server = UrlAgents(scene, lambda *_: (202, {}))
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, work={"source": "queue"}, schedules={"tick": {**DAILY, "work": True}})
        await scheduler.transact(lambda tx, context: add_item(tx, context, "a", NewItem("Mend the roof")))
        await scene.until(at(hours=1, minutes=1))

        async def item():
            return (await scheduler.read(lambda tx: list_items(tx, "a", None, None, 9)))[0]

        assert (await item())["status"] == "claimed"
        await report(scheduler, server, None if error else {"reply": "It is mended."}, error)
        assert ((await item())["status"], (await item())["last_error"]) == (status, error)
        if error is None:
            assert (await last(scheduler)).output["item"] == (await item())["id"]


@pytest.mark.parametrize(
    ("body", "text", "cost"),
    [
        ({"reply": "Hi.", "cost": 0.5}, "Hi.", 0.5),
        ({"result": "Hi.", "cost": True}, "Hi.", None),
        ("Hi.", "Hi.", None),
        (None, "", None),
        ({"odd": 1}, '{"odd": 1}', None),
        ([1, 2], "[1, 2]", None),
        ({"text": "x" * 200_000, "cost": -1}, "x" * 100_000, None),
        ({"reply": 3, "message": "Hi.", "cost": "free"}, "Hi.", None),
    ],
)
def test_the_reply_is_found_in_what_a_server_says(body, text, cost):
    found = reply_in(body, "s-1")
    assert (found.text, found.session, found.cost) == (text, "s-1", cost)


@virtual
async def test_a_database_that_is_away_does_not_make_polling_busy(scene):
    server, calls = UrlAgents(scene, lambda *_: (202, {"statusUrl": "/status/1"})), []

    async def ask(watch):
        calls.append(watch.url)
        raise StoreUnreachable("The database is away.")

    async with server.scheduler() as scheduler:
        await server.begun(scheduler)
        scheduler.agents._kind.servers._polling._status = ask
        await again(scheduler, scene)
        await scene.sleep(60)
    assert 3 <= len(calls) <= 8


@pytest.mark.promise("D6")
@virtual
async def test_work_that_goes_on_elsewhere_counts_toward_max_concurrent_also_after_a_restart(scene):
    server = UrlAgents(scene, lambda *_: (202, {}))
    plan = {"schedules": {"tick": DAILY, "tock": DAILY}, "session": "ephemeral", "max_concurrent": 1}
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, **plan)
        await again(scheduler, scene)
        await scheduler.run_job("a.tock")
        await scene.sleep(5)
        assert [message["schedule"] for _, message in server.messages] == ["a.tick"]
        await die(scheduler)
    async with server.scheduler() as scheduler:
        await server.begun(scheduler, **plan)
        await scene.sleep(30)
        assert len(server.messages) == 1
        await report(scheduler, server, {"reply": "Done."})
        await scene.sleep(5)
        assert [message["schedule"] for _, message in server.messages] == ["a.tick", "a.tock"]
        assert [one["session"] for one in (await scheduler.agents.get("a"))["sessions"]] == ["s-2"]
