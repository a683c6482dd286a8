"""The class of an error decides what comes next, also when it is known only later that nothing changed outside."""

from __future__ import annotations

import asyncio
import errno
import http.client
import itertools
import ssl
import urllib.error

import httpx
import pytest

from tests.workflows.mailroom import fails, virtual
from wakeful import Applied, ApprovalNeeded, Interval, Prepared, TransientError, Workflow, ids
from wakeful.domains.workflows.failures import classify, deciding, is_refused, without_change
from wakeful.domains.workflows.views import workflow_view
from wakeful.testing import WorkflowTest

REQUEST = httpx.Request("POST", "http://bank.test/")


def answered(status):
    """The error of an HTTP client for an answer with that status."""
    return httpx.HTTPStatusError(f"status {status}", request=REQUEST, response=httpx.Response(status, request=REQUEST))


def times_of(room, phase):
    return [when for when, called in room.calls if called == phase]


@pytest.mark.promise("K11", "K12")
@virtual
async def test_a_transient_error_after_which_nothing_had_changed_backs_off(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(ConnectionError("no route"), times=4)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        row = await room.row(scheduler)
        assert (row.issue, row.failures) == ("transient", 1)
        assert "no route" in row.issue_message
        await room.sleep("10m")
        waits = [(later - before).total_seconds() for before, later in itertools.pairwise(times_of(room, "mutate"))]
        assert [round(wait) for wait in waits] == [10, 20, 40, 80]
        assert room.ledger == ["a"]
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11", "K12")
@virtual
async def test_a_mistake_in_mutate_after_which_nothing_had_changed_is_a_logic_error(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(KeyError("subject"), times=99)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        assert room.phases().count("mutate") == 1
        row = await room.row(scheduler)
        assert row.issue == "logic"
        assert "subject" in row.issue_message
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        assert (await room.attempts(scheduler))[-1].status == "failed:logic"
        assert await room.events(scheduler) == {"a": "pending"}
        room.act.clear()
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K11", "K16")
@virtual
async def test_the_error_of_mutate_and_its_trace_are_shown_whatever_reconcile_fails_with(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(KeyError("iban"))
    room.act["reconcile"] = fails(OSError("the bank is away"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        issue = (await scheduler.read(lambda tx: workflow_view(tx, "mailroom")))["issue"]
        assert "mutate failed: KeyError: 'iban'; reconcile failed: the bank is away" in issue["message"]
        assert ", in mutate" in issue["trace"]
        assert (await room.attempts(scheduler))[-1].error.endswith("reconcile failed: the bank is away")
        await room.sleep("1h")
        issue = (await scheduler.read(lambda tx: workflow_view(tx, "mailroom")))["issue"]
        assert issue["kind"] == "logic"
        assert "failed: mutate failed: KeyError: 'iban'; reconcile found that it did not happen." in issue["message"]
        assert (", in mutate" in issue["trace"], issue["trace"].splitlines()[-1]) == (True, "KeyError: 'iban'")
        assert (await scheduler.get_run(issue["run"])).trace.endswith(issue["trace"])


@pytest.mark.promise("K11", "K16")
@virtual
async def test_a_person_is_told_what_cut_a_mutation_off_and_the_last_trouble_of_reconcile(room):
    room.mails = ["a"]
    room.act["reconcile"] = fails(OSError("the bank is away"), times=99)

    async def die(ctx):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    room.act["mutate"] = die
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1d")
        row = await room.row(scheduler)
        first = next(one for one in await room.attempts(scheduler) if one.status == "crashed")
        assert (row.issue, row.backoff_until) == ("reconciliation", None)
        assert row.issue_message == f"{first.error}; reconcile failed: the bank is away"


@pytest.mark.promise("K11", "K12")
@virtual
async def test_a_refusal_after_which_nothing_had_changed_asks_for_approval_of_the_same_change(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(answered(401))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        row = await room.row(scheduler)
        assert row.issue == "approval"
        assert await room.events(scheduler) == {"a": "reserved"}
        run = ids.run_text((await room.attempts(scheduler))[-1].id)
        await room.act_on(scheduler, "approve", run, who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]
        assert room.phases().count("prepare") == 2  # once for the mail, once to look for more


@pytest.mark.promise("K11")
@virtual
async def test_a_crash_after_which_nothing_had_changed_is_tried_again_at_once_and_the_next_time_later(room):
    room.mails = ["a"]

    async def die(ctx):
        if room.phases().count("mutate") <= 3:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)

    room.act["mutate"] = die
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("2m")
        waits = [(later - before).total_seconds() for before, later in itertools.pairwise(times_of(room, "mutate"))]
        assert [round(wait) for wait in waits] == [0, 10, 20]
        assert room.ledger == ["a"]


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("error", [TransientError("not confirmed yet"), ApprovalNeeded("Pay it?"), answered(403)])
def test_an_error_after_a_call_of_mutate_that_ended_well_is_uncertain(error, plain):
    workflow, bank, asked = Workflow("bank"), [], []
    pay = workflow.consumer("pay", subscribes=["bills"])

    @pay.prepare
    async def prepare(ctx, state):
        bills = await ctx.peek("bills", limit=1)
        return Prepared({"bills": [bill.id for bill in bills]}, [bill.payload for bill in bills])

    async def mutate(ctx, prepared):
        await ctx.call(bank.extend, prepared.data)
        raise error

    def mutate_here(ctx, prepared):
        ctx.call(bank.extend, prepared.data)
        raise error

    pay.mutate(mutate_here if plain else mutate)

    @pay.reconcile
    async def reconcile(ctx, prepared):
        asked.append(list(bank))
        return Applied()

    with WorkflowTest(workflow) as test:
        test.publish("bills", 10)
        test.advance("1h")
        assert (bank, asked) == ([10], [[10]])
        assert [run["workflow_status"] for run in test.runs()][-2:] == ["paused:reconciliation", "committed"]


def hurries(posted):
    """An act that gives up on a call after five seconds, and goes on as if nothing had been called."""

    async def post():
        await asyncio.sleep(60)
        posted.append("a")

    async def act(ctx):
        try:
            await asyncio.wait_for(ctx.call(post), 5)
        except TimeoutError:
            ctx.log.debug("swallowed")

    return act


@pytest.mark.promise("K12")
@virtual
async def test_a_cancelled_call_in_mutate_is_uncertain_even_when_the_handler_swallows_it(room):
    room.mails, posted = ["a"], []
    room.act["mutate"] = hurries(posted)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        assert room.phases().count("reconcile") == 1
        first = next(one for one in await room.attempts(scheduler) if one.reserved)
        assert (first.status, first.mutation, first.failure) == ("paused:reconciliation", "in_flight", "transient")
        assert "cancelled" in first.error
        assert posted == []


@pytest.mark.promise("K12")
@virtual
async def test_a_cancelled_call_in_prepare_is_transient_even_when_the_handler_swallows_it(room):
    room.mails = ["a"]
    room.act["prepare"] = hurries([])
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("8s")
        row = await room.row(scheduler)
        assert row.issue == "transient"
        assert "cancelled" in row.issue_message
        assert room.phases().count("mutate") == 0


@pytest.mark.promise("K11", "K16")
@pytest.mark.parametrize(("status", "likely"), [(401, "did_not_happen"), (429, "did_not_happen"), (500, None)])
@virtual
async def test_a_person_is_told_that_a_refused_change_most_likely_did_not_happen(room, status, likely):
    room.mails, room.reconciles = ["a"], False
    room.act["mutate"] = fails(answered(status))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        attempt = (await room.attempts(scheduler))[-1]
        assert attempt.failure == ("approval" if status == 401 else "transient")
        issue = (await scheduler.read(lambda tx: workflow_view(tx, "mailroom")))["issue"]
        assert issue["likely"] == likely
        assert ("most likely it did not happen" in issue["message"]) == (likely is not None)


@pytest.mark.promise("K12")
@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ConnectionError("no route"), "transient"),
        (TimeoutError("too slow"), "transient"),
        (httpx.ConnectError("no route"), "transient"),
        (httpx.ReadTimeout("too slow"), "transient"),
        (httpx.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol."), "logic"),
        (httpx.LocalProtocolError("Illegal header value"), "logic"),
        (answered(503), "transient"),
        (answered(429), "transient"),
        (answered(404), "logic"),
        (urllib.error.URLError(ConnectionRefusedError("no")), "transient"),
        (urllib.error.URLError("unknown url type: foo"), "logic"),
        (urllib.error.HTTPError("http://bank.test/", 502, "Bad gateway", None, None), "transient"),
        (urllib.error.HTTPError("http://bank.test/", 404, "Not found", None, None), "logic"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "transient"),
        (urllib.error.URLError(OSError(errno.EHOSTUNREACH, "No route to host")), "transient"),
        (http.client.IncompleteRead(b""), "transient"),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), "transient"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "logic"),
        (RuntimeError("connection timed out"), "logic"),
        (OSError(errno.ENOSPC, "disk full"), "logic"),
    ],
)
def test_a_network_error_outside_of_a_call_is_transient_where_its_type_says_so(error, failure):
    assert classify(error, "handler") == failure


@pytest.mark.promise("K12")
@pytest.mark.parametrize(
    ("errors", "status", "said"),
    [
        ([ConnectionError("reset"), ConnectionRefusedError("no")], "paused:transient", "Trying again soon: reset."),
        ([TransientError("busy")], "paused:transient", "Trying again soon: busy."),
        ([ApprovalNeeded("Go?")], "paused:approval", "Waiting for your approval: Go?"),
        ([TransientError("busy"), KeyError("iban")], "failed:logic", "busy; KeyError: 'iban'"),
    ],
)
def test_a_group_of_errors_that_mean_the_same_is_one_of_them(errors, status, said):
    workflow = Workflow("groups")

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state):
        async def fetch(error):
            raise error

        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(fetch(error))

    with WorkflowTest(workflow) as test:
        assert test.runs()[0]["workflow_status"] == status
        issue = test.workflow()["issue"]
        assert said in issue["message"]
        assert (", in fetch" in (issue["trace"] or "")) == (status == "failed:logic")


