"""What conftest.py promises to every test."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings


@pytest.mark.parametrize("address", [("192.0.2.1", 443), ("example.org", 80), ("2001:db8::1", 443, 0, 0)])
def test_a_connection_to_the_outside_is_refused_before_it_is_tried(address):
    assert "this machine alone" in refusal(address)


@pytest.mark.parametrize("address", [("127.0.0.1", 80), ("::1", 80, 0, 0), ("localhost", 80), "a/unix/socket"])
def test_a_connection_to_this_machine_is_allowed(address):
    assert refusal(address) is None


def refusal(address):
    """What a test that connects to this address is told, if anything."""
    try:
        sys.audit("socket.connect", None, address)
    except PermissionError as error:
        return str(error)
    return None


def test_property_tests_repeat_exactly():
    assert settings().derandomize
