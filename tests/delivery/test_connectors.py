"""Connectors against real targets on this machine: what they send, what an answer means, and what stays secret."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import resource
import sys
import threading

import pytest

from wakeful.clock import SystemClock
from wakeful.domains.delivery.apprise_urls import AppriseConnector, check_url
from wakeful.domains.delivery.configuration import ConnectorSettings
from wakeful.domains.delivery.connector import Message, Permanent, Temporary, Unclear
from wakeful.domains.delivery.local import CallConnector, CommandConnector, FileConnector, LazyCall, LogConnector
from wakeful.domains.delivery.sending import attempt
from wakeful.domains.delivery.webhook import WebhookConnector, _words, body_of, read_secret, signature
from wakeful.errors import InvalidSetting
from wakeful.threads import left_behind, watch

SECRET = "whsec_d2FrZWZ1bC10ZXN0LXNlY3JldC0wMTIzNDU2Nzg5"  # noqa: S105 - a published test vector
MESSAGE = Message("dlv_1", "output", "hello", "a: success", "a", "run_1", None, "success", "ann", 1_700_000_000_000)


def send(connector, message=MESSAGE):
    """What the attempt was."""
    boot = SystemClock().boot
    return asyncio.run(attempt(connector, message, boot))[0]


@pytest.mark.parametrize(
    ("secret", "number", "timestamp", "body", "expected"),
    [
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            '{"test": 2432232314}',
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            SECRET,
            "msg_wakeful_1",
            1700000000,
            '{"type":"deploy.finished","data":{"ok":true}}',
            "v1,Z2f7XgdqGtTcH03AZN+234vc9CAwHoM8dmGe/SrJRtI=",
        ),
        (SECRET, "msg_wakeful_2", 1700000000, "", "v1,x2LOY+T02URAv/SQf1pS+mKTW6sNr5ihZDaw/v7qg20="),
        (
            SECRET,
            "msg_wakeful_3",
            1700000000,
            '{"name":"Zoë ☕"}',
            "v1,yZeohoFqS2ZWRaB2hbNTn3GqiBFpPYR9jFOaRt23+Sc=",
        ),
    ],
)
def test_a_webhook_is_signed_as_standard_webhooks_says(secret, number, timestamp, body, expected):
    assert signature(read_secret(secret), number, timestamp, body) == expected


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!!!", "whsec_c2hvcnQ=", base64.b64encode(b"x" * 65).decode()])
def test_a_secret_that_is_none_is_refused_without_being_shown(secret):
    with pytest.raises(ValueError, match="must be whsec_ and 24 to 64") as error:
        read_secret(secret)
    assert not secret.removeprefix("whsec_") or secret.removeprefix("whsec_") not in str(error.value)


def test_a_webhook_gets_its_message_signed_with_its_own_headers(site):
    hook = WebhookConnector(f"{site.url}/ok", SystemClock(), secret=SECRET, headers={"X-Team": "ops"})
    assert send(hook).ok
    (seen,) = site.seen
    headers = {name.lower(): value for name, value in seen["headers"].items()}
    assert (seen["method"], headers["webhook-id"], headers["x-team"]) == ("POST", "dlv_1", "ops")
    timestamp = int(headers["webhook-timestamp"])
    assert abs(timestamp - SystemClock().now() // 1000) < 60
    assert headers["webhook-signature"] == signature(read_secret(SECRET), "dlv_1", timestamp, seen["body"])
    assert json.loads(seen["body"]) == {
        "type": "wakeful.output",
        "timestamp": "2023-11-14T22:13:20Z",
        "data": {
            "id": "dlv_1",
            "text": "hello",
            "title": "a: success",
            "job": "a",
            "run": "run_1",
            "agent": None,
            "outcome": "success",
        },
    }
    assert seen["body"] == body_of(MESSAGE._replace(attempt=4))  # the same for every attempt


@pytest.mark.parametrize(
    ("path", "permanent", "wait"),
    [
        ("/status/400", True, None),
        ("/status/410", True, None),
        ("/status/413", True, None),
        ("/status/429", False, None),
        ("/busy/7", False, 7_000),
        ("/status/500", False, None),
        ("/status/502", False, None),
        ("/status/503", False, None),
        ("/status/404", False, None),
        ("/to?url=/ok", False, None),  # a redirect is no delivery
    ],
)
def test_an_answer_means_this(site, path, permanent, wait):
    tried = send(WebhookConnector(f"{site.url}{path}", SystemClock()))
    assert (tried.ok, tried.permanent, tried.retry_after, tried.unclear) == (False, permanent, wait, False)
    assert tried.error.startswith("answered ")
    assert len(site.seen) == 1


def test_the_first_line_of_a_long_refusal_is_marked_as_cut():
    assert _words("no\nmore") == ": no"
    assert _words(f"{'x' * 200}") == f": {'x' * 200}"
    assert _words(f"{'x' * 201}") == f": {'x' * 199}…"


def test_a_target_that_is_not_there_was_not_reached_and_one_that_hangs_up_is_unclear(site):
    away = send(WebhookConnector("http://127.0.0.1:9/", SystemClock()))
    assert (away.ok, away.unclear) == (False, False)
    assert "cannot be reached" in away.error
    cut = send(WebhookConnector(f"{site.url}/drop", SystemClock()))
    assert (cut.ok, cut.unclear) == (False, True)


def test_the_secrets_of_a_webhook_are_in_no_error(site):
    address = f"{site.url}/repeat/planted-path?token=planted-token"
    hook = WebhookConnector(address, SystemClock(), headers={"Authorization": "Bearer planted-key"})
    assert "planted" not in repr(send(hook))
    away = WebhookConnector("http://127.0.0.1:9/services/planted-path?token=planted-token", SystemClock())
    assert send(away).error.startswith("http://127.0.0.1:9*** cannot be reached")


def test_a_file_gets_one_line_per_message_for_its_owner_alone(tmp_path):
    path = tmp_path / "deep" / "out.jsonl"
    connector = FileConnector(path)
    assert send(connector).ok
    assert send(connector, MESSAGE._replace(text="two\nlines ☕")).ok
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {**MESSAGE.data(), "kind": "output", "to": "ann", "at": "2023-11-14T22:13:20Z"}
    assert second["text"] == "two\nlines ☕"
    assert path.stat().st_mode & 0o777 == 0o600
    tried = send(FileConnector(tmp_path))
    assert (tried.ok, tried.permanent) == (False, False)
    assert "cannot be written" in tried.error


def test_a_line_that_a_full_disk_cuts_off_is_no_success_and_spoils_none_after_it(tmp_path):
    path = tmp_path / "out.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        tried = send(FileConnector(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tried.ok, path.stat().st_size) == (False, 50)
    assert "cannot be written" in tried.error
    assert send(FileConnector(path)).ok
    assert send(FileConnector(path)).ok
    _, *whole = path.read_text().splitlines()
    assert [json.loads(line)["id"] for line in whole] == ["dlv_1", "dlv_1"]


def test_the_log_gets_a_line(caplog):
    with caplog.at_level(logging.INFO, "wakeful.messages"):
        assert send(LogConnector(), MESSAGE._replace(text="one\ntwo")).ok
    assert caplog.messages == ["message dlv_1: a: success: one | two"]


def test_functions_are_called_with_the_message_async_or_not(tmp_path):
    seen = []

    async def slow(message):
        seen.append(("async", message.text, message.to))

    assert send(CallConnector(lambda message: seen.append(("sync", message.text, message.to)))).ok
    assert send(CallConnector(slow)).ok
    assert seen == [("sync", "hello", "ann"), ("async", "hello", "ann")]
    (tmp_path / "json.py").write_text(
        "from pathlib import Path\ndef send(message):\n    Path(__file__).with_name('got').write_text(message.id)\n"
    )
    path = [*sys.path]
    assert send(LazyCall("json:send", tmp_path)).ok  # beside the file, and under a name of its own
    assert (tmp_path / "got").read_text() == "dlv_1"
    assert (sys.modules["json"], sys.path) == (json, path)
    assert "cannot be loaded" in send(LazyCall("no_such_module:send", tmp_path)).error
    with pytest.raises(InvalidSetting, match="A connector is a function"):
        CallConnector("send")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Permanent("gone"), (True, None, False, "gone")),
        (Temporary("busy", retry_after=1.5), (False, 1_500, False, "busy")),
        (Unclear("who knows"), (False, None, True, "who knows")),
        (ValueError("bad"), (False, None, False, "ValueError: bad")),
    ],
)
def test_what_a_function_raises_is_what_the_attempt_was(error, expected):
    def fails(_):
        raise error

    tried = send(CallConnector(fails))
    assert (tried.permanent, tried.retry_after, tried.unclear, tried.error) == expected


@pytest.mark.promise("A8")
@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize(
    ("error", "unclear"),
    [(SystemExit(3), False), (asyncio.CancelledError("scope"), True), (TimeoutError("read timed out"), True)],
)
def test_what_would_end_its_server_or_its_run_is_an_attempt_that_failed(error, unclear, awaits):
    def fails(_):
        raise error

    async def fails_later(_):
        raise error

    tried = send(CallConnector(fails_later if awaits else fails))
    assert (tried.ok, tried.permanent) == (False, False)
    assert tried.unclear is (unclear and (awaits or isinstance(error, TimeoutError)))
    assert type(error).__name__ in tried.error
    assert str(error) in tried.error


@pytest.mark.promise("A8")
def test_a_module_whose_import_never_ends_stops_nothing_but_its_own_connector(tmp_path, monkeypatch):
    begun, ended, returned = threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "until_the_test_ends", lambda: begun.set() or ended.wait(), raising=False)
    (tmp_path / "stuck.py").write_text("import sys\nsys.until_the_test_ends()\n")

    async def main():
        sending = asyncio.create_task(LazyCall("stuck:send", tmp_path).send(MESSAGE))
        assert await asyncio.to_thread(begun.wait, 60)
        sending.cancel()
        await sending

    before = left_behind()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert left_behind() != before
    unwatch = watch(lambda: returned.set() if left_behind() == before else None)
    ended.set()  # or every later test of this process would have a call that hangs
    assert returned.wait(60)
    unwatch()


@pytest.mark.promise("A8")
def test_a_function_that_raises_as_if_a_person_had_pressed_ctrl_c_ends_nothing():
    def fails(_):
        raise KeyboardInterrupt

    tried = send(CallConnector(fails))
    assert (tried.ok, tried.error) == (False, "RuntimeError: the function raised KeyboardInterrupt()")


def test_a_program_gets_the_message_on_its_standard_input(tmp_path):
    assert send(CommandConnector(["sh", "-c", "cat > got.json"], tmp_path)).ok
    assert json.loads((tmp_path / "got.json").read_text())["text"] == "hello"
    tried = send(CommandConnector(["sh", "-c", "echo no luck >&2; exit 3"], tmp_path))
    assert (tried.ok, tried.error) == (False, "sh ended with exit code 3: no luck")
    assert "cannot be started" in send(CommandConnector(["./missing"], tmp_path)).error


def test_a_program_may_say_much_and_need_not_read(tmp_path):
    much = "head -c 5000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 3"
    assert send(CommandConnector(["sh", "-c", much], tmp_path)).error.endswith("the end")
    assert send(CommandConnector(["true"], tmp_path), MESSAGE._replace(text="x" * 1_000_000)).ok


# -- Apprise ----------------------------------------------------------------------------------------------------------


def apprise(site, path, query=""):
    return AppriseConnector(f"json://{site.url.partition('://')[2]}{path}{query}")


def test_apprise_posts_and_long_texts_arrive_whole(site):
    assert send(apprise(site, "/ok")).ok
    assert json.loads(site.seen[0]["body"])["message"] == "hello"
    assert json.loads(site.seen[0]["body"])["title"] == "a: success"
    site.seen.clear()
    text = "\n\n".join(f"paragraph {number} " + "x" * 3_000 for number in range(20))
    assert send(apprise(site, "/ok"), MESSAGE._replace(text=text)).ok
    parts = [json.loads(item["body"])["message"] for item in site.seen]
    assert len(parts) == 2
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(("kind", "message"), [("reply", "**3** new"), ("output", "\\*\\*3\\*\\* new")])
def test_markdown_of_a_reply_is_kept_by_services_that_show_it(site, kind, message):
    connector = AppriseConnector(f"ntfy://{site.url.partition('://')[2]}/topic?format=markdown")
    send(connector, MESSAGE._replace(kind=kind, text="**3** new", title=None))
    assert json.loads(site.seen[0]["body"])["message"] == message


@pytest.mark.parametrize(("code", "permanent"), [(500, False), (429, False), (400, True), (410, True)])
def test_what_apprise_says_about_a_failure_is_kept_without_its_secrets(site, code, permanent):
    tried = send(apprise(site, f"/status/{code}", "?+Authorization=Bearer%20planted-key"))
    assert (tried.ok, tried.permanent) == (False, permanent)
    assert f"error={code}" in tried.error
    assert "planted" not in tried.error


def test_a_redirect_is_no_success_for_apprise(site):
    assert not send(apprise(site, "/to", "?url=/ok")).ok


@pytest.mark.parametrize("url", ["nonsense", "nosuch://planted-key@host", "json://", ""])
def test_an_address_apprise_does_not_know_is_refused_without_being_shown(url):
    with pytest.raises(InvalidSetting, match="that Apprise knows") as error:
        check_url(url)
    assert "planted" not in str(error.value)


def test_a_program_gets_what_its_connector_lists_and_no_secret_of_the_server(tmp_path, monkeypatch):
    for name in ("DB_PASSWORD", "PHONE_KEY"):
        monkeypatch.setenv(name, f"value of {name}")
    code = "import json, os, sys; sys.stdin.read(); json.dump(dict(os.environ), open('env.json', 'w'))"
    entry = {"type": "command", "argv": [sys.executable, "-c", code], "env": ["PHONE_KEY", "MODE=quiet"]}
    connector = ConnectorSettings.model_validate(entry).make("local", tmp_path, SystemClock())
    assert send(connector).ok
    seen = json.loads((tmp_path / "env.json").read_text())
    assert (seen.get("DB_PASSWORD"), seen["PHONE_KEY"], seen["MODE"]) == (None, "value of PHONE_KEY", "quiet")
