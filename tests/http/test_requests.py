"""Requests to real servers on loopback: what becomes of good answers, bad ones, slow ones, and ones that never end."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest

from tests.http.targets import GIGABYTE
from wakeful import Every, Scheduler
from wakeful.domains.http import HttpSettings, install
from wakeful.domains.http.answer import HttpResponse, body_text


def ask(payload, settings=None, **options):
    """The run of a job with this payload."""

    async def main():
        scheduler = Scheduler("sqlite://")
        if settings is not None:
            install(scheduler, settings)
        async with scheduler:
            job = await scheduler.add_job("check", Every("1h"), kind="http", payload=payload, **options)
            return await scheduler.run_here(job)

    return asyncio.run(main())


def test_a_good_answer_is_the_output(site):
    run = ask({"url": f"{site.url}/ok"})
    assert run.outcome == "success"
    output = run.output
    assert (output["status"], output["body"]) == (200, "all is well\n")
    assert output["url"] == f"{site.url}/ok"
    assert output["headers"]["content-type"] == "text/plain"
    assert "set-cookie" not in output["headers"]
    assert output["elapsed_ms"] >= 0
    assert site.seen[0]["headers"]["Host"] == f"127.0.0.1:{site.port}"


def test_method_headers_and_body_are_sent_as_written(site):
    ask({"url": f"{site.url}/echo?a=1&b=%20", "method": "post", "headers": {"X-Team": "ops"}, "body": "grüß"})
    ask({"url": f"{site.url}/echo", "method": "PUT", "body": {"a": [1, 2]}})
    first, second = site.seen
    assert (first["method"], first["path"], first["body"]) == ("POST", "/echo?a=1&b=%20", "grüß")
    assert first["headers"]["X-Team"] == "ops"
    assert second["headers"]["Content-Type"] == "application/json"
    assert second["body"] == '{"a": [1, 2]}'


def test_a_user_and_password_in_the_address_are_sent_as_basic_authorization_and_kept_nowhere(site):
    run = ask({"url": f"http://ann:pa%3Ass-word@127.0.0.1:{site.port}/echo"})
    assert site.seen[0]["headers"]["Authorization"] == "Basic YW5uOnBhOnNzLXdvcmQ="
    assert "YW5uOnBhOnNzLXdvcmQ=" not in str(run.output)
    assert run.output["url"] == f"{site.url}/echo"


@pytest.mark.parametrize(
    ("path", "expect", "outcome"),
    [
        ("/status/204", None, "success"),
        ("/status/404", None, "error"),
        ("/status/404", [404], "success"),
        ("/status/404", "4xx", "success"),
        ("/status/200", [204], "error"),
        ("/status/503", [200, "5xx"], "success"),
        ("/to?url=/ok", 302, "success"),
    ],
)
def test_the_expected_codes_decide(site, path, expect, outcome):
    run = ask({"url": f"{site.url}{path}", **({"expect": expect} if expect is not None else {})})
    assert run.outcome == outcome


def test_an_unexpected_answer_is_reported_and_kept(site):
    run = ask({"url": f"{site.url}/status/404?token=hidden-token"})
    assert run.error == f"{site.url}/status/404 answered 404, and 2xx was expected: this is 404"
    assert run.output["status"] == 404
    assert "hidden-token" not in f"{run.error} {run.output}"


@pytest.mark.parametrize(
    ("path", "tried_again"),
    [
        ("/status/503", True),
        ("/status/500", True),
        ("/status/408", True),
        ("/status/404", False),
        ("/status/401", False),
    ],
)
def test_what_is_likely_to_pass_is_tried_again_by_the_jobs_own_retries(site, path, tried_again):
    async def main():
        async with Scheduler("sqlite://") as scheduler:
            retry = {"delays": ["1h"], "on": "transient"}
            job = await scheduler.add_job(
                "check", Every("1d"), kind="http", payload={"url": f"{site.url}{path}"}, retry=retry
            )
            await scheduler.run_here(job)
            return [run.status for run in await scheduler.get_run_log(job)]

    assert asyncio.run(main()) == (["queued", "done"] if tried_again else ["done"])


def test_a_port_where_nothing_listens_is_likely_to_pass():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        run = ask({"url": f"http://127.0.0.1:{free.getsockname()[1]}/?key=very-secret"})
    assert (run.outcome, run._details.error_type) == ("error", "RequestFailedForNow")
    assert "cannot be reached" in run.error
    assert "very-secret" not in run.error


def test_a_host_that_cannot_be_found_is_reported():
    async def nowhere(_host, _port):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    run = ask({"url": "https://nowhere.example/"}, HttpSettings(resolve=nowhere))
    assert run.error == "the host nowhere.example cannot be found: Name or service not known"


def test_an_answer_that_breaks_off_is_an_error(site):
    run = ask({"url": f"{site.url}/broken"})
    assert run.outcome == "error"
    assert "broke off" in run.error


def test_an_answer_that_never_comes_ends_with_the_limit_of_the_request(site):
    run = ask({"url": f"{site.url}/hang", "timeout": "1s"})
    assert (run.outcome, run.error) == ("error", "there was no answer within 1s")
    assert run._details.error_type == "RequestFailedForNow"


def test_drops_do_not_stretch_the_limit(site):
    run = ask({"url": f"{site.url}/drip", "timeout": 0.5})
    assert "no answer within" in run.error


def test_the_jobs_own_limit_ends_a_request(site):
    async def main():
        async with Scheduler("sqlite://") as scheduler:
            payload = {"url": f"{site.url}/hang"}
            job = await scheduler.add_job("check", Every("1d"), kind="http", payload=payload, timeout=1)
            ended = asyncio.Event()
            scheduler.subscribe(lambda event: ended.set() if "outcome" in event.data else None)
            await scheduler.start()
            run_id = await scheduler.run_job(job)
            await ended.wait()
            return await scheduler.get_run(run_id)

    assert asyncio.run(main()).outcome == "timeout"


def test_a_job_of_this_kind_has_a_limit_of_a_minute_unless_it_says_otherwise():
    async def main():
        async with Scheduler("sqlite://") as scheduler:
            payload = {"url": "https://example.org/"}
            await scheduler.add_job("a", Every("1h"), kind="http", payload=payload)
            await scheduler.add_job("b", Every("1h"), kind="http", payload=payload, timeout="5m")
            return [(await scheduler.get_job(name)).options["timeout"] for name in ("a", "b")]

    assert asyncio.run(main()) == ["1m", "5m"]


def test_of_a_gigabyte_a_little_is_read(site):
    site.sent = 0
    run = ask({"url": f"{site.url}/endless"})
    assert run.outcome == "success"
    assert (len(run.output["body"]), run.output["truncated"]) == (64 * 1024, True)
    assert site.sent < GIGABYTE // 20


def test_what_was_packed_is_unpacked_within_bounds(site):
    assert ask({"url": f"{site.url}/packed"}).output["body"] == "unpacked"
    bomb = ask({"url": f"{site.url}/bomb"}).output
    assert (len(bomb["body"]), bomb["truncated"]) == (64 * 1024, True)


def test_a_body_is_text_by_its_own_charset_or_nothing(site):
    assert ask({"url": f"{site.url}/latin"}).output["body"] == "grün"
    assert ask({"url": f"{site.url}/picture"}).output["body"] is None


@pytest.mark.parametrize(
    "charset", ["zip", "punycode", "unicode_escape", "no-such", "\N{SNOWMAN}", "utf-8; charset=hex"]
)
def test_a_charset_that_is_none_is_read_as_utf8(charset):
    reply = HttpResponse(
        200, {"content-type": f"text/plain; charset={charset}"}, "ü\\n".encode(), truncated=False, url="", elapsed_ms=0
    )
    assert body_text(reply, 100) == ("ü\\n", False)


def test_a_request_logs_no_address(site, caplog):
    caplog.set_level(logging.DEBUG)
    ask({"url": f"{site.url}/ok?token=hidden-token", "headers": {"Authorization": "Bearer hidden-bearer"}})
    ask({"url": f"{site.url}/status/500?token=hidden-token", "headers": {"Authorization": "Bearer hidden-bearer"}})
    assert "hidden-" not in caplog.text
