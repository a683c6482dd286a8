"""What a caller over the network may write into a request, as pure functions."""

from __future__ import annotations

import json

import pytest

from wakeful.domains.http.guarding import check_writer
from wakeful.domains.http.secrets import redacted_url
from wakeful.errors import NotAllowed
from wakeful.kernel.hooks import Writer
from wakeful.outbound import OutboundPolicy
from wakeful.store.records import JobDef

PRIVATE = json.dumps({"url": "http://10.0.0.1/", "guarded": True})
PUBLIC = json.dumps({"url": "https://example.org/", "guarded": True})


def job(payload, kind="http"):
    return JobDef(1, "a", kind, None, "api", "{}", payload, "{}", 0, 0, None)


def is_allowed(writer, payload, before):
    try:
        check_writer(writer, payload, before)
    except NotAllowed:
        return False
    return True


@pytest.mark.promise("X18")
@pytest.mark.parametrize(
    ("before", "payload", "operator", "agent"),
    [
        (None, PUBLIC, True, False),
        (None, PRIVATE, False, False),
        (job(PRIVATE), PRIVATE, True, True),  # it was allowed when it was written, and every run asks again
        (job(PUBLIC), PRIVATE, False, False),
        (job(PRIVATE), PUBLIC, True, False),
        (job(PRIVATE, "command"), PRIVATE, False, False),
    ],
)
def test_a_request_is_checked_again_unless_nothing_of_it_changes(before, payload, operator, agent):
    policy = OutboundPolicy()
    assert is_allowed(Writer("ada", limited=False, outbound=policy, may_send=True), payload, before) is operator
    assert is_allowed(Writer("fox", limited=True, outbound=policy, may_send=False), payload, before) is agent


@pytest.mark.promise("X18")
def test_a_parameter_is_hidden_however_its_name_is_written():
    assert redacted_url("https://example.org/?to%6ben=abc&to%6Ben&page=2") == (
        "https://example.org/?to%6ben=***&to%6Ben&page=2"
    )
