"""Signatures of webhooks: published vectors, and everything that must not pass."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest

from wakeful.domains.agents.inbound.signatures import SCHEMES, TOLERANCE_MS, SignedRequest, key_of, scheme_of, verify
from wakeful.errors import InvalidSetting

SW_SECRET = "whsec_d2FrZWZ1bC10ZXN0LXNlY3JldC0wMTIzNDU2Nzg5"  # noqa: S105 - a published vector
SW_OLD = "whsec_b2xkLXNlY3JldC1vZi0yNC1ieXRlcy0tLS0="
SW2 = "v1,Z2f7XgdqGtTcH03AZN+234vc9CAwHoM8dmGe/SrJRtI="
SW3 = "v1,BEQOfYib/0HYLZEKZUAT4tSDsGHifVVrkg82NgFVne0="
BODY = b'{"type":"deploy.finished","data":{"ok":true}}'
NOW = 1_700_000_000_000
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack."
    b"com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
    b"803a0bc887a14d10d2c447fce8b6703c"
)


def given(body=b"", values=None, **headers):
    named = {name.replace("_", "-"): [value] if isinstance(value, str) else value for name, value in headers.items()}
    return SignedRequest(named, body, lambda: values)


def checked(name, secrets, request, now=NOW):
    scheme = SCHEMES[name] if isinstance(name, str) else scheme_of({"verify": name})
    return verify(scheme, [key_of(scheme, secret) for secret in secrets], request, now)


def standard(signature=SW2, body=BODY, message="msg_wakeful_1", at="1700000000"):
    return given(body, webhook_id=message, webhook_timestamp=at, webhook_signature=signature)


@pytest.mark.parametrize(
    ("secret", "message", "at", "body", "signature"),
    [
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
            b'{"test": 2432232314}', "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (SW_SECRET, "msg_wakeful_1", "1700000000", BODY, SW2),
        (SW_OLD, "msg_wakeful_1", "1700000000", BODY, SW3),
        (SW_SECRET, "msg_wakeful_2", "1700000000", b"", "v1,x2LOY+T02URAv/SQf1pS+mKTW6sNr5ihZDaw/v7qg20="),
        (
            SW_SECRET, "msg_wakeful_3", "1700000000", '{"name":"Zoë ☕"}'.encode(),
            "v1,yZeohoFqS2ZWRaB2hbNTn3GqiBFpPYR9jFOaRt23+Sc=",
        ),
        (SW_SECRET, "msg_wakeful_1", "1700000000", BODY, f"{SW3} {SW2}"),
        (SW_OLD, "msg_wakeful_1", "1700000000", BODY, f"{SW3} {SW2}"),
        (SW_SECRET, "msg_wakeful_1", "1700000000", BODY, f"v1a,AAAA  nonsense {SW2}"),
    ],
)  # fmt: skip
def test_standard_webhooks_are_verified(secret, message, at, body, signature):
    found = checked("standard", [secret], standard(signature, body, message, at), int(at) * 1000)
    assert found is not None
    assert found.delivery_id == message


@pytest.mark.parametrize(
    "request_",
    [
        standard(SW2.replace("RtI=", "RtA=")),
        standard(SW3),
        standard(SW2.removeprefix("v1,")),
        standard(SW2.replace("v1,", "v2,")),
        standard(""),
        standard(body=BODY + b" "),
        standard(message="msg_wakeful_2"),
        standard(at="1700000001"),
        standard(at="1700000000.0"),
        standard(at="".join(chr(0x660 + int(digit)) for digit in "1700000000")),
        standard(at="-1"),
        standard([SW2, SW2]),
        standard([SW2, SW3]),
        standard(message=["msg_wakeful_1", "other"]),
        given(BODY, webhook_id="msg_wakeful_1", webhook_timestamp="1700000000"),
        given(BODY, webhook_signature=SW2, webhook_timestamp="1700000000"),
        given(BODY, webhook_signature=SW2, webhook_id="msg_wakeful_1"),
    ],
)
def test_what_is_not_signed_so_does_not_pass(request_):
    assert checked("standard", [SW_SECRET], request_) is None


@pytest.mark.parametrize(("late", "passes"), [(0, True), (300, True), (-300, True), (301, False), (-301, False)])
def test_a_request_counts_within_five_minutes_of_its_time(late, passes):
    assert TOLERANCE_MS == 300_000
    assert (checked("standard", [SW_SECRET], standard(), NOW + late * 1000) is not None) is passes


def test_the_end_of_an_id_cannot_be_moved_into_the_body():
    secret = base64.b64decode(SW_SECRET.removeprefix("whsec_"))
    message = b"msg.1700000000.1700000000.body"
    signature = "v1," + base64.b64encode(hmac.new(secret, message, hashlib.sha256).digest()).decode()
    assert checked("standard", [SW_SECRET], standard(signature, b"1700000000.body", "msg")) is not None
    assert checked("standard", [SW_SECRET], standard(signature, b"body", "msg.1700000000")) is None


def test_github_is_verified_by_its_published_vector():
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    secret = "It's a Secret to Everybody"  # noqa: S105 - a published vector
    request = given(b"Hello, World!", x_hub_signature_256=signature, x_github_delivery="72d3162e")
    assert checked("github", [secret], request).delivery_id == "72d3162e"
    without = given(b"Hello, World!", x_hub_signature_256=signature)
    first, second = checked("github", [secret], without), checked("github", [secret], without)
    assert first == second  # the same bytes are the same request
    assert first.delivery_id.startswith("sha256:")
    assert checked("github", ["another-secret-of-others"], request) is None
    assert checked("github", ["another-secret-of-others", secret], request) is not None
    legacy = given(b"Hello, World!", x_hub_signature=signature)
    assert checked("github", [secret], legacy) is None
    upper = given(b"Hello, World!", x_hub_signature_256=signature.upper())
    assert checked("github", [secret], upper) is None


def test_slack_is_verified_by_its_published_vector():
    signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    secret = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - a published vector
    headers = {"x_slack_signature": signature, "x_slack_request_timestamp": "1531420618"}
    request = given(SLACK_BODY, {"trigger_id": "398738663015"}, **headers)
    assert checked("slack", [secret], request, 1531420618_000).delivery_id == "398738663015"
    assert checked("slack", [secret], request, 1531420618_000 + 301_000) is None
    assert checked("slack", [secret], given(SLACK_BODY, **headers), 1531420618_000).delivery_id.startswith("sha256:")


def test_a_bearer_is_compared_as_a_whole():
    assert (
        checked("bearer", ["s3cret-of-16-chars"], given(authorization="bEaReR s3cret-of-16-chars")).delivery_id is None
    )
    request = given(authorization="Bearer s3cret-of-16-chars", idempotency_key="order-17")
    assert checked("bearer", ["s3cret-of-16-chars"], request).delivery_id == "order-17"
    for wrong in (
        "Bearer s3cre",
        "Bearer s3cret-of-16-charss",
        "Basic s3cret-of-16-chars",
        "s3cret-of-16-chars",
        "Bearer ",
        ["Bearer s3cret-of-16-chars"] * 2,
    ):
        assert checked("bearer", ["s3cret-of-16-chars"], given(authorization=wrong)) is None


def test_other_senders_are_described():
    stripe = {
        "header": "Stripe-Signature", "prefix": "v1=", "signed": "{timestamp}.{body}",
        "timestamp": {"header": "Stripe-Signature", "prefix": "t="}, "id": {"body": "id"},
    }  # fmt: skip
    body = b'{"id":"evt_1","object":"event","type":"invoice.paid"}'
    signature = "t=1700000000,v1=ee59fb348d2acd58e238dccb78fd83f9d4d087c6b3d412a5806cb08185bfcda7"
    values = json.loads(body)
    assert (
        checked(stripe, ["whsec_wakeful_stripe"], given(body, values, stripe_signature=signature)).delivery_id
        == "evt_1"
    )
    moved = signature.replace("t=1700000000", "t=1700000001")
    assert checked(stripe, ["whsec_wakeful_stripe"], given(body, values, stripe_signature=moved)) is None
    linear = {
        "header": "Linear-Signature",
        "timestamp": {"body": "webhookTimestamp"},
        "id": {"header": "Linear-Delivery"},
    }
    body = b'{"action":"create","type":"Issue","webhookTimestamp":1700000000000}'
    signature = "fb6ddd990f3b2feb0f78050c2b43baf68967e8fa9c0d25ff224b6f87f3e35299"
    request = given(body, json.loads(body), linear_signature=signature, linear_delivery="d-1")
    assert checked(linear, ["wakeful-linear-secret"], request).delivery_id == "d-1"
    # Where the time is not signed, leaving it out does not help.
    unsigned = {**linear, "timestamp": {"header": "Sent-At"}}
    at = {"linear_signature": signature, "linear_delivery": "d-1"}
    assert (
        checked(unsigned, ["wakeful-linear-secret"], given(body, json.loads(body), **at, sent_at="1700000000"))
        is not None
    )
    assert checked(unsigned, ["wakeful-linear-secret"], given(body, json.loads(body), **at)) is None
    assert checked(linear, ["wakeful-linear-secret"], request, NOW + 301_000) is None
    gitlab = {"header": "X-Gitlab-Token", "algorithm": "token", "id": {"header": "X-Gitlab-Event-UUID"}}
    token = {"x_gitlab_token": "a-token-of-gitlab"}
    request = given(**token, x_gitlab_event_uuid="u")
    assert checked(gitlab, ["a-token-of-gitlab"], request).delivery_id == "u"
    assert checked(gitlab, ["A-token-of-gitlab"], request) is None


def test_the_body_is_read_only_once_the_signature_is_right():
    def read():
        raise AssertionError("read")

    scheme = SCHEMES["slack"]
    headers = {"x-slack-signature": ["v0=00"], "x-slack-request-timestamp": ["1700000000"]}
    assert verify(scheme, [b"k"], SignedRequest(headers, b"{}", read), NOW) is None
    headers["x-slack-signature"] = ["v0=" + hmac.new(b"k", b"v0:1700000000:{}", "sha256").hexdigest()]
    with pytest.raises(AssertionError, match="read"):
        verify(scheme, [b"k"], SignedRequest(headers, b"{}", read), NOW)


@pytest.mark.parametrize("secret", ["", "  ", "whsec_", "whsec_***", "no base64 at all!", "MfKQ9r8GKYqrTwj"])
def test_a_secret_that_everybody_could_guess_is_refused(secret):
    with pytest.raises(InvalidSetting):
        key_of(SCHEMES["standard"], secret)
    if not secret.strip():
        with pytest.raises(InvalidSetting):
            key_of(SCHEMES["github"], secret)


def test_a_delivery_id_that_cannot_be_kept_is_refused():
    for name in ("x" * 301, "a\nb", "a\0b"):
        assert (
            checked(
                "bearer",
                ["a-secret-of-senders"],
                given(authorization="Bearer a-secret-of-senders", idempotency_key=name),
            )
            is None
        )
