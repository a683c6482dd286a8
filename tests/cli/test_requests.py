"""Jobs that send a request, on the command line: added, shown, changed, run and refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.http.targets import target
from wakeful import Every, Scheduler

ADD = ("add", "check", "--every", "5m", "--url", "https://example.org/health")


@pytest.fixture(scope="module")
def site():
    with target() as made:
        yield made


def test_adding_a_request_prints_what_is_sent_and_when(wakeful):
    answer = wakeful(*ADD, "--method", "head")
    assert answer.code == 0
    assert answer.out.splitlines()[2] == "  what   HEAD https://example.org/health"
    assert "next" in answer.out


def test_what_is_said_is_what_is_stored(wakeful):
    options = ("--method", "POST", "--header", "Accept: text/plain", "--header", "X-A:b: c", "--body", "hello")
    job = wakeful(*ADD, *options, "--expect", "200,204", "--expect", "3xx", "--redirects", "refuse", "--json").json
    assert (job["kind"], job["source"]) == ("http", "cli")
    assert job["payload"] == {
        "url": "https://example.org/health",
        "method": "POST",
        "headers": {"Accept": "text/plain", "X-A": "b: c"},
        "body": "hello",
        "expect": [200, 204, "3xx"],
        "follow_redirects": False,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*ADD, "--", "true"), "--url and a command after -- are two things to do"),
        (("add", "check", "--every", "5m", "--method", "POST"), "--method goes with --url ADDRESS"),
        ((*ADD, "--cwd", "/"), "--cwd is for commands"),
        ((*ADD, "--env", "A=1"), "--env is for commands"),
        ((*ADD, "--header", "nonsense"), "write --header 'Accept: text/html'"),
        ((*ADD, "--expect", "ok"), "expect takes status codes such as 200 or 2xx"),
        ((*ADD, "--redirects", "maybe"), "--redirects is follow or refuse"),
        (("add", "check", "--every", "5m", "--url", "example.org"), "must begin with http:// or https://"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_stored(wakeful, words, said):
    answer = wakeful(*words)
    assert answer.code == 2
    assert said in answer.err
    assert wakeful("list", "--json").out.strip() in ("", "[]")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--url", "http://ann:pw@example.org/"), "is not encrypted: use https"),
        (("--url", "https://intranet/"), "has no dot"),
        (("--url", "https://example.org/#top"), "after # is not sent"),
        (("--url", "https://example.org/", "--body", "x"), "did you mean --method POST?"),
    ],
)
def test_what_looks_wrong_about_an_address_is_noted(wakeful, words, said):
    answer = wakeful("add", "check", "--every", "5m", *words)
    assert answer.code == 0
    assert said in answer.err


def test_a_loopback_address_is_nothing_to_note(wakeful):
    answer = wakeful("add", "check", "--every", "5m", "--url", "http://ann:pw@localhost:8080/")
    assert answer.err.count("Note:") == 1  # that no server is running
    assert "ann:***@localhost" in answer.out


def test_show_lists_the_request(wakeful):
    wakeful(*ADD, "--header", "Accept: text/plain", "--expect", "204")
    shown = wakeful("show", "check").out
    assert "GET https://example.org/health" in shown
    assert "Accept: text/plain" in shown
    assert "[204]" in shown
    assert "timeout: 1m" in shown


def test_edit_changes_what_is_named_and_leaves_the_rest(wakeful):
    wakeful(*ADD, "--method", "POST", "--body", "x", "--expect", "204")
    assert wakeful("edit", "check", "--url", "https://example.org/new", "--expect", "none").code == 0
    job = wakeful("show", "check", "--json").json
    assert job["payload"] == {"url": "https://example.org/new", "method": "POST", "body": "x"}
    assert wakeful("edit", "check", "--body", "none", "--method", "none").code == 0
    assert wakeful("show", "check", "--json").json["payload"] == {"url": "https://example.org/new"}


def test_a_job_stays_of_its_kind(wakeful, stocked):
    wakeful(*ADD)
    assert "only jobs that send a request" in wakeful("edit", "job", "--url", "https://example.org/").err
    assert "only jobs that run a command" in wakeful("edit", "check", "--", "true").err


def test_run_sends_the_request_without_a_server_and_prints_the_answer(wakeful, site):
    wakeful("add", "check", "--every", "1d", "--url", f"{site.url}/ok")
    answer = wakeful("run", "check")
    assert (answer.code, answer.out) == (0, "all is well\n")
    assert wakeful("logs", "check").out == "all is well\n"
    assert "GET http" in wakeful("run", "check", "--dry-run").out


def test_run_fails_as_the_answer_does(wakeful, site):
    wakeful("add", "check", "--every", "1d", "--url", f"{site.url}/status/404")
    answer = wakeful("run", "check")
    assert answer.code == 1
    assert "answered 404, and 2xx was expected" in answer.err


def test_a_command_loads_no_http_library(here):
    program = "import sys; from wakeful.cli import main; main(sys.argv[1:]); print('httpx' in sys.modules)"
    command = [sys.executable, "-c", program, *ADD]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.fixture
def guarded(store, site):
    """A job whose address came over the network, and leads to loopback."""

    async def main():
        async with Scheduler(f"sqlite:///{store}") as scheduler:
            payload = {"url": f"{site.url}/ok"}
            await scheduler.add_job("check", Every("1d"), kind="http", payload=payload, source="api")

    asyncio.run(main())


@pytest.mark.usefixtures("guarded")
def test_a_request_from_the_network_obeys_the_policy_here_too(wakeful, here):
    assert "obeys server.outbound" in wakeful("show", "check").out
    assert "server.outbound.allow" in wakeful("run", "check").err
    (here / "wakeful.yaml").write_text("server: {outbound: {allow: [127.0.0.1]}}\n")
    assert wakeful("run", "check").code == 0


@pytest.mark.usefixtures("guarded")
def test_an_operators_own_address_is_trusted_and_what_else_is_edited_is_not(wakeful, site):
    wakeful("edit", "check", "--expect", "200")
    assert wakeful("run", "check").code == 1
    wakeful("edit", "check", "--url", f"{site.url}/ok")
    assert wakeful("run", "check").code == 0