@pytest.mark.promise("K11", "K12")
def test_a_group_of_errors_in_mutate_says_that_nothing_changed_only_if_all_of_them_do():
    busy, refused, wrong = TransientError("busy"), ConnectionRefusedError("no"), KeyError("iban")
    assert deciding(ExceptionGroup("", [busy, ExceptionGroup("", [busy])]), "mutate") is busy
    assert deciding(ExceptionGroup("", [refused]), "mutate") is refused
    for others in (refused, wrong):
        mixed = ExceptionGroup("", [busy, others])
        assert deciding(mixed, "mutate") is mixed
        assert (classify(mixed, "mutate"), is_refused(mixed, "mutate")) == ("reconciliation", False)
    mixed = ExceptionGroup("", [refused, wrong])
    assert deciding(mixed, "mutate") is mixed


@pytest.mark.promise("K12")
def test_an_error_with_a_status_of_its_own_is_no_answer_of_a_server():
    error = RuntimeError("mine")
    error.status = error.code = 503
    assert classify(error, "handler") == "logic"


class Refusal(Exception):
    """What clients of other services raise: with a status of the error itself, and no answer to be had."""

    def __init__(self, **has):
        super().__init__("refused")
        vars(self).update(has)

    @property
    def response(self):
        message = "no answer is set"
        raise RuntimeError(message)


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize("name", ["code", "status", "status_code", "http_status"])
def test_a_status_is_recognised_wherever_the_error_of_a_call_carries_it(name):
    assert classify(Refusal(**{name: 429}), "call") == "transient"
    assert classify(Refusal(**{name: 401}), "call") == "approval"
    assert is_refused(Refusal(**{name: 402}), "mutate")
    assert not is_refused(Refusal(**{name: "402"}), "mutate")


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize("phase", ["prepare", "mutate"])
@virtual
async def test_an_error_that_no_store_takes_is_of_its_class_all_the_same(room, phase):
    room.mails, room.reconciles = ["a"], False
    async with room.open() as scheduler:
        await scheduler.start()
        room.act[phase] = fails(FileNotFoundError("in\0box/\udcff.csv"))
        await room.sleep("10m")
        issue = (await scheduler.workflows.get("mailroom"))["issue"]
        assert issue["kind"] == ("logic" if phase == "prepare" else "reconciliation")
        assert "in\ufffdbox/?.csv" in issue["message"]


@pytest.mark.parametrize(
    ("error", "failure", "refused"),
    [
        (answered(401), "approval", True),
        (answered(429), "transient", True),
        (answered(422), "logic", True),
        (answered(409), "logic", False),
        (answered(408), "transient", False),
        (answered(500), "transient", False),
        (ConnectionRefusedError("no"), "transient", True),
        (ConnectionResetError("gone"), "transient", False),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "transient", False),
        (httpx.ConnectError("no route"), "transient", True),
        (httpx.ReadTimeout("too slow"), "transient", False),
        (httpx.UnsupportedProtocol("no protocol"), "logic", True),
        (KeyError("subject"), "logic", False),
    ],
)
def test_what_an_error_in_mutate_says_about_the_change(error, failure, refused):
    assert classify(error, "mutate") == "reconciliation"
    assert (without_change(error, "mutate"), is_refused(error, "mutate")) == (failure, refused)
