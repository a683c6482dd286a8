"""The rules of sending as tables: ladder, rate, quiet hours, routes, which results are sent, digests, long texts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.samples import job
from wakeful.domains.delivery.outbox import armed_at
from wakeful.domains.delivery.routing import Interaction, route
from wakeful.domains.delivery.rules import (
    Rate,
    Rules,
    Tried,
    after_attempt,
    changed,
    quiet_until,
    read_rate,
    read_rules,
    rules_data,
    wanted,
)
from wakeful.domains.delivery.summary import FailureSubject, failure, output_text, success, work_of
from wakeful.domains.delivery.texts import DigestEntry, digest, split
from wakeful.errors import InvalidSetting

NOW = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)
FAIL = Tried(ok=False, error="no")


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    ("tried", "attempts", "status", "seconds"),
    [
        (Tried(ok=True), 1, "sent", None),
        (FAIL, 1, "pending", 5),
        (FAIL, 2, "pending", 25),
        (FAIL, 3, "pending", 120),
        (FAIL, 4, "pending", 600),
        (FAIL, 5, "failed", None),
        (FAIL._replace(permanent=True), 1, "failed", None),
        (FAIL._replace(retry_after=60_000), 1, "pending", 60),
        (FAIL._replace(retry_after=1_000), 2, "pending", 25),  # never shorter
        (FAIL._replace(unclear=True), 1, "unknown", 5),
        (FAIL._replace(unclear=True), 5, "failed", None),
    ],
)
def test_an_attempt_means_this(tried, attempts, status, seconds):
    verdict = after_attempt(tried, attempts, Rules(), NOW)
    assert verdict == (status, None if seconds is None else NOW + seconds * 1000)


def test_more_attempts_than_the_ladder_has_steps_repeat_the_last():
    assert after_attempt(FAIL, 9, Rules(attempts=12), NOW).next_at == NOW + 600_000


@pytest.mark.parametrize(
    ("text", "rate"), [("20/m", Rate(20, 60_000)), ("1/s", Rate(1, 1_000)), (" 500 / h ", Rate(500, 3_600_000))]
)
def test_rates_are_read(text, rate):
    assert read_rate(text) == rate


@pytest.mark.parametrize("value", ["", "fast", "0/m", "20", "20/d", "-1/s", 20, None, "1.5/s", "20/m/s"])
def test_a_rate_that_cannot_be_read_is_refused_with_an_example(value):
    with pytest.raises(InvalidSetting, match="20/m"):
        read_rate(value)


def test_rules_are_stored_as_they_are_written():
    given_rules = {"rate": "20/m", "attempts": 7, "max_age": "24h", "quiet_hours": {"start": "22:00", "end": "07:00"}}
    data = rules_data(read_rules(given_rules), "Europe/Berlin")
    assert data == {
        "attempts": 7,
        "rate": "20/m",
        "max_age": "1d",
        "quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "Europe/Berlin", "digest": True},
    }
    assert rules_data(read_rules(data), "UTC") == data


def test_quiet_hours_take_the_forms_of_active_hours_and_a_wrong_one_shows_them():
    long = read_rules({"quiet_hours": {"start": "22:00", "end": "07:00"}})
    assert read_rules({"quiet_hours": "22:00-07:00"}) == long
    for wrong in (22, ["22:00", "07:00"], {"begin": "22:00"}):
        with pytest.raises(InvalidSetting, match="hours such as 22:00-07:00"):
            read_rules({"quiet_hours": wrong})


@pytest.mark.promise("X19")
@pytest.mark.parametrize(
    ("clock", "end"), [("21:59", None), ("22:00", "07:00"), ("03:00", "07:00"), ("06:59", "07:00"), ("07:00", None)]
)
def test_quiet_hours_may_cross_midnight(clock, end):
    rules = read_rules({"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "UTC"}})
    moment = datetime.fromisoformat(f"2026-01-02T{clock}:00+00:00")
    found = quiet_until(rules, int(moment.timestamp() * 1000))
    assert (None if found is None else f"{datetime.fromtimestamp(found / 1000, UTC):%H:%M}") == end


HEARD = [
    Interaction("bot", "a", "ann", 5, 1),
    Interaction("", "b", "bob", 9, 2),
    Interaction("bot", "gone", "x", 99, 3),
]


@pytest.mark.promise("A10")
@pytest.mark.parametrize(
    ("to", "agent", "names", "heard", "expected"),
    [
        ("b", None, ["a", "b"], HEARD, ("b", None)),
        ("last", "bot", ["a", "b"], HEARD, ("a", "ann")),  # the agent's own, though others wrote later
        ("last", "other", ["a", "b"], HEARD, ("b", "bob")),  # else anyone's
        ("last", None, ["a", "b"], HEARD, ("b", "bob")),
        ("last", None, ["a", "b"], [*HEARD, Interaction("bot", "a", "ann", 10, 4)], ("a", "ann")),  # the latest of all
        ("last", None, ["a", "b"], [*HEARD, Interaction("bot", "a", "ann", 8, 4)], ("b", "bob")),  # by its time
        ("last", None, ["z", "c"], HEARD, ("z", None)),  # no message came through these: the first registered
        ("last", None, ["z", "c"], [], ("z", None)),
        ("last", None, [], HEARD, (None, None)),
    ],
)
def test_a_route_is_chosen(to, agent, names, heard, expected):
    assert route(to, agent, names, heard)[:2] == expected


def test_a_route_to_nowhere_has_a_reason():
    assert "no connector is registered" in route("last", None, [], []).reason
    assert route("phone", None, ["disk"], []) == ("phone", None, "no connector named phone is registered")


@pytest.mark.parametrize(
    ("on", "sent"),
    [
        ("any", {"success", "error", "timeout", "crashed", "unknown"}),
        ("success", {"success"}),
        ("failure", {"error", "timeout", "crashed", "unknown"}),
        ("change", {"success", "error", "timeout", "crashed", "unknown"}),
    ],
)
def test_which_results_are_sent(on, sent):
    outcomes = ("success", "noop", "skipped", "deferred", "error", "timeout", "crashed", "cancelled", "unknown")
    assert {outcome for outcome in outcomes if wanted(on, outcome, last=True)} == sent
    assert {outcome for outcome in outcomes if wanted(on, outcome, last=False)} == sent & {"success"}


def test_a_change_is_one_of_outcome_or_output():
    assert not changed(None, "success", "a")
    assert changed(None, "failure", "a")
    assert not changed(("success", "a"), "success", "a")
    assert changed(("success", "a"), "success", "b")
    assert changed(("success", "a"), "failure", "a")


@pytest.mark.promise("X19")
def test_a_digest_has_every_message_in_order_in_parts_of_a_readable_length():
    (part,) = digest([DigestEntry("22:05", "backup: error", "broken"), DigestEntry("23:00", None, "hello")])
    assert part == ("2 messages from quiet hours", "22:05 backup: error\nbroken\n\n23:00\nhello", 2)
    parts = digest([DigestEntry(f"{number:02}", None, "x" * 1500) for number in range(100)])
    assert parts[0].title == f"100 messages from quiet hours, part 1 of {len(parts)}"
    assert sum(part.entries for part in parts) == 100
    assert all(len(part.text) <= 20_000 for part in parts)
    assert "".join(part.text for part in parts).count("x") == 150_000
    assert [part.entries for part in digest([DigestEntry("1", None, "y" * 50_000), DigestEntry("2", None, "z")])] == [
        1,
        1,
    ]


@given(st.text(alphabet="ab \n", max_size=300), st.integers(8, 60))
def test_parts_are_short_enough_and_lose_no_letter(text, most):
    parts = split(text, most)
    assert all(len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_parts_end_between_paragraphs_where_they_can():
    assert split("one one\n\ntwo two\n\nthree", 18) == ["one one\n\ntwo two", "three"]
    assert split("aaaa bbbb", 5) == ["aaaa", "bbbb"]
    assert split("abcdefgh", 3) == ["abc", "def", "gh"]


@pytest.mark.promise("X20")
def test_a_message_about_a_failure_is_enough_to_act_on():
    about = FailureSubject("backup", "./backup.sh --full", "error", "exited with code 3", "line 1\nline 2", run="run_1")
    about = about._replace(errors=3, since=NOW - 7_200_000, next_at=NOW + 60_000, link="https://example.org/runs/run_1")
    title, text = failure(about)
    assert title == "backup: error"
    assert text == (
        "backup failed (error).\n"
        "It runs: ./backup.sh --full\n"
        "Failing since 2026-01-01 10:00 UTC, 3 times in a row.\n"
        "Error: exited with code 3\n\n"
        "Last lines of output:\nline 1\nline 2\n\n"
        "Next: it starts again at 2026-01-01 12:01 UTC.\n"
        "Look closer: wakeful logs run_1\n"
        "https://example.org/runs/run_1"
    )
    assert "wakeful resume backup" in failure(about._replace(disabled=True))[1]
    berlin = failure(about._replace(zone="Europe/Berlin", notes=("Copies the photos",)))[1]
    assert "It runs: ./backup.sh --full\nNote: Copies the photos\n" in berlin
    assert "./backup.sh --full\nIt ran on vault-1.\nFailing since" in failure(about._replace(node="vault-1"))[1]
    assert "again at 2026-01-01 13:01 CET (12:01 UTC)." in berlin
    assert "does not start again by itself" in failure(about._replace(next_at=None))[1]
    assert "10:00 UTC, 2 times in a row." in failure(about._replace(errors=2))[1]
    assert "in a row" not in failure(about._replace(errors=1))[1]
    much = failure(about._replace(output="\n".join(f"line {number}" for number in range(1, 31))))[1]
    assert "Last lines of output:\nline 11\n" in much
    assert "\nline 30\n" in much


@pytest.mark.parametrize(
    ("kind", "output", "text"),
    [
        ("command", {"exit_code": 0, "output": "hi\n"}, "hi\n"),
        ("http", {"status": 200, "body": "ok"}, "ok"),
        ("agent", {"reply": "done", "cost": 1}, "done"),
        ("job", "plain", "plain"),
        ("job", None, ""),
        ("job", {"a": 1}, '{\n  "a": 1\n}'),
        ("job", {"truncated": True, "length": 9, "beginning": "begin"}, "begin"),
    ],
)
def test_what_a_run_said_is_found(kind, output, text):
    assert output_text(kind, output) == text


def test_long_output_is_cut_and_says_where_the_rest_is():
    title, text = success("backup", "x" * 30_000, "run_1")
    assert (title, text[:20_000]) == ("backup: success", "x" * 20_000)
    assert text[20_000:] == "\n... (10000 more characters: wakeful logs run_1)"


def test_what_a_request_does_is_shown_without_its_secrets():
    assert work_of("http", {"url": "https://u:pw@example.org/a?key=1"}) == "GET https://example.org/a"


def test_a_run_that_is_queued_earlier_is_not_delayed_by_what_is_to_be_sent_later():
    _, state = job(1, due_at=NOW)
    for queued, due_at in ((1, NOW), (0, NOW + 9_000)):
        armed = armed_at(state._replace(queued=queued), NOW + 9_000)
        assert (armed.due_at, armed.next_at) == (due_at, NOW + 9_000)


@pytest.mark.promise("X20")
@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("command", {"argv": ["./backup.sh", "a b"]}, "./backup.sh 'a b'"),
        ("http", {"url": "https://u:p@example.org/x?key=1", "method": "POST"}, "POST https://example.org/x"),
        (
            "agent",
            {"agent": "fox", "runner": {"preset": "claude"}, "prompt": "Look at\nthe mail."},
            "the agent fox (claude): Look at the mail.",
        ),
        ("agent", {"agent": "fox", "runner": {"start": ["./ask", "-p"]}, "prompt": "Hi"}, "the agent fox (./ask): Hi"),
        (
            "agent",
            {"agent": "fox", "runner": {"url": "http://u:p@h/?k=1"}, "prompt_file": "p.md"},
            "the agent fox (http://h/): p.md",
        ),
        ("agent", {"agent": "fox", "does": "beat"}, "the agent fox"),
        ("session", {"prompt": "Check\nthe mail"}, "a session: Check the mail"),
        ("report", {"a": 1}, "report"),
        ("report", None, None),
    ],
)
def test_what_a_job_does_is_said_in_one_line_without_secrets(kind, payload, expected):
    assert work_of(kind, payload) == expected
