"""A server to send requests to."""

from __future__ import annotations

import pytest

from tests.http.targets import target


@pytest.fixture(scope="module")
def _site():
    with target() as made:
        yield made


@pytest.fixture
def site(_site):
    """A server on 127.0.0.1 without any requests yet."""
    _site.seen.clear()
    return _site
