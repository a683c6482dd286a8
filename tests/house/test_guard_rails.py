"""What conftest.py promises to every test."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import settings

from tests.house.source import ROOT

#: What passes on a quick machine alone. `until` and `settled` of `tests/web/browsing.py` wait for what is meant.
HASTY = {"wait_for_function", "wait_for_timeout"}


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


def hasty(text):
    """The lines on which a test of pages waits for time, or has the page evaluate text."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute) and node.attr in HASTY]


def test_tests_of_pages_wait_for_what_they_mean_and_not_for_time():
    found = {path.name: hasty(path.read_text(encoding="utf-8")) for path in (ROOT / "tests" / "web").glob("*.py")}
    assert len(found) > 15
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert hasty("page.wait_for_function('1')\npage.wait_for_timeout(5)\npage.wait_for_selector('p')") == [1, 2]
