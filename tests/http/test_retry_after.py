"""What a server that is busy asks for is honoured, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from wakeful import Every, Scheduler
from wakeful.domains.http import HttpSettings, install
from wakeful.domains.http.answer import retry_at
from wakeful.testing import VirtualClock, run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def anywhere(_host, _port):
    return ["93.184.216.34"]


def story(answers, duration, **options):
    """When each run began, in seconds from the first, and how it ended; the last answer is repeated."""
    clock = VirtualClock(NOW)

    def answer(_request):
        status, headers = answers.pop(0) if len(answers) > 1 else answers[0]
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(b"said"))

    async def main():
        scheduler = Scheduler("sqlite://", clock=clock)
        install(scheduler, HttpSettings(transport=httpx.MockTransport(answer), resolve=anywhere))
        async with scheduler:
            payload = {"url": "https://example.org/"}
            await scheduler.add_job("check", Every("6h", anchor=NOW), kind="http", payload=payload, **options)
            await scheduler.start()
            await scheduler.run_job("check")
            await clock.sleep(duration)
            runs = [one for one in reversed(await scheduler.get_run_log("check")) if one.started_at is not None]
            job = await scheduler.get_job("check")
            return [((one.started_at - NOW).total_seconds(), one.outcome) for one in runs], job.consecutive_errors

    return run(main(), clock)


def reply(status, **headers):
    return status, headers


def test_a_busy_server_is_asked_again_when_it_says():
    starts, errors = story([reply(429, **{"Retry-After": "120"}), reply(200)], "1h")
    assert [(round(at), outcome) for at, outcome in starts] == [(0, "error"), (120, "success")]
    assert errors == 0


def test_a_date_is_as_good_as_seconds():
    starts, _ = story([reply(503, **{"Retry-After": "Thu, 01 Jan 2026 00:10:00 GMT"}), reply(200)], "1h")
    assert [(round(at), outcome) for at, outcome in starts] == [(0, "error"), (600, "success")]


def test_asking_again_ends_after_a_few_times():
    starts, errors = story([reply(429, **{"Retry-After": "20"})], "1h")
    assert len(starts) == 5
    assert errors == 1


def test_a_busy_server_that_names_no_time_leaves_it_to_the_job():
    starts, errors = story([reply(429)], "1h")
    assert (len(starts), errors) == (1, 1)


def test_another_answer_is_not_tried_again_whatever_it_says():
    starts, errors = story([reply(404, **{"Retry-After": "20"})], "1h")
    assert (len(starts), errors) == (1, 1)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 2),
        ("0.25", 1),
        ("120.0", 120),
        ("9" * 30, 86_400),
        ("1.", None),
        (".5", None),
        ("1.5s", None),
        ("1e3", None),
        ("999999999999", 86_400),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2038 00:00:00 GMT", 86_400),
        ("Thu, 01 Jan 2026 00:01:00", 60),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("٣", None),
    ],
)
def test_when_to_ask_again_is_read_within_bounds(text, seconds):
    found = retry_at({"retry-after": text}, NOW)
    assert found == (None if seconds is None else NOW + timedelta(seconds=seconds))
